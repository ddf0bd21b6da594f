"""What the inline screen does for somebody who reads: what is in the scrollback is printed again, or paged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.tui import effects as screen_effects
from tenuto.tui.effects import ScreenEffect
from tenuto.tui.inline.actions import lend
from tenuto.tui.machine import intent as intents
from tenuto.tui.machine.item import Item
from tenuto.tui.pager import Page, page_of, show_page
from tenuto.tui.render.line import EMPTY

if TYPE_CHECKING:
    from tenuto.tui.inline.app import InlineApp


class Reading:
    """Carries out the effects of the topic, and its keys where the scrollback asks for something else (`table`)."""

    def __init__(self, app: InlineApp) -> None:
        self._app = app
        self.table: dict[str, Callable[[], bool]] = {
            "block.fold": self._print_block,
        }

    def carry_out(self, effect: ScreenEffect) -> bool:
        """Carry out an effect, if it is one of these; say whether it was."""
        match effect:
            case screen_effects.OpenBlock(id=item_id):
                item = self._app.runner.state.transcript.get(item_id)
                if item is not None:
                    self._app.spawn(self._show(page_of(item, self._app.paint, self._app.columns)))
            case screen_effects.OpenPage(path=path):
                self._app.spawn(self._show(Page(Path(path), passing=True)))
            case screen_effects.UseMouse():
                self._app.around.show_toast("The mouse is the terminal's own here", "dim")
            case _:
                return False
        return True

    def _print_block(self) -> bool:
        state = self._app.runner.state
        item = state.transcript.get(state.block)
        return item is not None and self._print_again(item)

    def _print_again(self, item: Item) -> bool:
        app = self._app
        app.printer.say([EMPTY, *app.printer.whole(item, app.columns)])
        app.runner.handle(intents.Escape())
        app.show()
        return True

    async def _show(self, page: Page) -> None:
        """Show a page in the pager; the app goes on behind it."""
        app = self._app
        async with lend(app):
            problem = await show_page(page, os.environ)
        if problem:
            app.around.show_toast(problem, "error")
        app.show()
