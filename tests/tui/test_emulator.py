from __future__ import annotations

import pytest

from tenuto.tui.terminal.emulator import is_xterm, notification_form, recognise, recognise_name, shows_progress, wrap


@pytest.mark.parametrize(
    ("environ", "emulator", "form", "progress"),
    [
        ({"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}, "kitty", "osc99", False),
        ({"TERM": "xterm-kitty"}, "kitty", "osc99", False),
        ({"TERM_PROGRAM": "ghostty", "TERM": "xterm-ghostty"}, "ghostty", "osc777", True),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, "wezterm", "osc777", True),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2", "osc9", False),
        ({"LC_TERMINAL": "iTerm2", "TERM": "xterm-256color"}, "iterm2", "osc9", False),
        ({"TERM": "foot"}, "foot", "osc777", False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "vte", "osc777", False),
        ({"TERM": "xterm-256color", "WT_SESSION": "x"}, "windows-terminal", "", True),
        ({"TERM": "xterm-256color", "ConEmuANSI": "ON"}, "conemu", "", True),
        ({"TERM_PROGRAM": "vscode", "TERM": "xterm-256color"}, "vscode", "osc99", False),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM": "xterm-256color"}, "apple", "", False),
        ({"TERM": "xterm-256color"}, "xterm", "osc777", False),
        ({"TERM": "linux"}, "other", "", False),
        ({"TERM": "dumb"}, "other", "", False),
        ({}, "other", "", False),
        ({"TMUX": "/tmp/x,1,0", "TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, "other", "", False),
    ],
)
def test_a_terminal_is_known_by_its_environment(environ, emulator, form, progress):
    assert recognise(environ) == emulator
    assert notification_form(emulator) == form
    assert shows_progress(emulator) is progress


def test_behind_tmux_the_answer_of_the_terminal_says_more_than_its_term():
    assert recognise_name("ghostty 1.1.3", "xterm-256color") == "ghostty"
    assert recognise_name("", "xterm-kitty") == "kitty"
    assert recognise_name("", "") == "other"


def test_sequences_are_wrapped_for_what_stands_between():
    assert wrap("\x1b]9;x\x07", {}) == "\x1b]9;x\x07"
    assert wrap("\x1b]9;x\x07", {"TMUX": "x"}) == "\x1bPtmux;\x1b\x1b]9;x\x07\x1b\\"
    assert wrap("\x1b]9;x\x07", {"STY": "x"}) == "\x1bP\x1b]9;x\x07\x1b\\"
    assert wrap("\x1b]99;x\x1b\\", {"STY": "x"}) == "", "screen would end it too early and print the rest"


def test_what_is_started_from_xterm_is_not_taken_for_it() -> None:
    xterm = {"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}
    assert is_xterm(xterm) and is_xterm({**xterm, "TERM": "xterm-256color"})
    for other in (
        {"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"},
        {"TERM": "xterm-256color", "VTE_VERSION": "7600"},
        {"TERM": "xterm-256color", "ALACRITTY_WINDOW_ID": "1"},
        {"TERM": "foot"},
        {"TMUX": "x"},
    ):
        assert not is_xterm({**xterm, **other})
