"""The user's own editor takes the screen's place for a while: on the prompt, on a plan, on a file. Both screens."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tenuto.tui.editor import edit_file, edit_text
from tenuto.tui.machine.intent import Intent, PlanEdited


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
