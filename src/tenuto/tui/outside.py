"""What reaches the person beyond the screen: the terminal's title, a call, the clipboard. Shared by both screens."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from tenuto.config.settings import UiSettings
from tenuto.guard.sanitize import sanitize_line
from tenuto.tui import effects as screen_effects
from tenuto.tui.clipboard import copy_sequence, copy_with_tool
from tenuto.tui.effects import ScreenEffect

TITLE_CHARACTERS = 120
BELL = "\x07"


class Outside:
    """`write` takes control sequences, in order with what is painted; `spawn` runs work beside everything else.

    `toast(text, style)` shows a line for a few seconds. `copied` is the last text that was copied.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        toast: Callable[[str, str], None],
        *,
        ui: UiSettings,
        environ: Mapping[str, str],
    ) -> None:
        self._write = write
        self._spawn = spawn
        self._toast = toast
        self._ui = ui
        self._environ = environ
        self._looked_at: bool | None = None
        self.copied = ""

    def begin(self) -> None:
        """Remember what the person will want back; the terminal is ours from now on."""
        self._write(SAVE_TITLE)

    def end(self) -> None:
        """Give it back."""
        self._write(RESTORE_TITLE)

    def look(self, looked_at: bool) -> None:
        """The terminal says whether it has the focus."""
        self._looked_at = looked_at

    def carry_out(self, effect: ScreenEffect) -> bool:
        """Carry out an effect, if it is one of these; say whether it was."""
        match effect:
            case screen_effects.Bell(reason=reason):
                self._ring(reason)
            case screen_effects.Title(text=text):
                self._write(title_sequence(text))
            case screen_effects.CopyText(text=text):
                self.copy(text)
            case _:
                return False
        return True

    def copy(self, text: str) -> None:
        """Put a text on the clipboard: by the terminal, and by the system's own command where there is one."""
        self.copied = text
        self._write(copy_sequence(text, self._environ))
        self._spawn(self._copy_with_tool(text))
        self._toast(f"Copied {len(text):,} characters", "dim")

    async def _copy_with_tool(self, text: str) -> None:
        await copy_with_tool(text, self._environ)

    def _ring(self, reason: str) -> None:
        away = self._looked_at is False or (reason == "approval" and self._looked_at is None)
        if self._ui.notifications and away:
            self._write(BELL)


def title_sequence(text: str) -> str:
    """Return what sets the terminal's title; the text may be anything (R-088)."""
    return f"\x1b]0;{sanitize_line(text)[:TITLE_CHARACTERS]}\x07"


SAVE_TITLE = "\x1b[22;0t"
RESTORE_TITLE = "\x1b[23;0t"
