"""The transcript: one widget that paints rows, whatever the number of items (DESIGN section 9).

It reads the machine's items, renders those on the screen, and repaints only the rows that changed. Scrolling is
`viewport.py`, selecting is `selection.py`; both are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tenuto.tui.full.line_cache import LineCache, LineRenderer
from tenuto.tui.full.palette import Palette
from tenuto.tui.full.selection import Place, Selection, selected_text, whole_line, word_at
from tenuto.tui.full.viewport import Viewport
from tenuto.tui.machine.item import Item, Transcript
from tenuto.tui.render.estimate import estimate_height
from tenuto.tui.render.items import gap_before
from tenuto.tui.render.line import EMPTY, Line

WHEEL_ROWS = 3
DRAG_SCROLL_SECONDS = 0.05
SCROLLBAR_CELLS = 1
Row = tuple[int, int]


class TranscriptView(Widget, can_focus=False):
    """Paints `source()`. `toggle` gets the id of an item whose head is clicked, `copy` a text that was selected.

    `reached_start` is called when the person has scrolled to the first row.
    """

    def __init__(
        self,
        source: Callable[[], Transcript],
        render: LineRenderer,
        palette: Palette,
        *,
        toggle: Callable[[int], None],
        reached_start: Callable[[], None],
        copy: Callable[[str], None],
    ) -> None:
        super().__init__(id="transcript")
        self._source = source
        self._palette = palette
        self._toggle = toggle
        self._reached_start = reached_start
        self._copy = copy
        self.cache = LineCache(render)
        self.viewport = Viewport(self._measure)
        self.selection: Selection | None = None
        self._ids: list[int] = []
        self._places: dict[int, int] = {}
        self._measured: dict[int, int] = {}
        self._rows: list[Row] = []
        self._painted: list[Line] = []
        self._look: tuple[tuple[int, int] | None, bool, int, Selection | None] = (None, True, 0, None)
        self._drag_timer: Timer | None = None
        self._drag_at: tuple[int, int] | None = None
        self._bar_drag = False
        self._dragging = False
        self._had_selection = False

    # --- what the machine says; `repaint` is called once, when everything has been said ---

    def reset(self) -> None:
        """Everything may be different: read all items anew. What is being read stays, if it is still there."""
        viewport = self.viewport
        read = [] if viewport.follow else self._ids[viewport.index :]
        items = self._source().ordered()
        self._ids = [item.id for item in items]
        self._places = {item_id: place for place, item_id in enumerate(self._ids)}
        self._forget()
        width = self._text_width
        viewport.rows = self.size.height
        viewport.reset([estimate_height(item, width) + 1 for item in items])
        top = next((self._places[item_id] for item_id in read if item_id in self._places), None)
        if top is not None:
            viewport.go_to_item(top)

    def rerender(self) -> None:
        """Theme, detail or options changed: the same items look different; what is being read stays."""
        self._forget()
        self._estimate_again()

    def add_item(self, item_id: int) -> None:
        """An item was added at the end."""
        item = self._source().get(item_id)
        if item is not None:
            self._places[item_id] = len(self._ids)
            self._ids.append(item_id)
            self.viewport.append(estimate_height(item, self._text_width) + 1)

    def remove_item(self, item_id: int) -> None:
        """An item is gone."""
        place = self._places.pop(item_id, None)
        if place is None:
            return
        del self._ids[place]
        for later in range(place, len(self._ids)):
            self._places[self._ids[later]] = later
        self.viewport.remove(place)
        self.cache.drop(item_id)
        self._measured.pop(item_id, None)
        if place < len(self._ids):
            self._measured.pop(self._ids[place], None)  # the gap before it may be another now
        self.selection = self.selection.without(place) if self.selection else None

    # --- scrolling; each returns `True`, as an action that was done ---

    def scroll_rows(self, delta: int) -> bool:
        """Scroll by rows, down when positive."""
        self.viewport.scroll(delta)
        return self.repaint()

    def scroll_page(self, direction: int) -> bool:
        """Scroll by a screenful."""
        self.viewport.scroll_page(direction)
        return self.repaint()

    def scroll_to_start(self) -> bool:
        """Go to the first row."""
        self.viewport.go_to_start()
        return self.repaint()

    def scroll_to_end(self) -> bool:
        """Go to the end and follow."""
        self.viewport.go_to_end()
        return self.repaint()

    # --- selecting ---

    @property
    def selected(self) -> str:
        """The logical text of the selection, empty when there is none."""
        return selected_text(self.selection, self._lines) if self.selection else ""

    def clear_selection(self) -> bool:
        """Take the selection away; say whether there was one."""
        had = self.selection is not None
        self.selection = None
        if had:
            self.refresh()
        return had

    # --- painting ---

    def repaint(self) -> bool:
        """Work out the rows on the screen and refresh those that differ from what is painted. Returns `True`."""
        size = self.size
        if not size.height or not size.width:
            return True
        self.viewport.rows = size.height
        self.viewport.settle()
        if self._ids and not self.viewport.follow and (self.viewport.index, self.viewport.line) == (0, 0):
            self._reached_start()
        self._rows = self.viewport.visible()
        lines = [self._lines(index)[line] for index, line in self._rows]
        lines += [EMPTY] * (size.height - len(lines))
        self.cache.trim()
        look = (self.viewport.thumb(), self.viewport.follow, self.viewport.unseen, self.selection)
        before, self._painted = self._painted, lines
        if len(before) != len(lines) or look != self._look:
            self._look = look
            self.refresh()
            return True
        pairs = zip(before, lines, strict=True)
        changed = [row for row, (old, new) in enumerate(pairs) if old is not new and old != new]
        if changed:
            self.refresh(*(Region(0, row, size.width, 1) for row in changed))
        return True

    def render_line(self, y: int) -> Strip:
        """Return one row as `repaint` worked it out."""
        width = self.size.width
        strip = self._palette.strip(self._painted[y], width) if y < len(self._painted) else Strip.blank(width)
        cells = self._selected_cells(y)
        if cells is not None:
            strip = self._palette.mark_selected(strip, *cells)
        if (thumb := self._look[0]) is not None:
            shown = thumb[0] <= y < sum(thumb)
            strip = self._palette.overlay_right(strip, "▐" if shown else " ", "faint", 0)
        if y == self.size.height - 1 and not self.viewport.follow:
            strip = self._palette.overlay_right(strip, self.mark_text(), "accent", SCROLLBAR_CELLS)
        return strip

    def mark_text(self) -> str:
        """Return what the mark at the bottom says while the end is not on the screen."""
        unseen = self.viewport.unseen
        return f" ↓ {unseen} new " if unseen else " ↓ End "

    def _selected_cells(self, y: int) -> tuple[int, int] | None:
        if self.selection is None or y >= len(self._rows):
            return None
        cells = self.selection.cells(*self._rows[y])
        if cells is None:
            return None
        line = self._painted[y]
        end = line.width if cells[1] is None else min(cells[1], line.width)
        begin = max(cells[0], line.gutter)
        return (begin, end) if begin < end else None

    # --- items and their lines ---

    @property
    def _text_width(self) -> int:
        return max(1, self.size.width - SCROLLBAR_CELLS)

    def _item(self, index: int) -> Item:
        item = self._source().get(self._ids[index])
        assert item is not None, "the order and the items agree"
        return item

    def _lines(self, index: int) -> Sequence[Line]:
        """Return the lines of the item at `index`, with the empty row that sets it apart from the one before."""
        item = self._item(index)
        gap = gap_before(self._item(index - 1) if index else None, item)
        return self.cache.lines(item, self._text_width, gap)

    def _measure(self, index: int) -> int:
        item = self._item(index)
        if self._measured.get(item.id) != item.version:
            self.viewport.heights[index] = len(self._lines(index))
            self._measured[item.id] = item.version
        return self.viewport.heights[index]

    def _estimate_again(self) -> None:
        width = self._text_width
        source = self._source()
        heights = [estimate_height(item, width) + 1 for item_id in self._ids if (item := source.get(item_id))]
        self.viewport.estimate_again(heights)

    def _forget(self) -> None:
        self.cache.clear()
        self._measured.clear()
        self._painted = []
        self.selection = None

    # --- events ---

    def on_resize(self) -> None:
        """Another width renders everything anew; another height only shows more or less."""
        if self._measured and self.cache.width != self._text_width:
            self._measured.clear()
            self.selection = None
            self.viewport.rows = self.size.height
            self._estimate_again()
        self._painted = []
        self.repaint()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll back."""
        event.stop()
        self.scroll_rows(-WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll on."""
        event.stop()
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a selection, or take hold of the scrollbar."""
        if event.button != 1:
            return
        event.stop()
        self.capture_mouse()
        self._bar_drag = self._look[0] is not None and event.x >= self.size.width - SCROLLBAR_CELLS
        if self._bar_drag:
            self._drag_bar(event.y)
            return
        if self._on_mark(event.x, event.y):
            self.scroll_to_end()
            return
        place = self._place_at(event.x, event.y)
        self._had_selection = self.clear_selection()
        self.selection = Selection(place, place) if place else None
        self._dragging = place is not None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go on with it."""
        if self._bar_drag:
            self._drag_bar(event.y)
        elif self._dragging:
            self._drag_at = (event.x, event.y)
            self._drag_to(event.x, event.y)
            outside = event.y < 0 or event.y >= self.size.height
            if outside and self._drag_timer is None:
                self._drag_timer = self.set_interval(DRAG_SCROLL_SECONDS, self._drag_on)
            elif not outside:
                self._stop_drag_timer()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End it: a selection is copied, a click on an item's head folds or unfolds it."""
        event.stop()
        self.release_mouse()
        self._stop_drag_timer()
        self._bar_drag = self._dragging = False
        if self.selection is not None and self.selection.empty:
            self.selection = None
        elif text := self.selected:
            self._copy(text)

    def on_click(self, event: events.Click) -> None:
        """Once: fold or unfold; twice: a word; three times: a line."""
        event.stop()
        place = self._place_at(event.x, event.y)
        if place is None or (event.chain == 1 and (self.selection is not None or self._had_selection)):
            return
        lines = self._lines(place.item)
        if event.chain == 1:
            item = self._item(place.item)
            if place.line <= 1 or (item.folded and place.line == len(lines) - 1):
                self._toggle(item.id)
            return
        ends = word_at(lines[place.line], place.cell) if event.chain == 2 else None
        if ends is not None:
            self._select(place._replace(cell=ends[0]), place._replace(cell=ends[1]))
        elif event.chain >= 3:
            first, last = whole_line(lines, place.line)
            self._select(Place(place.item, first.row, first.cell), Place(place.item, last.row, last.cell))

    def _select(self, anchor: Place, head: Place) -> None:
        self.selection = Selection(anchor, head)
        self.refresh()
        self._copy(self.selected)

    def _place_at(self, x: int, y: int) -> Place | None:
        """Return the place under the pointer, the nearest one when it is outside the rows."""
        if not self._rows:
            return None
        row = max(0, min(y, len(self._rows) - 1))
        cell = 0 if y < 0 else self.size.width if y >= len(self._rows) else max(0, x)
        return Place(*self._rows[row], cell)

    def _on_mark(self, x: int, y: int) -> bool:
        first = self.size.width - SCROLLBAR_CELLS - len(self.mark_text())
        return not self.viewport.follow and y == self.size.height - 1 and x >= first

    def _drag_to(self, x: int, y: int) -> None:
        place = self._place_at(x, y)
        if place is not None and self.selection is not None:
            self.selection = Selection(self.selection.anchor, place)
            self.refresh()

    def _drag_on(self) -> None:
        if self._drag_at is not None:
            self.viewport.scroll(-1 if self._drag_at[1] < 0 else 1)
            self.repaint()
            self._drag_to(*self._drag_at)

    def _stop_drag_timer(self) -> None:
        if self._drag_timer is not None:
            self._drag_timer.stop()
            self._drag_timer = None

    def _drag_bar(self, y: int) -> None:
        _, total = self.viewport.extent()
        rows = max(1, self.size.height - 1)
        self.viewport.go_to_row(max(0, total - self.size.height) * max(0, min(y, rows)) // rows)
        self.repaint()
