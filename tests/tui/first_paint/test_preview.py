"""The end of a session that is gone on with is on the screen before the front-end is there, and stays where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.protocol.message import AssistantMessage, UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session
from tests.session.long import write_session
from tests.terminal.pseudo import PseudoTerminal

pytestmark = pytest.mark.terminal
FRAME = b"\x1b[?2026h"
"""Begins the first frame of the front-end."""
ENTRIES = 1_200


def early_text(terminal: PseudoTerminal, text: str) -> str:
    """Wait for a text, and for the front-end; return the screen as it was when the text came."""
    shown = terminal.wait_for(text)
    assert FRAME not in terminal.output, "the text came with the front-end, or behind it"
    terminal.wait_for("offline/tenuto")
    return shown


def transcript_of(screen: str) -> list[str]:
    """The rows above the line of status, without the scrollbar."""
    return [row.rstrip(" ▐") for row in screen.split("\n")[:25]]


@pytest.mark.parametrize("words", [("--continue",), ("--resume", "{id}")])
def test_the_last_screenful_comes_first_and_nothing_of_it_moves(tmp_path: Path, words: tuple[str, ...]) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    directory = write_session(home, work, ENTRIES, ENTRIES * 800, "offline/tenuto")
    terminal = PseudoTerminal(work, home, {}, *(word.format(id=directory.name) for word in words))
    try:
        early = early_text(terminal, f"Answer {ENTRIES}")
        terminal.read_until_quiet(1.0)
        assert transcript_of(terminal.text()) == transcript_of(early)
    finally:
        terminal.close()


def test_what_looks_like_a_secret_is_masked_and_keys_go_on(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
    session = Session.create(home, work)
    session.append(UserMessage(parts=(TextPart(text="which token?"),)))
    session.append(AssistantMessage(parts=(TextPart(text=f"It is {secret}, and no more."),), model="offline/tenuto"))
    session.close()
    terminal = PseudoTerminal(work, home, {}, "--continue")
    try:
        terminal.wait_for("❯")
        terminal.write(b"typed early")
        early_text(terminal, "and no more")
        terminal.wait_for("❯ typed early")
        assert "which token?" in terminal.text()
        assert secret.encode() not in terminal.output
    finally:
        terminal.close()


def test_another_size_shows_the_empty_frame(tmp_path: Path) -> None:
    """What was drawn for the size before does not fit, and the front-end draws it anew."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    directory = write_session(home, work, ENTRIES, ENTRIES * 800, "offline/tenuto")
    terminal = PseudoTerminal(work, home, {}, "--resume", directory.name)
    try:
        terminal.wait_for(f"Answer {ENTRIES}")
        terminal.resize(60, 20)
        terminal.wait_for("offline/tenuto")
        terminal.read_until_quiet(1.0)
        assert f"Answer {ENTRIES}" in terminal.text()
        assert all(len(row) <= 60 for row in terminal.text().split("\n"))
    finally:
        terminal.close()
