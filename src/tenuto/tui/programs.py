"""Other programs that have the terminal for a while: the user's editor and pager. Both screens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Protocol

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_keeping_colour
from tenuto.tui.paint import Paint
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.intents import Intent, PlanEdited
from tenuto.tui.state.item import Item, ShellItem, ToolItem


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
    """Ignore a signal that is meant for the program that has the terminal."""


def could_not_run(command: Sequence[str], error: OSError) -> str:
    """Return the line that says that a program could not be started, and why."""
    return f"{command[0]} could not be run: {error.strerror or error}"


def write_passing(pieces: Iterable[str], suffix: str) -> Path:
    """Put a text, whole or in pieces, into a new file that only the user can read. The caller removes it.

    Raises `OSError`.
    """
    import tempfile

    handle, name = tempfile.mkstemp(prefix="tenuto-", suffix=suffix)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.writelines([pieces] if isinstance(pieces, str) else pieces)
    return Path(name)


# --- the pager ---


PAGER_VARIABLES = ("PAGER",)
USUAL_PAGERS = ("less", "more")
LESS_OPTIONS = "-R"
"""Colours as colours; used where the user has set none of their own."""
_COPIED_AT_ONCE = 1_000_000
"""Characters. A sequence that two pieces share is harmless: its escape is gone."""


class Page(NamedTuple):
    """A file for the pager. A `passing` one was made for it and is removed then; of others it gets a safe copy."""

    path: Path
    passing: bool


async def show_page(page: Page, environ: Mapping[str, str]) -> str:
    """Show a page, and return what went wrong, empty when nothing did."""
    try:
        path = page.path if page.passing else await asyncio.to_thread(_safe_copy, page.path)
    except OSError as error:
        return f"{page.path} could not be read: {error.strerror or error}"
    try:
        return await page_file(path, environ)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _safe_copy(path: Path) -> Path:
    """Return a copy without what a terminal would obey, colours aside: not every pager keeps that back (S19).

    The caller removes it. Raises `OSError`.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        pieces = iter(lambda: file.read(_COPIED_AT_ONCE), "")
        return write_passing(map(sanitize_keeping_colour, pieces), ".txt")


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
    command = find_program(environ, PAGER_VARIABLES, USUAL_PAGERS)
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


# --- the editor ---


EDITOR_VARIABLES = ("VISUAL", "EDITOR")
USUAL_EDITORS = ("nano", "vim", "vi")


async def edit_text(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what the editor made of the text, and what went wrong (then the text is as it was)."""
    command = find_program(environ, EDITOR_VARIABLES, USUAL_EDITORS)
    if not command:
        return text, "No editor found: set VISUAL or EDITOR"
    try:
        path = write_passing(text, ".md")
        try:
            code = await run_program([*command, str(path)])
            edited = _read(path)
        finally:
            _remove(path)
    except OSError as error:
        return text, could_not_run(command, error)
    if code:
        return text, f"{Path(command[0]).name} ended with exit code {code}; the draft is unchanged"
    return edited if text.endswith("\n") else edited.removesuffix("\n"), ""


async def edit_file(path: str, environ: Mapping[str, str]) -> str:
    """Open a file in the user's editor; return what went wrong, empty when nothing did."""
    command = find_program(environ, EDITOR_VARIABLES, USUAL_EDITORS)
    if not command:
        return f"No editor found: set VISUAL or EDITOR, or edit {path} yourself"
    try:
        code = await run_program([*command, path])
    except OSError as error:
        return could_not_run(command, error)
    return f"{Path(command[0]).name} ended with exit code {code}" if code else ""


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


class Machine(Protocol):
    """Who takes the intents that an edited text leads to."""

    def handle(self, intent: Intent) -> None:
        """Apply an intent."""
        ...

    def fold_edited(self, text: str) -> str:
        """Return what the prompt shows for a text that comes back from the editor."""
        ...

    def read_own_files(self) -> None:
        """Read the user's own files again."""
        ...


class Draft(Protocol):
    """The editor that the prompt is written in."""

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text in, the cursor as an offset in characters."""
        ...

    def tell(self) -> None:
        """Say what the draft is now."""
        ...


class OwnEditor:
    """`lend` is the terminal in somebody else's hands; `toast(text, style)` shows what went wrong.

    `show` paints when the terminal is ours again.
    """

    def __init__(
        self,
        machine: Machine,
        draft: Draft,
        *,
        lend: Callable[[], AbstractAsyncContextManager[None]],
        toast: Callable[[str, str], None],
        show: Callable[[], None],
    ) -> None:
        self._machine = machine
        self._draft = draft
        self._lend = lend
        self._toast = toast
        self._show = show

    async def edit(self, text: str, plan: str = "") -> None:
        """Let the user write the prompt, or a request's plan; the app goes on behind it."""
        async with self._lend():
            edited, problem = await edit_text(text, os.environ)
        if problem:
            self._toast(problem, "error")
        elif plan:
            self._machine.handle(PlanEdited(plan, edited))
        elif edited != text:
            self._draft.set_draft(self._machine.fold_edited(edited), len(edited))
            self._draft.tell()
        self._show()

    async def edit_file(self, path: str) -> None:
        """Let the user edit a file of theirs; what it says holds afterwards."""
        async with self._lend():
            problem = await edit_file(path, os.environ)
        if problem:
            self._toast(problem, "error")
        self._machine.read_own_files()
        self._show()
