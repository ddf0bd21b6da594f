"""What is said of a setting that is wrong: what is allowed there, and the nearest of it."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest
import tomlkit

from tenuto.config.fitting import plain_type
from tenuto.config.mcp.servers import McpServer
from tenuto.config.settings import CompactionSettings, McpSettings, ModelSettings, ProviderSettings, Settings
from tenuto.config.sources import load_settings
from tests.config.support import leaves, nested


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('mode = "atuo"', "mode is ignored: “atuo” is none of ask, edits, auto, plan; did you mean auto?"),
        ('mode = "x"', "mode is ignored: “x” is none of ask, edits, auto, plan"),
        ('[ui]\nmouse = "whel"', "ui.mouse is ignored: “whel” is none of full, wheel, off; did you mean wheel?"),
        (
            '[ui]\nreduce_motion = "stric"',
            "ui.reduce_motion is ignored: “stric” is none of off, on, strict, true, false; did you mean strict?",
        ),
        ("[ui]\ntheme = 3", "ui.theme is ignored: it takes a text"),
        ('[ui]\ninline = "yes"', "ui.inline is ignored: it takes true or false"),
        ("[ui]\nmouse = 3", "ui.mouse is ignored: it takes full, wheel or off"),
        ("[ui]\nstatus_items = [3]", "ui.status_items is ignored: it takes a list"),
        (
            '[compaction]\nreserve_tokens = "many"',
            "compaction.reserve_tokens is ignored: it takes a whole number from 0 to 100 000 000",
        ),
        ("ui = 3", "ui is ignored: it takes a table"),
        ('[ui]\nthem = "dark"', "ui.them is ignored: there is no such setting; did you mean ui.theme?"),
        ("[uii]", "uii is ignored: there is no such setting; did you mean ui?"),
        (
            '[providers.mine]\nwire = "openai"',
            "providers.mine.wire is ignored: there is no such setting; there are kind, base_url, api_key_env, "
            "api_key_cmd, api_key_seconds, region, aws_profile, project, deployment, api_version, headers",
        ),
        (
            '[models."a/b"]\ncontext_windw = 3',
            'models."a/b".context_windw is ignored: there is no such setting; '
            'did you mean models."a/b".context_window?',
        ),
    ],
)
def test_the_line_says_what_is_allowed_and_what_was_meant(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "settings.toml").write_text(f"max_output_tokens = 99\n{text}\n[tools]\nbash_timeout = 7\n")
    settings, problems = load_settings(tmp_path, None, {})
    line = 2 + text.count("\n")  # the key stands in the last line
    assert problems == [f"{tmp_path / 'settings.toml'}:{line}: {said}"]
    assert (settings.max_output_tokens, settings.tools.bash_timeout) == (99, 7), "the rest holds"


def test_a_variable_is_judged_as_a_file_is(tmp_path: Path) -> None:
    _settings, problems = load_settings(tmp_path, None, {"TENUTO_MODE": "paln", "TENUTO_UI__DIFF": "splitt"})
    assert sorted(problems) == [
        "environment: mode is ignored: “paln” is none of ask, edits, auto, plan; did you mean plan?",
        "environment: ui.diff is ignored: “splitt” is none of auto, unified, split; did you mean split?",
    ]


def arms(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


NUMBERS = {path: kind for path, kind in leaves(Settings) if {int, float} & {plain_type(arm)[0] for arm in arms(kind)}}


def at(settings: Settings, path: tuple[str, ...]) -> object:
    place: Any = settings
    for key in path:
        place = place.get(key) if isinstance(place, dict) else getattr(place, key, None)
    return place


def test_a2_the_numbers_are_found() -> None:
    assert ("models", "x/y", "context_window") in NUMBERS and ("request", "retries") in NUMBERS and len(NUMBERS) > 20


@pytest.mark.parametrize("path", NUMBERS, ids=".".join)
def test_a2_every_number_has_a_range_and_outside_of_it_the_default_holds(path: tuple[str, ...], tmp_path: Path) -> None:
    """reliability.md A2."""
    (arm,) = (arm for arm in arms(NUMBERS[path]) if get_origin(arm) is Annotated)
    (limits,) = (said for said in get_args(arm)[1:] if isinstance(said, msgspec.Meta))
    assert limits.ge is not None and limits.le is not None
    file = tmp_path / "settings.toml"
    bad = [limits.ge - 1, -1, -(10**22), 10**23, limits.le + 1]
    if plain_type(arm)[0] is float:
        bad += [float("nan"), float("inf"), float("-inf")]
    for value in bad:
        if limits.ge <= value <= limits.le:
            continue
        file.write_text("mode = 'plan'\n" + tomlkit.dumps(nested(path, value)))
        settings, problems = load_settings(tmp_path, None, {})
        assert len(problems) == 1, value
        assert (
            str(file) in problems[0] and path[-1] in problems[0] and " from " in problems[0] and " to " in problems[0]
        )
        present, default = (
            at(settings, path),
            at(
                Settings(
                    models={"x/y": ModelSettings()},
                    providers={"x/y": ProviderSettings()},
                    mcp=McpSettings(servers={"x/y": McpServer()}),
                ),
                path,
            ),
        )
        assert present == default and settings.mode == "plan"
    for value in (limits.ge, limits.le):
        file.write_text(tomlkit.dumps(nested(path, value)))
        settings, problems = load_settings(tmp_path, None, {})
        assert problems == [] and at(settings, path) == value


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("contxt = 3", 'models."a/b".contxt'),
        ('max_output_tokens = "many"', 'models."a/b".max_output_tokens'),
        ("max_output_tokens = -1", 'models."a/b".max_output_tokens'),
        ('remote_compaction = "of"', 'models."a/b".remote_compaction'),
    ],
)
def test_s5_one_bad_key_of_a_models_table_costs_that_key(tmp_path: Path, text: str, named: str) -> None:
    """reliability.md S5."""
    other = '[models."c/d"]\ncontext_window = 900\n'
    (tmp_path / "settings.toml").write_text(f'[models."a/b"]\ncontext_window = 4096\n{text}\n{other}')
    settings, problems = load_settings(tmp_path, None, {})
    assert len(problems) == 1 and f"{named} is ignored" in problems[0]
    assert settings.models == {"a/b": ModelSettings(context_window=4096), "c/d": ModelSettings(context_window=900)}


def test_s5_every_bad_key_is_named_and_every_good_one_holds(tmp_path: Path) -> None:
    """reliability.md S5: also a header, a key with a line break, a section that is no table."""
    (tmp_path / "settings.toml").write_text(
        '[providers.box]\nbase_url = "http://box/v1"\nkindd = "openai"\nheaders = {A = "a", B = 3}\n'
        '[providers.two]\nkind = "nope"\napi_key_env = "K"\n"a\\nb" = 1\n[providers]\nthree = 3\n'
        "[compaction]\nprompts = 3\nenabled = false\n"
    )
    settings, problems = load_settings(tmp_path, None, {})
    named = [problem.removeprefix(f"{tmp_path / 'settings.toml'}:").partition(" is ignored")[0] for problem in problems]
    assert named == [
        "3: providers.box.kindd",
        "4: providers.box.headers.B",
        "6: providers.two.kind",
        '8: providers.two."a\\nb"',
        "10: providers.three",
        "12: compaction.prompts",
    ]
    assert settings.providers == {
        "box": ProviderSettings(base_url="http://box/v1", headers={"A": "a"}),
        "two": ProviderSettings(api_key_env="K"),
    }
    assert settings.compaction == CompactionSettings(enabled=False)


@pytest.mark.parametrize("name", ["TENUTO_COMPACTION", "TENUTO_MODELS", "TENUTO_UI"])
def test_a2_a_variable_that_names_a_section_is_warned_about(tmp_path: Path, name: str) -> None:
    settings, problems = load_settings(tmp_path, None, {name: "5", "TENUTO_HOME": "/x", "TENUTO_ELSE": "5"})
    assert settings == Settings()
    assert problems == [f"environment: {name} is ignored: it names a section; its keys are {name}__KEY"]
