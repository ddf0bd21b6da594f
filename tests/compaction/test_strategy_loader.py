"""Strategies by name: found, filled, refused in words that say what to change (seed 004)."""

from __future__ import annotations

import sys
import textwrap

import pytest

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.ways.strategies import HidingThenSummaryCompaction, check_strategy, load_strategy
from tenuto.config.settings import Settings
from tenuto.protocol.compaction import SessionView, StrategyError

METER, SETTINGS = Meter(), Settings()
DEPENDENCIES: dict[type, object] = {Meter: METER, Settings: SETTINGS}


@pytest.fixture
def module(tmp_path, monkeypatch):
    def write(code: str) -> str:
        name = f"strategy_of_{tmp_path.name}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        monkeypatch.syspath_prepend(str(tmp_path))
        sys.modules.pop(name, None)
        return name

    return write


BODY = "\n    async def compact(self, ctx):\n        return None\n"


def test_a_built_in_one_is_found_by_its_name():
    found = load_strategy("tenuto.compaction.strategy:HidingThenSummaryCompaction", DEPENDENCIES)
    assert isinstance(found, HidingThenSummaryCompaction)


def test_positional_parameters_are_filled_by_annotation_and_keyword_only_ones_are_left(module):
    name = module(
        """
        from __future__ import annotations
        from tenuto.compaction.measure.meter import Meter
        from tenuto.config.settings import Settings

        class Mine:
            def __init__(self, meter: Meter, settings: Settings | None, *, keep: int = 7) -> None:
                self.got = (meter, settings, keep)

            async def compact(self, ctx):
                return None
        """
    )
    assert load_strategy(f"{name}:Mine", DEPENDENCIES).got == (METER, SETTINGS, 7)


def test_without_an_own_constructor_it_is_called_without_arguments(module):
    name = module(f"class Mine:{BODY}")
    assert type(load_strategy(f"{name}:Mine", DEPENDENCIES)).__name__ == "Mine"


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("no-colon", "", "module:ClassName"),
        (":Mine", "", "module:ClassName"),
        ("{name}:", "", "module:ClassName"),
        ("no_such_module_here:Mine", "", "cannot be imported"),
        ("{name}:Mine", "x = 1", "has no class Mine"),
        ("{name}:Mine", "Mine = 3", "has no class Mine"),
        ("{name}:Mine", "raise RuntimeError('at import')", "at import"),
        ("{name}:Mine", "class Mine: pass", "compact(self, ctx)"),
        ("{name}:Mine", "class Mine:\n    def compact(self, ctx): ...", "async def compact"),
        ("{name}:Mine", "class Mine:\n    async def compact(self): ...", "one argument"),
        ("{name}:Mine", f"class Mine:\n    def __init__(self, thing: int): ...{BODY}", "'thing' cannot be filled"),
        ("{name}:Mine", f"class Mine:\n    def __init__(self, thing): ...{BODY}", "annotate it with one of"),
        ("{name}:Mine", f"class Mine:\n    def __init__(self, thing: 'Nowhere'): ...{BODY}", "annotations"),
        ("{name}:Mine", f"class Mine:\n    def __init__(self): raise ValueError('no'){BODY}", "no"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_change(module, path, code, words):
    name = module(code)
    with pytest.raises(StrategyError) as caught:
        load_strategy(path.format(name=name), DEPENDENCIES)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_object_is_checked_like_a_class():
    assert check_strategy(HidingThenSummaryCompaction(), "x")
    with pytest.raises(StrategyError, match="no strategy"):
        check_strategy(object(), "compaction=")


def test_a_read_only_session_is_one_of_the_dependencies(module):
    name = module(
        """
        from tenuto.compaction.strategy import SessionView

        class Mine:
            def __init__(self, session: SessionView):
                self.session = session

            async def compact(self, ctx):
                return None
        """
    )
    session = object()
    assert load_strategy(f"{name}:Mine", {SessionView: session}).session is session
