"""What the full screen does for somebody who reads: matches, the block cursor, the pager."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.command.outcome import MouseMode
from tenuto.tui import effects as screen_effects
from tenuto.tui.effects import ScreenEffect
from tenuto.tui.exit_screen import parting_lines
from tenuto.tui.machine import intent as intents
from tenuto.tui.pager import Page, page_of, show_page
from tenuto.tui.paint import ROW_END, Paint, colour_depth

if TYPE_CHECKING:
    from tenuto.tui.full.app import TenutoApp

MOUSE_WORDS: dict[MouseMode, str] = {
    "full": "The mouse scrolls, selects and folds; with Shift the terminal selects",
    "wheel": "The wheel scrolls; hold Shift to select",
    "off": "The mouse is the terminal's; PageUp and PageDown scroll",
}


class Reading:
    """Carries out the effects of the topic, and its keys where the screen knows more than the machine (`table`)."""

    def __init__(self, app: TenutoApp) -> None:
        self._app = app
        self.table: dict[str, Callable[[], bool]] = {
            "search": lambda: self._begin(intents.OpenSearch(self._read_now())),
            "block.begin_up": lambda: self._begin(intents.MoveBlock(-1, self._read_now())),
            "block.begin_down": lambda: self._begin(intents.MoveBlock(1, self._read_now())),
        }

    def carry_out(self, effect: ScreenEffect) -> bool:
        """Carry out an effect, if it is one of these; say whether it was."""
        transcript = self._app.transcript
        match effect:
            case screen_effects.OlderAdded():
                transcript.add_older()
            case screen_effects.PlaceKept():
                transcript.keep_place()
            case screen_effects.PlaceRestored():
                transcript.restore_place()
            case screen_effects.MatchShown():
                transcript.show_match()
            case screen_effects.BlockShown():
                transcript.show_block()
            case screen_effects.OpenBlock(id=item_id):
                self._open_block(item_id)
            case screen_effects.OpenPage(path=path):
                self._app.spawn(self._show(Page(Path(path), passing=True)))
            case screen_effects.UseMouse(mode=mode):
                self.use_mouse(mode)
            case _:
                return False
        return True

    def use_mouse(self, mode: MouseMode) -> None:
        """Use the mouse so from now on."""
        self._app.transcript.selects = mode == "full"
        self._app.use_mouse(mode)
        self._app.around.show_toast(MOUSE_WORDS[mode], "dim")

    def parting(self, columns: int, rows: int) -> str:
        """Return the end of the conversation as it is written to the terminal when the full screen goes."""
        app = self._app
        items = app.runner.state.transcript.ordered()
        lines = parting_lines(items, app.ui.leave_transcript, columns, rows, app.render_options())
        return self._paint().rows(lines).replace(ROW_END, "\x1b[0m\n")

    def _paint(self) -> Paint:
        return Paint(self._app.palette.theme, colour_depth(os.environ), links=self._app.palette.links)

    def _read_now(self) -> int:
        return self._app.transcript.last_seen()

    def _begin(self, intent: intents.OpenSearch | intents.MoveBlock) -> bool:
        self._app.runner.handle(intent)
        return True

    def _open_block(self, item_id: int) -> None:
        app = self._app
        item = app.runner.state.transcript.get(item_id)
        if item is not None:
            app.spawn(self._show(page_of(item, self._paint(), app.size.width)))

    async def _show(self, page: Page) -> None:
        """Show a page in the pager; the app goes on behind it."""
        app = self._app
        with app.outside.withheld(), app.suspend():
            problem = await show_page(page, os.environ)
        if problem:
            app.around.show_toast(problem, "error")
        app.repaint_everything()
