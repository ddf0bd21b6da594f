"""How the full screen begins: an empty frame, what the early phase leaves, and the session behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tenuto.tui.full.resizing import ResizingScreen
from tenuto.tui.machine import intents

if TYPE_CHECKING:
    from tenuto.tui.first_paint.reader import EarlyReader
    from tenuto.tui.full.app import TenutoApp


class Beginning:
    """Leads from the empty screen to the open session.

    `opening` opens it; `early` has the keyboard and the screen until the first frame is there; `take_texts` gives
    what is sent before what was typed meanwhile.
    """

    def __init__(
        self,
        app: TenutoApp,
        opening: Callable[[], Awaitable[None]],
        early: EarlyReader | None,
        take_texts: Callable[[], list[str]],
    ) -> None:
        self._app = app
        self._opening = opening
        self._early = early
        self._take_texts = take_texts

    @property
    def asked_background(self) -> bool:
        """Whether the terminal has been asked for its background already."""
        return self._early is not None and self._early.asked

    def go_on(self) -> None:
        """Go on behind the empty screen, once that is laid out."""
        if self._early is None:
            self._begin()
        else:
            self._take_over(self._early)

    def _take_over(self, early: EarlyReader) -> None:
        """Take the draft over from the early phase; show the frame with it when it is laid out."""
        app = self._app
        given = early.stop()
        app.themes.set_background_colour(given.background)
        if given.sent:
            for text in (*self._take_texts(), *given.sent):
                app.runner.handle(intents.SendText(text))
        if given.text:
            app.composer.set_draft(given.text, given.cursor)
            app.composer.tell()
        app.call_after_refresh(self._show_first_frame, given.rest)

    def _show_first_frame(self, rest: bytes) -> None:
        self._app.let_paint(rest)
        self._begin()

    def _begin(self) -> None:
        if isinstance(self._app.screen, ResizingScreen):
            self._app.screen.may_hold = True
        self._app.run_worker(self._open(), name="open", exit_on_error=False)

    async def _open(self) -> None:
        app = self._app
        try:
            await self._opening()
            app.runner.warn(app.themes.problems)
        except Exception as error:  # noqa: BLE001 - it ends the app, and the caller says it
            app.fail(error)
            app.exit(return_code=1)
