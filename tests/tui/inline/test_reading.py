"""Searching and the block cursor where the transcript is in the terminal's scrollback."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.tui.full.test_reading import conversation
from tests.tui.inline.support import running_app


async def test_ctrl_f_lists_the_places_and_enter_prints_the_block_again() -> None:
    async with running_app(*conversation(), size=(80, 30)) as session:
        assert session.text().count("row 50 needle") == 0, "it is folded"
        session.type("\x06needle")
        await session.shows("1 of 1", "Bash", "row 50 needle")
        session.type("\r")
        await session.gone("1 of 1")
        await session.shows("row 49", "row 51")


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
        await session.shows("Bash make all", "Enter unfolds · y copies")
        session.type("y")
        await session.until(lambda: session.app.outside.copied.startswith("$ make all\nrow 0"))
        session.type("\r")
        await session.gone("Enter unfolds")
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
