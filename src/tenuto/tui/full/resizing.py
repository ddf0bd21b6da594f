"""The screen: when it is painted.

Another size is painted once: nothing is drawn from the first layout on until all widgets have fitted (R-100). What a
key changed is painted at once: by the way of messages it waits for the next sixtieth of a second after a stream's
rows, and behind everything else that the loop has to do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from textual.screen import Screen
from textual.widget import Widget

from tenuto.tui.full.composer import Composer
from tenuto.tui.full.row_compositor import RowCompositor
from tenuto.tui.full.transcript import TranscriptView


class ResizingScreen(Screen[None]):
    """The screen. Each widget hears of its new size by a message; a callback behind it tells that it has been heard."""

    may_hold = False
    """Whether the first frame is out: before it there is nothing to replace, and others wait for what is painted."""
    _held: ExitStack | None = None

    def __init__(self, show_all: Callable[[], None]) -> None:
        super().__init__(id="_default")
        self._show_all = show_all
        self._compositor = RowCompositor()

    def paint_now(self, widget: Widget) -> None:
        """Paint what has changed in a widget, and whatever else is ready; not if there is something to lay out."""
        if self._layout_required or self._scroll_required or widget._layout_required or widget not in self._compositor:
            return
        self._dirty_widgets.add(widget)
        self._on_timer_update()

    def on_resize(self) -> None:
        """Hold the painting until all have fitted."""
        if not self.may_hold:
            self.call_after_refresh(self._show_all)
            return
        if self._held is None:
            self._held = ExitStack()
            self._held.enter_context(self.app.batch_update())  # pyright: ignore[reportUnknownMemberType]
        self.call_later(self._wait_for_transcript)

    def _wait_for_transcript(self) -> None:
        if not self.query_one(TranscriptView).call_later(self._wait_for_composer):
            self._paint()

    def _wait_for_composer(self) -> None:
        if not self.query_one(Composer).call_later(self._paint):
            self._paint()

    def _paint(self) -> None:
        if self._held is None:
            return
        self.query_one(Composer).fit()
        self._show_all()
        self._held.close()
        self._held = None
        self.refresh(layout=True)  # whatever was to be painted whole meanwhile was not
