from __future__ import annotations

import json

import msgspec
import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenuto.config.settings import CompactionSettings, ProviderSettings, Settings, ToolSettings
from tenuto.config.sources import load_settings


@pytest.fixture
def home(tmp_path):
    place = tmp_path / "home"
    place.mkdir()
    return place


def write(place, text):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_without_files_the_defaults_hold(home):
    assert load_settings(home, None, {}) == (Settings(), [])


def test_what_nobody_has_set_is_what_reading_nothing_gives():
    assert msgspec.convert({}, Settings, strict=False) == Settings()


def test_later_sources_win_section_by_section(home, tmp_path):
    write(home / "settings.toml", 'model = "openai/a"\n[tools]\nbash_timeout = 5\nmax_output_lines = 7')
    write(tmp_path / "project/.tenuto/settings.toml", "[ui]\ntheme = 'dark'")
    environ = {"TENUTO_TOOLS__MAX_OUTPUT_CHARS": "99", "TENUTO_MODEL": "openai/b"}
    found, problems = load_settings(home, tmp_path / "project", environ)
    assert problems == []
    assert found.model == "openai/b"
    tools = found.tools
    assert (tools.bash_timeout, tools.max_output_lines, tools.max_output_chars, found.ui.theme) == (5, 7, 99, "dark")


def test_a_wrong_value_is_named_and_the_rest_holds(home):
    write(home / "settings.toml", 'mode = "plan"\nnonsense = 1\n[compaction]\nenabled = false\nreserve_tokens = "many"')
    found, problems = load_settings(home, None, {})
    assert found.mode == "plan"
    assert found.compaction.enabled is False
    assert found.compaction.reserve_tokens is None
    assert any("nonsense" in problem for problem in problems)
    assert any("compaction.reserve_tokens" in problem for problem in problems)


def test_a_file_that_is_not_toml_is_ignored_with_its_name(home):
    write(home / "settings.toml", "= what")
    found, problems = load_settings(home, None, {})
    assert found == Settings()
    assert "settings.toml" in problems[0]


@pytest.mark.parametrize("value", [True, False, "off", "bell", "terminal", "command"])
def test_notifications_take_a_word_and_what_they_took_before(home, tmp_path, value):
    write(home / "settings.toml", f"[ui]\nnotifications = {json.dumps(value)}")
    found, problems = load_settings(home, None, {})
    assert found.ui.notifications == value and not problems
    found, problems = load_settings(tmp_path / "none", None, {"TENUTO_UI__NOTIFICATIONS": str(value).lower()})
    assert found.ui.notifications == value and not problems


def test_every_key_without_a_section_has_its_variable(home):
    environ = {"TENUTO_MODE": "plan", "TENUTO_MAX_OUTPUT_TOKENS": "99", "TENUTO_MODEL": "openai/b"}
    found, problems = load_settings(home, None, environ)
    assert problems == []
    assert (found.mode, found.max_output_tokens, found.model) == ("plan", 99, "openai/b")
    assert "mode" in load_settings(home, None, {"TENUTO_MODE": "wild"})[1][0]


def names_of(section: type[msgspec.Struct]) -> list[str]:
    return [*section.__struct_fields__, "unknown", "a.b"]


scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("a1/:. ", max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "a/b", "headers"]), inner),
    max_leaves=5,
)
tables = st.dictionaries(
    st.sampled_from([*names_of(CompactionSettings), *names_of(ToolSettings), *names_of(ProviderSettings)]), anything
)
files = st.dictionaries(st.sampled_from(names_of(Settings)), anything | tables)
variables = st.dictionaries(
    st.lists(
        st.sampled_from(["MODELS", "UI", "COMPACTION", "PROMPTS", "ENABLED", "X", ""]), min_size=1, max_size=4
    ).map(lambda words: "TENUTO_" + "__".join(words)),
    st.text("a1", max_size=3),
)


@settings(suppress_health_check=list(HealthCheck))
@given(own=files, project=files, environ=variables)
def test_whatever_stands_in_the_files_the_agent_starts(tmp_path, own, project, environ):
    write(tmp_path / "settings.toml", tomlkit.dumps(own))
    write(tmp_path / "project/.tenuto/settings.toml", tomlkit.dumps(project))
    loaded, problems = load_settings(tmp_path, tmp_path / "project", environ)
    assert isinstance(loaded, Settings)
    assert all("\n" not in problem for problem in problems)


@pytest.mark.parametrize(
    "text", ["compaction = 5", 'compaction = "strategy"', "ui = 5", "mode = []", "a = " + "[" * 50_000, "\0", "\ud800"]
)
def test_a_hostile_project_file_is_a_problem_and_no_crash(home, tmp_path, text):
    place = tmp_path / "project/.tenuto/settings.toml"
    place.parent.mkdir(parents=True)
    place.write_bytes(text.encode("utf-8", "surrogatepass"))
    loaded, problems = load_settings(home, tmp_path / "project", {})
    assert loaded == Settings()
    assert len(problems) == 1
    assert str(place) in problems[0]


def test_a_projects_settings_hold_in_its_folders_and_end_at_its_root(tmp_path):
    root = tmp_path / "outer" / "project"
    below = root / "src" / "deep"
    below.mkdir(parents=True)
    (root / ".git").mkdir()
    for place, theme in ((tmp_path / "outer", "ansi"), (root, "light")):
        write(place / ".tenuto/settings.toml", f'ui.theme = "{theme}"')
    assert load_settings(tmp_path / "home", below, {})[0].ui.theme == "light"
    (root / ".tenuto" / "settings.toml").unlink()
    assert load_settings(tmp_path / "home", below, {})[0].ui.theme == Settings().ui.theme
    write(below / ".tenuto/settings.toml", 'ui.theme = "dark"')
    assert load_settings(tmp_path / "home", below, {})[0].ui.theme == "dark", "the nearest one"


def test_the_users_own_settings_are_no_projects(tmp_path):
    home = tmp_path / ".tenuto"
    home.mkdir()
    (home / "settings.toml").write_text('[providers.mine]\nbase_url = "http://localhost:1/v1"')
    found, problems = load_settings(home, tmp_path, {})
    assert problems == []
    assert "mine" in found.providers
