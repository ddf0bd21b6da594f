"""Functions of others whose annotations nobody can work out: they can be called, so they are taken.

Their names are imported for type checkers only. Python 3.14 works such annotations out when they are asked for, older
ones where the function is defined, unless the module puts that off.
"""

from __future__ import annotations

import sys
from functools import partial, wraps
from typing import Any

import pytest

from tenuto.api.checking import check_given, takes_one
from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.ways.strategies import load_strategy
from tenuto.signatures import signature_of
from tests.api.using import using
from tests.server import Reply

pytestmark = pytest.mark.matrix

PUT_OFF = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
CODE = f"""{PUT_OFF}
from typing import TYPE_CHECKING

from tenuto.compaction.measure.meter import Meter

if TYPE_CHECKING:
    from somewhere import CompactionContext, Request


def setup(tenuto: Request) -> Request[int]:
    heard.append(tenuto)


def approve(request: Request | None) -> None: ...


def takes_two(request: Request, other: Request.Inner) -> None: ...


class Strategy:
    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    async def compact(self, ctx: CompactionContext) -> Request: ...


class Choosy:
    def __call__(self, request: Request) -> None: ...


heard = []
"""


@pytest.fixture
def theirs() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "theirs"}
    exec(compile(CODE, "theirs.py", "exec", dont_inherit=True), names)
    return names


def test_they_are_known_by_their_parameters(theirs):
    assert list(signature_of(theirs["takes_two"]).parameters) == ["request", "other"]
    assert takes_one(theirs["approve"]) and takes_one(theirs["Choosy"]()) and takes_one(theirs["setup"])
    assert takes_one(partial(theirs["takes_two"], None))
    assert takes_one(wraps(theirs["approve"])(lambda request: None))
    assert not takes_one(theirs["takes_two"])
    check_given({"approve": theirs["approve"], "compaction": theirs["Strategy"](Meter())})


def test_a_strategy_is_loaded(tmp_path):
    (tmp_path / "theirs.py").write_text(CODE)
    meter = Meter()
    assert load_strategy("theirs:Strategy", {Meter: meter}, tmp_path).meter is meter


async def test_an_agent_takes_them(tmp_path, theirs):
    given = {"extensions": [theirs["setup"]], "approve": theirs["approve"], "compaction": theirs["Strategy"](Meter())}
    async with using(tmp_path, [Reply("Fine.")], **given) as used:
        assert (await used.agent.run("hello")).text == "Fine."
    assert theirs["heard"]
