"""Searching and the block cursor where the transcript is in the terminal's scrollback."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.tui.full.test_reading import conversation
from tests.tui.inline.support import Session, running_app


def present(session: Session) -> tuple[str, str]:
    """Return the text that is marked as the present match, and the row it stands in."""
    screen = session.terminal.screen
    field = next(number for number, row in enumerate(session.terminal.rows()) if row.startswith("  Search"))
    for number in range(field + 1, screen.lines):
        marked = [screen.buffer[number][x].data for x in range(screen.columns) if screen.buffer[number][x].reverse]
        if marked:
            return "".join(marked), session.terminal.rows()[number].strip()
    return "", ""


@pytest.mark.parametrize("size", [(80, 24), (40, 15)])
async def test_enter_shows_the_match_with_what_is_around_it(size: tuple[int, int]) -> None:
    async with running_app(*conversation(), size=size) as session:
        session.type("my draft")
        await session.shows("❯ my draft")
        assert session.text().count("row 50 needle") == 0, "it is folded"
        before = session.terminal.scrollback()
        session.type("\x06needle")
        await session.shows("1 of 1", "Bash", "50 needle")
        session.type("\r")
        await session.shows("Bash make all", "row 49", "row 51", "rows 4", "y copy")
        assert present(session) == ("needle", "row 50 needle")
        assert "❯ my draft" in session.terminal.rows(), "the prompt is not covered"
        session.type("y")
        await session.until(lambda: session.app.alerts.copied.startswith("$ make all\nrow 0"))
        session.type("\x1b")
        await session.gone("row 49")
        assert session.app.editor.text == "my draft"
        assert session.app.runner.state.search is None
        assert session.terminal.scrollback()[: len(before)] == before


async def test_keys_go_from_match_to_match_and_round_the_ends() -> None:
    async with running_app(*conversation(), size=(80, 24)) as session:
        session.type("\x06oracle\r")
        await session.shows("20 of 20", "answer 19")
        assert present(session) == ("oracle", "of the oracle")
        for keys, number in (("n", 19), ("\r", 18), ("\x1b[A", 17), ("N", 18), ("\x1b[13;2u", 19), ("\x1b[B", 20)):
            session.type(keys)
            await session.shows(f"{number} of 20", f"answer {number - 1}")
        session.type("N")
        await session.shows("1 of 20 (wrapped)", "answer 0")
        session.type("n")
        await session.shows("20 of 20 (wrapped)", "answer 19")
        session.type(" and more")
        await session.shows("❯  and more")
        assert session.app.runner.state.search is None


async def test_what_is_looked_at_can_be_printed_whole() -> None:
    async with running_app(*conversation(), size=(80, 24)) as session:
        session.type("\x06needle\r")
        await session.shows("1 of 1", "row 49")
        session.type("\x0f")
        await session.until(lambda: "    row 7" in session.terminal.scrollback())
        await session.shows("1 of 1", "    row 99")


async def test_other_words_are_looked_for_from_where_one_is() -> None:
    async with running_app(*conversation(), size=(80, 24)) as session:
        session.type("\x06oracle\r")
        await session.shows("20 of 20", "print all")
        session.type("\x06\x15question 7")
        await session.shows("1 of 1", "❯ You")
        session.type("\r")
        await session.shows("You · question 7")
        assert present(session)[0] == "question 7"


async def test_the_list_moves_with_the_keys_and_escape_closes_it() -> None:
    async with running_app(*conversation(), size=(80, 30)) as session:
        before = session.terminal.scrollback()
        session.type("\x06oracle\x1b[A\x1b[A")
        await session.shows("18 of 20", "❯ Answer")
        session.type("\x1b")
        await session.gone("18 of 20")
        assert session.terminal.scrollback()[: len(before)] == before
        session.type("typed")
        await session.shows("❯ typed")


async def test_the_block_cursor_shows_the_block_and_does_things_with_it() -> None:
    async with running_app(*conversation(), size=(80, 30)) as session:
        session.type("\x1b[1;3A\x1b[1;3A\x1b[1;3A")
        await session.shows("Bash make all", "Enter expand · y copy")
        session.type("y")
        await session.until(lambda: session.app.alerts.copied.startswith("$ make all\nrow 0"))
        session.type("\r")
        await session.gone("Enter expand")
        await session.shows("row 30", "row 60")


async def test_r099_typing_leaves_the_block_cursor_and_loses_nothing() -> None:
    async with running_app(*conversation(), size=(80, 30)) as session:
        session.type("\x1b[1;3Awhat now")
        await session.shows("❯ what now")
        assert session.app.runner.state.block == 0


async def test_a_block_opens_in_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/page\n')
    pager.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PAGER", str(pager))
    monkeypatch.setattr(os, "ctermid", lambda: os.devnull)
    async with running_app(*conversation(), size=(80, 30)) as session:
        session.type("\x1b[1;3A\x1b[1;3A\x1b[1;3Ao")
        await session.until((tmp_path / "page").exists)
        await session.until(lambda: "row 50 needle" in (tmp_path / "page").read_text())
