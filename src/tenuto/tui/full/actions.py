"""Keys that the full screen does by itself: scrolling, selecting, suspending. By key id of `tui/keys.py`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from tenuto.tui.chrome import ABOVE_PROMPT
from tenuto.tui.job_control import NO_SHELL, has_shell
from tenuto.tui.own_editor import OwnEditor

if TYPE_CHECKING:
    from tenuto.tui.full.app import TenutoApp

Action = Callable[[], bool]
"""`False` leaves the key to its intent, or to editing."""


class ScreenActions:
    """What the app does with a key, by key id (`table`), and with the user's own editor."""

    def __init__(self, app: TenutoApp) -> None:
        self._app = app
        self.own_editor = OwnEditor(
            app.runner, app.composer, lend=self._lend, toast=app.around.show_toast, show=app.repaint_everything
        )
        transcript, around = app.transcript, app.around
        self.table: dict[str, Action] = {
            "newline": self._insert_newline,
            "paste.image": self._paste_clipboard,
            "todo": around.put_todo_away,
            "approval.full": around.show_whole_approval,
            "help.up": lambda: around.scroll_help(-1),
            "help.down": lambda: around.scroll_help(1),
            "suspend": self._suspend,
            "escape": self._let_selection_go,
            "cancel": self._copy_selection,
            "scroll.top": transcript.scroll_to_start,
            "scroll.begin": transcript.scroll_to_start,
            "scroll.bottom": transcript.scroll_to_end,
            "scroll.follow": transcript.scroll_to_end,
            "scroll.page_up": lambda: around.scroll_page(-1) or transcript.scroll_page(-1),
            "scroll.page_down": lambda: around.scroll_page(1) or transcript.scroll_page(1),
            "scroll.line_up": lambda: transcript.scroll_rows(-1),
            "scroll.line_down": lambda: transcript.scroll_rows(1),
        }

    def _insert_newline(self) -> bool:
        self._app.composer.insert_text("\n")
        return True

    def _paste_clipboard(self) -> bool:
        self._app.keyboard.paste_clipboard(self._app.clipboard)
        return True

    def _suspend(self) -> bool:
        if has_shell():
            self._app.action_suspend_process()
        else:
            self._app.around.show_toast(NO_SHELL, "warning")
        return True

    def _let_selection_go(self) -> bool:
        """Leave all of an approval, else take the selection away; what is open before it closes as well."""
        if self._app.around.leave_whole_approval():
            return True
        had = self._app.transcript.pointer.clear()
        return had and self._app.runner.state.contexts[0] not in ABOVE_PROMPT

    def _copy_selection(self) -> bool:
        text = self._app.transcript.pointer.selected or self._app.composer.selected_text
        if not text:
            return False
        self._app.outside.copy(text)
        self._app.transcript.pointer.clear()
        self._app.composer.unselect()  # the next press has its usual meaning
        return True

    @contextlib.asynccontextmanager
    async def _lend(self) -> AsyncGenerator[None]:
        with self._app.outside.withheld(), self._app.suspend():
            yield
