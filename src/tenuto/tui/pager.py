"""The user's pager, for what is too long for the screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.tui.machine.item import Item, ShellItem, ToolItem
from tenuto.tui.own_program import could_not_run, find_program, run_program, write_passing
from tenuto.tui.paint import Paint
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions

VARIABLES = ("PAGER",)
USUAL = ("less", "more")
LESS_OPTIONS = "-R"
"""Colours as colours; used where the user has set none of their own."""


class Page(NamedTuple):
    """A file for the pager; a `passing` one was made for it and is removed afterwards."""

    path: Path
    passing: bool


async def show_page(page: Page, environ: Mapping[str, str]) -> str:
    """Show a page, and return what went wrong, empty when nothing did."""
    try:
        return await page_file(page.path, environ)
    finally:
        if page.passing:
            with contextlib.suppress(OSError):
                page.path.unlink()


def page_of(item: Item, paint: Paint, columns: int) -> Page:
    """Return all of an item as a page: its whole output where that is on disk, else as it is drawn unfolded."""
    output = _whole_output(item)
    if output is not None:
        return Page(output, passing=False)
    lines = render_item(item, columns, RenderOptions("expanded"))
    return Page(write_passing(paint.page(lines), ".txt"), passing=True)


def _whole_output(item: Item) -> Path | None:
    """Return the file with all of a long output."""
    name = ""
    if isinstance(item, ToolItem) and item.result is not None:
        name = item.result.output_path or ""
    elif isinstance(item, ShellItem):
        name = item.output_path
    path = Path(name)
    return path if name and path.is_file() else None


async def page_file(path: Path, environ: Mapping[str, str]) -> str:
    """Show a file in the pager, and return what went wrong, empty when nothing did."""
    command = find_program(environ, VARIABLES, USUAL)
    if not command:
        return "No pager found: set PAGER"
    try:
        await _run_pager(command, path, {"LESS": LESS_OPTIONS, **environ})
    except OSError as error:
        return could_not_run(command, error)
    return ""


def _is_stream(path: Path) -> bool:
    return path.is_fifo()


async def _run_pager(command: list[str], path: Path, environ: Mapping[str, str]) -> None:
    """Run it on a file, or have it read what comes out of a pipe: pagers open no pipe by its name."""
    if not _is_stream(path):
        await run_program([*command, str(path)], environ)
        return
    pipe = await asyncio.to_thread(os.open, path, os.O_RDONLY)  # waits for the other end
    try:
        await run_program(command, environ, stdin=pipe)
    finally:
        os.close(pipe)


def read_page(path: Path) -> str:
    """Return what is in a file that was made for the pager, where there is none, and remove it."""
    try:
        return sanitize_for_terminal(path.read_text(encoding="utf-8", errors="replace"))
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
