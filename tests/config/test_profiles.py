"""Profiles (K 3): what `TENUTO_PROFILE` and `--profile` lay over the settings, and whose they are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tenuto.config.sources import load_settings, made_settings, read_sources
from tests.program import TENUTO

FILE = """\
model = "anthropic/own"
[ui]
theme = "dark"
[profiles.work]
model = "openai/work"
mode = "edits"
[profiles.work.ui]
theme = "light"
[profiles.work.compaction]
keep_recent_tokens = 9
"""


def settings(home: Path, profile: str, project: Path | None = None, **environ: str):
    return load_settings(home, project, {"TENUTO_PROFILE": profile, **environ})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(FILE)
    return tmp_path / "home"


def test_a_profile_lies_over_the_file_key_by_key(home: Path):
    found, problems = settings(home, "work")
    assert (found.model, found.mode, found.ui.theme, found.compaction.keep_recent_tokens, problems) == (
        *("openai/work", "edits", "light", 9),
        [],
    )
    assert settings(home, "")[0].model == "anthropic/own"


def test_variables_come_before_it_and_a_projects_file_behind_it(home: Path, tmp_path: Path):
    (tmp_path / "project" / ".tenuto").mkdir(parents=True)
    (tmp_path / "project" / ".tenuto" / "settings.toml").write_text('mode = "plan"\n[ui]\ntheme = "ansi"\n')
    found, _ = settings(home, "work", tmp_path / "project", TENUTO_MODEL="offline/tenuto")
    assert (found.model, found.mode, found.ui.theme) == ("offline/tenuto", "edits", "light")
    found, _ = settings(home, "", tmp_path / "project")
    assert (found.mode, found.ui.theme) == ("plan", "ansi")


def test_s1_a_project_has_no_profiles(home: Path, tmp_path: Path):
    (tmp_path / "project" / ".tenuto").mkdir(parents=True)
    (tmp_path / "project" / ".tenuto" / "settings.toml").write_text('[profiles.work]\nmodel = "evil/model"\n')
    found, problems = settings(home, "work", tmp_path / "project")
    assert found.model == "openai/work"
    assert any("profiles" in problem and "no project may set that" in problem for problem in problems)


def test_one_that_is_not_there_names_the_nearest_and_costs_nothing_else(home: Path):
    found, problems = settings(home, "wrok")
    assert found.model == "anthropic/own"
    assert problems == [f"there is no profile “wrok” in {home / 'settings.toml'}; did you mean work?"]


def test_a_fault_in_a_profile_has_its_line_and_costs_that_key(home: Path):
    (home / "settings.toml").write_text(FILE + "colour = 3\n")
    found, problems = settings(home, "work")
    assert (found.compaction.keep_recent_tokens, len(problems)) == (9, 1)
    assert problems[0].startswith(
        f"{home / 'settings.toml'}:{FILE.count(chr(10)) + 1}: profiles.work.compaction.colour"
    )


def test_what_is_made_has_the_line_in_the_profile(home: Path):
    made = {
        one.key: one for one in made_settings(read_sources(home, None, {"TENUTO_PROFILE": "work"})) if not one.overruled
    }
    assert (made["ui", "theme"].value, made["ui", "theme"].line) == ("light", 8)


def test_the_option_starts_nothing_where_there_is_no_such_profile(home: Path, tmp_path: Path):
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TENUTO_HOME": str(home)}

    def run(*words: str):
        return subprocess.run(
            [*TENUTO, *words],
            check=False,
            capture_output=True,
            text=True,
            env=environ,
            stdin=subprocess.DEVNULL,
        )

    wrong = run("--profile", "wrok", "-p", "hi")
    assert (wrong.returncode, "did you mean work?" in wrong.stderr) == (2, True)
    assert run("--profile", "wrok", "config").returncode == 2
    shown = run("--profile", "work", "config", "get", "model", "--json")
    assert json.loads(shown.stdout)["value"] == "openai/work"
    assert run("-p", "list", "-m", "offline/tenuto", "--profile", "work").returncode == 0
