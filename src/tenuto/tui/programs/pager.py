"""The user's pager, for what is too long for the screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.tui.machine.item import Item, ShellItem, ToolItem
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.theme.paint import Paint


def find_program(environ: Mapping[str, str], variables: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Return the command that the first of these variables has, else the first usual program there is, else nothing."""
    import shutil

    for variable in variables:
        if environ.get(variable, "").strip():
            try:
                return shlex.split(environ[variable])
            except ValueError:
                return [environ[variable]]
    return [name for name in usual if shutil.which(name)][:1]


async def run_program(
    command: Sequence[str], environ: Mapping[str, str] | None = None, stdin: int | None = None
) -> int:
    """Run a command until it ends; return its exit code. Raises `OSError` when it cannot be run.

    `environ` is its environment, `stdin` what it reads from (`None`: ours). It has the terminal: somebody has lent it.
    """
    # Standard error of this process is not the terminal while the app runs.
    terminal = os.open(os.ctermid(), os.O_RDWR)
    try:
        with _keys_are_its_own():
            process = await asyncio.create_subprocess_exec(*command, stdin=stdin, stderr=terminal, env=environ)
            return await process.wait()
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _keys_are_its_own() -> Generator[None]:
    """Not be ended by Ctrl+C and Ctrl+backslash, which the terminal tells all of the job, when a pager takes them."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT") if hasattr(signal, name)]
    # Not SIG_IGN: the program would have that from us.
    before = [signal.signal(number, _do_nothing) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """It is not for us."""


def could_not_run(command: Sequence[str], error: OSError) -> str:
    """Return the line that says so."""
    return f"{command[0]} could not be run: {error}"


def write_passing(text: str, suffix: str) -> Path:
    """Put a text into a new file that only the user can read; the caller removes it. Raises `OSError`."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix="tenuto-", suffix=suffix)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return Path(name)


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
