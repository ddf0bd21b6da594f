"""What the full screen does for somebody who reads: matches, the block cursor, the pager."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.tui import effects as screen_effects
from tenuto.tui.effects import ScreenEffect
from tenuto.tui.machine import intent as intents
from tenuto.tui.pager import Page, page_of, show_page
from tenuto.tui.paint import Paint, colour_depth

if TYPE_CHECKING:
    from tenuto.tui.full.app import TenutoApp


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
            case _:
                return False
        return True

    def _read_now(self) -> int:
        return self._app.transcript.last_seen()

    def _begin(self, intent: intents.OpenSearch | intents.MoveBlock) -> bool:
        self._app.runner.handle(intent)
        return True

    def _open_block(self, item_id: int) -> None:
        app = self._app
        item = app.runner.state.transcript.get(item_id)
        if item is not None:
            paint = Paint(app.palette.theme, colour_depth(os.environ))
            app.spawn(self._show(page_of(item, paint, app.size.width)))

    async def _show(self, page: Page) -> None:
        """Show a page in the pager; the app goes on behind it."""
        app = self._app
        with app.suspend():
            problem = await show_page(page, os.environ)
        if problem:
            app.around.show_toast(problem, "error")
        app.repaint_everything()
