"""When there is a first light: never where the command line would not open the full screen."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.cli.arguments import MODES, RESERVED, SUBCOMMANDS, Options, parse_arguments
from tenuto.cli.start import Terminal, choose_front_end
from tenuto.tui.early import decide
from tenuto.tui.early.decide import is_accessible, is_for_full_screen, is_terminal_ready, may_be_inline

OPTIONS = "-p --print --json -c --continue -r --resume --model --mode --cwd --no-session -V --version -h --help"
OTHERS = "-- - --model=x -rID -cp --cont ask auto nonsense . /nowhere ~ sessions acp list fix it 4fe1"
WORDS = st.sampled_from([*OPTIONS.split(), *OTHERS.split(), ""])


@given(st.lists(WORDS, max_size=6))
def test_a_command_line_with_a_first_light_opens_the_full_screen(arguments: list[str]) -> None:
    if is_for_full_screen(arguments):
        options = parse_arguments(arguments)
        assert isinstance(options, Options)
        assert not options.subcommand
        assert os.path.isdir(options.cwd or ".")
        assert choose_front_end(options, Terminal(True, True, True, "xterm"), has_input=False) == "full"


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
    assert is_for_full_screen(line.split())


def test_the_words_are_those_of_the_command_line() -> None:
    assert {*SUBCOMMANDS, *RESERVED} == decide.SUBCOMMANDS
    assert set(MODES) == decide.MODES


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


def test_settings_that_may_ask_for_the_inline_front_end_are_seen(tmp_path) -> None:
    environ = {"TENUTO_HOME": str(tmp_path)}
    assert not may_be_inline(environ)
    assert may_be_inline({**environ, "TENUTO_UI__INLINE": "true"})
    (tmp_path / "settings.toml").write_text("[ui]\ntheme = 'dark'\n")
    assert not may_be_inline(environ)
    (tmp_path / "settings.toml").write_text("[ui]\ninline = true\n")
    assert may_be_inline(environ)
    assert not is_for_full_screen(["--inline"])
    assert not is_for_full_screen(["--screen-reader"])


def test_a_project_that_asks_for_the_inline_front_end_is_seen_from_its_folders(tmp_path, monkeypatch) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / ".tenuto").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "src")
    environ = {"TENUTO_HOME": str(tmp_path / "home")}
    assert not may_be_inline(environ)
    (tmp_path / "project" / ".tenuto" / "settings.toml").write_text("[ui]\ninline = true\n")
    assert may_be_inline(environ)


@pytest.mark.parametrize(("value", "plain"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_the_environment_can_ask_for_lines_that_a_screen_reader_reads(value, plain) -> None:
    assert is_accessible({"ACCESSIBLE": value}) is plain
    assert is_terminal_ready({"TERM": "xterm", "ACCESSIBLE": "1"}) is False
    terminal = Terminal(True, True, True, "xterm", accessible=plain)
    assert choose_front_end(Options(), terminal, has_input=False) == ("plain" if plain else "full")
