"""The person's pager, for what is too long for the screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.tui.machine.item import Item, ShellItem, ToolItem
from tenuto.tui.paint import ROW_END, Paint
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions

FALLBACKS = ("less", "more")
LESS_OPTIONS = "-R"
"""Colours as colours; used where the person has set none of their own."""


def pager_command(environ: Mapping[str, str]) -> list[str]:
    """Return the command of `$PAGER`, or `less`, or `more`; empty when there is none."""
    import shutil

    if environ.get("PAGER", "").strip():
        try:
            return shlex.split(environ["PAGER"])
        except ValueError:
            return [environ["PAGER"]]
    return [name for name in FALLBACKS if shutil.which(name)][:1]


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
    return Page(write_page(paint.rows(lines).replace(ROW_END, "\n")), passing=True)


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
    command = pager_command(environ)
    if not command:
        return "No pager found: set PAGER"
    try:
        # Standard error of this process is not the terminal while the app runs.
        terminal = os.open(os.ctermid(), os.O_RDWR)
        try:
            settings = {"LESS": LESS_OPTIONS, **environ}
            process = await asyncio.create_subprocess_exec(*command, str(path), stderr=terminal, env=settings)
            await process.wait()
        finally:
            os.close(terminal)
    except OSError as error:
        return f"{command[0]} could not be run: {error}"
    return ""


def write_page(text: str) -> Path:
    """Put a text into a new file for the pager, that only the person can read."""
    handle, name = tempfile.mkstemp(prefix="tenuto-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return Path(name)


def read_page(path: Path) -> str:
    """Return what is in a file that was made for the pager, where there is none, and remove it."""
    try:
        return sanitize_for_terminal(path.read_text(encoding="utf-8", errors="replace"))
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
