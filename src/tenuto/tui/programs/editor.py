"""The user's own editor takes the screen's place for a while: on the prompt, on a plan, on a file. Both screens."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from tenuto.tui.machine.intents import Intent, PlanEdited
from tenuto.tui.programs.pager import could_not_run, find_program, run_program, write_passing

VARIABLES = ("VISUAL", "EDITOR")
USUAL = ("nano", "vim", "vi")


async def edit_text(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what the editor made of the text, and what went wrong (then the text is as it was)."""
    command = find_program(environ, VARIABLES, USUAL)
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
    command = find_program(environ, VARIABLES, USUAL)
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
    """What is told about what was edited."""

    def handle(self, intent: Intent) -> None:
        """Take in an intent."""
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
