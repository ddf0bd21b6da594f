"""Which key begins a new line here, and what tmux is to be told, said once."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tenuto.command.outcome import Say
from tenuto.tui.keys.key_file import apply_text
from tenuto.tui.keys.keys import KEYS
from tenuto.tui.launch import learn_keyboard
from tenuto.tui.machine.step import step
from tenuto.tui.panels.panel import status_line
from tenuto.tui.state.intents import Intent, KeyboardKnown, KeysLoaded
from tenuto.tui.state.state import UiState
from tenuto.tui.terminal.modified_keys import (
    ALT_AS_BEFORE,
    ALT_SENDS_ESCAPE,
    MORE_KEYS,
    NO_MORE_KEYS,
    more_keys,
    no_more_keys,
)


async def learnt(home: Path, **environ: str) -> list[Intent]:
    heard: list[Intent] = []
    await learn_keyboard(home, environ, heard.append)
    return heard


@pytest.mark.parametrize(
    ("environ", "tells"),
    [({"TERM": "xterm-kitty"}, True), ({"TERM_PROGRAM": "ghostty"}, True), ({"TERM": "foot"}, True),
     ({"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}, True), ({"KONSOLE_VERSION": "221203"}, True),
     ({"TERM_PROGRAM": "Apple_Terminal"}, False), ({"TERM": "xterm-256color"}, False), ({}, False)],
)  # fmt: skip
async def test_terminals_that_tell_shift_enter_are_known(tmp_path: Path, environ: dict[str, str], tells: bool) -> None:
    assert await learnt(tmp_path, **environ) == [KeyboardKnown(tells)]


@pytest.mark.parametrize(("setting", "tells"), [("on", True), ("always", True), ("off", False), ("", False)])
async def test_tmux_is_asked_and_advice_is_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, tells: bool
) -> None:
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\n[ -n '{setting}' ] && echo '{setting}' || exit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    first = await learnt(tmp_path / "home", TMUX="/tmp/x,1,0")
    second = await learnt(tmp_path / "home", TMUX="/tmp/x,1,0")
    assert first[0] == second[0] == KeyboardKnown(tells)
    said = [one for one in (*first, *second) if isinstance(one, Say)]
    assert len(said) == (1 if setting == "off" else 0)
    assert all("extended-keys on" in one.text and "Ctrl+J" in one.text for one in said)


async def test_a_home_that_cannot_be_written_to_is_no_reason_to_say_it_at_every_start(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert not [one for one in await learnt(tmp_path / "home", TMUX="/nowhere,1,0") if isinstance(one, Say)]


def test_the_hint_names_a_key_that_arrives() -> None:
    state = UiState()
    state.draft.text = "word " * 20
    assert "Ctrl+J begins a new line" in status_line(state, 0.0, 80, None, None).text
    step(state, KeyboardKnown(True), 0.0, 80)
    assert "Shift+Enter begins a new line" in status_line(state, 0.0, 80, None, None).text
    step(state, KeysLoaded(apply_text('"newline" = "f4"', KEYS).bindings), 0.0, 80)
    assert "F4 begins a new line" in status_line(state, 0.0, 80, None, None).text
    step(state, KeysLoaded(apply_text('"newline" = "none"', KEYS).bindings), 0.0, 80)
    assert "new line" not in status_line(state, 0.0, 80, None, None).text
    state.draft.text = "two\nlines " * 20
    assert status_line(state, 0.0, 80, None, None).text == ""


def test_keys_are_asked_for_as_xterm_and_tmux_know_it() -> None:
    assert more_keys({"TMUX": "x", "TERM": "screen"}) == more_keys({"TERM": "xterm-256color"}) == MORE_KEYS
    assert more_keys({"TERM": "linux"}) == more_keys({"TERM": "foot"}) == more_keys({"TERM": "xterm-kitty"}) == ""


def test_xterm_is_asked_for_keys_with_alt_and_has_its_own_way_back() -> None:
    xterm = {"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}
    assert more_keys(xterm) == MORE_KEYS + ALT_SENDS_ESCAPE
    assert no_more_keys(xterm) == NO_MORE_KEYS + ALT_AS_BEFORE
    for other in (
        {**xterm, "TMUX": "x", "TERM": "tmux-256color"},
        {"TERM": "xterm-256color"},
        {**xterm, "TERM": "foot"},
    ):
        assert ALT_SENDS_ESCAPE not in more_keys(other)
        assert ALT_AS_BEFORE not in no_more_keys(other)
