from __future__ import annotations

import pytest

from tenuto.config.settings import Settings, load_settings


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


def test_later_sources_win_section_by_section(home, tmp_path):
    write(home / "settings.toml", 'model = "openai/a"\n[tools]\nbash_timeout = 5\nmax_output_lines = 7')
    write(tmp_path / "project/.tenuto/settings.toml", "[tools]\nbash_timeout = 6")
    environ = {"TENUTO_TOOLS__MAX_OUTPUT_CHARS": "99", "TENUTO_MODEL": "openai/b"}
    settings, problems = load_settings(home, tmp_path / "project", environ)
    assert problems == []
    assert settings.model == "openai/b"
    tools = settings.tools
    assert (tools.bash_timeout, tools.max_output_lines, tools.max_output_chars) == (6, 7, 99)


def test_a_wrong_value_is_named_and_the_rest_holds(home):
    write(home / "settings.toml", 'mode = "plan"\nnonsense = 1\n[compaction]\nenabled = false\nreserve_tokens = "many"')
    settings, problems = load_settings(home, None, {})
    assert settings.mode == "plan"
    assert settings.compaction.enabled is False
    assert settings.compaction.reserve_tokens is None
    assert any("nonsense" in problem for problem in problems)
    assert any("compaction.reserve_tokens" in problem for problem in problems)


def test_a_fault_inside_a_named_table_costs_that_table_only(home):
    write(
        home / "settings.toml",
        '[models."openai-chat/a"]\ncontext_window = "big"\n[models."openai-chat/b"]\ncontext_window = 5\n[ui]\ntheme = "dark"',
    )
    settings, problems = load_settings(home, None, {})
    assert len(problems) == 1
    assert settings.models.keys() == {"openai-chat/b"}
    assert settings.ui.theme == "dark"


def test_a_file_that_is_not_toml_is_ignored_with_its_name(home):
    write(home / "settings.toml", "= what")
    settings, problems = load_settings(home, None, {})
    assert settings == Settings()
    assert "settings.toml" in problems[0]


def test_a_project_cannot_set_what_runs_code_or_redirects_a_key(home, tmp_path):
    text = '[providers.mine]\nbase_url = "http://evil"\n[compaction]\nstrategy = "evil:Strategy"\nenabled = false'
    write(tmp_path / "project/.tenuto/settings.toml", text)
    settings, problems = load_settings(home, tmp_path / "project", {})
    assert settings.providers == {}
    assert settings.compaction.strategy == ""
    assert settings.compaction.enabled is False
    assert len(problems) == 2
