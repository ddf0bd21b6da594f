"""When there is a first light, and of which front-end: never where the command line would not open that one."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.cli.arguments import MODES, SUBCOMMANDS, Options, parse_arguments
from tenuto.cli.start import Terminal, choose_front_end
from tenuto.config.sources import load_settings
from tenuto.config.trust import STRICTEST_FIRST
from tenuto.tui.first_paint import decide
from tenuto.tui.first_paint.decide import is_accessible, is_terminal_ready, wants_inline

NO_SETTINGS = {"TENUTO_HOME": "/nowhere"}
OPTIONS = (
    "-p --print --json -c --continue -r --resume --model --mode --cwd --no-session -V --version -h --help --inline"
)
OTHERS = "-- - --model=x -rID -cp --cont ask auto nonsense . /nowhere ~ sessions sesions acp list fix it 4fe1"
WORDS = st.sampled_from([*OPTIONS.split(), *OTHERS.split(), ""])


def promised(arguments: list[str]) -> str:
    return decide.choose_front_end(arguments, NO_SETTINGS)


@given(st.lists(WORDS, max_size=6))
def test_a_command_line_with_a_first_light_opens_that_front_end(arguments: list[str]) -> None:
    front_end = promised(arguments)
    if front_end:
        options = parse_arguments(arguments)
        assert isinstance(options, Options)
        assert not options.subcommand
        assert os.path.isdir(options.cwd or ".")
        assert choose_front_end(options, Terminal(True, True, True, "xterm"), has_input=False) == front_end


@pytest.mark.parametrize(
    "line",
    [
        "",
        "-c",
        "--continue",
        "-r",
        "--resume 4fe1",
        "--model a/b:high --mode auto",
        "--cwd . fix the bug",
        "--no-session",
    ],
)
def test_the_usual_ways_to_start_have_one(line: str) -> None:
    assert promised(line.split()) == "full"
    assert promised([*line.split(), "--inline"]) == "inline"


def test_the_words_are_those_of_the_command_line() -> None:
    assert {*SUBCOMMANDS} == decide.SUBCOMMANDS
    assert set(MODES) == set(decide.MODES)
    assert decide.MODES == STRICTEST_FIRST


@pytest.mark.parametrize("term", ["", "dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_has_none(term: str) -> None:
    assert not is_terminal_ready({"TERM": term})


def test_what_is_no_terminal_has_none() -> None:
    read, write = os.pipe()
    kept = os.dup(0)
    try:
        os.dup2(read, 0)
        assert not is_terminal_ready({"TERM": "xterm"})
    finally:
        os.dup2(kept, 0)
        for descriptor in (read, write, kept):
            os.close(descriptor)


SETTINGS = [
    ("", "full"),
    ("[ui]\ntheme = 'dark'\n", "full"),
    ("[ui]\ninline = true\n", "inline"),
    ("[ui]\ntheme = 'dark'\n  inline=true  # as I like it\n[guard]\n", "inline"),
    ("[ui]\ninline = false\n", "full"),
    ("# inline = true\n", "full"),
    ("ui.inline = true\n", ""),
    ("ui = {inline = true}\n", ""),
    ("[ui]\ninline = true\ninline = false\n", ""),
    ("[other]\ninline = true\n", ""),
    ('[ui]\ntheme = "inline"\n', ""),
]


@pytest.mark.parametrize(("settings", "wanted"), SETTINGS)
def test_what_the_settings_say_of_the_inline_front_end_is_seen(tmp_path, monkeypatch, settings, wanted) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"TENUTO_HOME": str(tmp_path)}
    (tmp_path / "settings.toml").write_text(settings)
    assert decide.choose_front_end([], environ) == wanted
    loaded, _ = load_settings(tmp_path, tmp_path, environ)
    assert wanted in ("", "inline" if loaded.ui.inline else "full")
    assert decide.choose_front_end(["--inline"], environ) == "inline"
    assert decide.choose_front_end(["--screen-reader"], environ) == ""


@pytest.mark.parametrize(("value", "wanted"), [("true", "true"), ("1", "true"), ("0", "false"), ("False", "false")])
def test_the_environment_comes_before_the_settings(tmp_path, value, wanted) -> None:
    for own in ("true", "false"):
        (tmp_path / "settings.toml").write_text(f"[ui]\ninline = {own}\n")
        environ = {"TENUTO_HOME": str(tmp_path), "TENUTO_UI__INLINE": value}
        assert wants_inline(environ) == wanted
        assert load_settings(tmp_path, None, environ)[0].ui.inline is (wanted == "true")


@pytest.mark.parametrize("root", [".git", "project/.git", "project/src/.git", ""])
def test_the_settings_of_a_project_are_those_that_the_program_finds(tmp_path, monkeypatch, root) -> None:
    """`root` marks where the repository begins, if there is one."""
    here = tmp_path / "project" / "src"
    here.mkdir(parents=True)
    if root:
        (tmp_path / root).mkdir()
    own = tmp_path / "home"
    own.mkdir()
    environ = {"TENUTO_HOME": str(own)}
    for folder in (tmp_path / "project", here):
        file = folder / ".tenuto" / "settings.toml"
        file.parent.mkdir()
        file.write_text("[ui]\ninline = true\n")
        monkeypatch.chdir(here)
        found = "true" if load_settings(own, here, environ)[0].ui.inline else ""
        assert wants_inline(environ) == found
        monkeypatch.chdir(tmp_path)
        assert wants_inline(environ, str(here)) == found
        (own / "settings.toml").write_text("[ui]\ninline = true\n")
        file.write_text("[ui]\ninline = false\n")
        found = "true" if load_settings(own, here, environ)[0].ui.inline else "false"
        assert wants_inline(environ, str(here)) == found
        file.unlink()
        (own / "settings.toml").unlink()


@pytest.mark.parametrize(("value", "plain"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_the_environment_can_ask_for_lines_that_a_screen_reader_reads(value, plain) -> None:
    assert is_accessible({"ACCESSIBLE": value}) is plain
    assert is_terminal_ready({"TERM": "xterm", "ACCESSIBLE": "1"}) is False
    terminal = Terminal(True, True, True, "xterm", accessible=plain)
    assert choose_front_end(Options(), terminal, has_input=False) == ("plain" if plain else "full")


MODE_FILES = [
    "",
    'mode = "auto"\n',
    "mode = 'edits'  # mine\n",
    'mode="plan"\n[ui]\ntheme = "dark"\n',
    'model = "a/b"\n',
]


@pytest.mark.parametrize("project", MODE_FILES)
@pytest.mark.parametrize("own", MODE_FILES)
def test_s1_the_first_frame_says_the_mode_that_will_hold(tmp_path, monkeypatch, own: str, project: str) -> None:
    """security.md S1: it said `ask` whatever the settings were."""
    here = tmp_path / "project"
    for file, text in ((tmp_path / "home/settings.toml", own), (here / ".tenuto/settings.toml", project)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(here)
    home = tmp_path / "home"
    for environ in ({}, {"TENUTO_MODE": "plan"}, {"TENUTO_MODE": "auto"}):
        environ = {"TENUTO_HOME": str(home), **environ}
        assert decide.wanted_mode([], environ) == load_settings(home, here, environ)[0].mode
        assert decide.wanted_mode(["--mode", "edits"], environ) == "edits"
        assert decide.wanted_mode(["-c"], environ) == decide.wanted_mode(["--resume", "x"], environ) == ""


@pytest.mark.parametrize(
    "text", ['"mode" = "auto"', 'mode = "auto"\nmode = "ask"', 'mode = "wild"', 'x = """\nmode = "auto"\n"""']
)
def test_s1_in_doubt_the_first_frame_says_no_mode(tmp_path, monkeypatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.toml").write_text(text)
    assert decide.wanted_mode([], {"TENUTO_HOME": str(tmp_path)}) == ""
