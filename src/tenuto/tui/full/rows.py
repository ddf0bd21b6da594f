"""A widget that shows a few lines: status, panels, popups. What they say is worked out by pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.strip import Strip
from textual.widget import Widget

from tenuto.tui.full.palette import Palette
from tenuto.tui.render.line import Line


class Rows(Widget, can_focus=False):
    """Paints lines as they are. Another number of lines is another height, the only thing that costs a layout.

    `click` gets the row that was clicked, `scroll` the rows that the wheel asks for.
    """

    def __init__(
        self,
        palette: Palette,
        name: str,
        *,
        click: Callable[[int], None] | None = None,
        scroll: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(id=name)
        self._palette = palette
        self._click = click
        self._scroll = scroll
        self.lines: Sequence[Line] = ()

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show these; none at all takes the widget off the screen."""
        if lines == self.lines:
            return
        resized = len(lines) != len(self.lines) or bool(lines) != self.display
        self.lines = lines
        if resized:
            self.styles.height = len(lines)
            self.display = bool(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        width = self.size.width
        return self._palette.strip(self.lines[y], width) if y < len(self.lines) else Strip.blank(width)

    def on_click(self, event: events.Click) -> None:
        """Say which row was clicked."""
        event.stop()
        if self._click is not None:
            self._click(event.y)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll back, where there is something to scroll."""
        event.stop()
        if self._scroll is not None:
            self._scroll(-1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll on."""
        event.stop()
        if self._scroll is not None:
            self._scroll(1)
