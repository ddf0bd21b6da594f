"""Keys that the inline screen does by itself. By key id of `tui/keys.py`; the terminal scrolls by itself."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from tenuto.tui.job_control import NO_SHELL, has_shell
from tenuto.tui.own_editor import OwnEditor
from tenuto.tui.render.line import EMPTY

if TYPE_CHECKING:
    from tenuto.tui.inline.app import InlineApp

Action = Callable[[], bool]
"""`False` leaves the key to its intent, or to editing."""


@contextlib.asynccontextmanager
async def lend(app: InlineApp) -> AsyncGenerator[None]:
    """Give the terminal, its title included, to a program of the user's until it has ended."""
    with app.outside.withheld():
        async with app.application.lend():
            yield


class ScreenActions:
    """What the app does with a key, by key id (`table`), and with the user's own editor."""

    def __init__(self, app: InlineApp) -> None:
        self._app = app
        self.own_editor = OwnEditor(
            app.runner, app.editor, lend=lambda: lend(app), toast=app.around.show_toast, show=app.show
        )
        self.table: dict[str, Action] = {
            "newline": self._insert_newline,
            "paste.image": self._paste_clipboard,
            "todo": app.around.put_todo_away,
            "approval.full": self._show_whole_approval,
            "escape": app.around.leave_whole_approval,
            "help.up": lambda: app.around.scroll_help(-1),
            "help.down": lambda: app.around.scroll_help(1),
            "detail": self._unfold,
            "suspend": self._suspend,
            "scroll.page_up": lambda: app.around.scroll_page(-1),
            "scroll.page_down": lambda: app.around.scroll_page(1),
        }

    def _insert_newline(self) -> bool:
        self._app.editor.insert_text("\n")
        return True

    def _paste_clipboard(self) -> bool:
        self._app.keyboard.paste_clipboard(self._app.outside.copied)
        return True

    def _show_whole_approval(self) -> bool:
        self._app.around.toggle_whole_approval()
        return True

    def _unfold(self) -> bool:
        """Print the block that is looked at, else the last one that has more to show: what is printed cannot change."""
        app = self._app
        item = app.runner.state.transcript.get(app.runner.state.looked_at)
        lines = [EMPTY, *app.printer.whole(item, app.columns)] if item is not None else app.printer.unfold(app.columns)
        app.printer.say(lines)
        if not lines:
            app.around.show_toast(
                f"Nothing more to unfold; the next {app.runner.state.keys.label('detail')} begins at the end", "dim"
            )
        app.show()
        return True

    def _suspend(self) -> bool:
        if has_shell():
            self._app.application.suspend()
        else:
            self._app.around.show_toast(NO_SHELL, "warning")
        return True
