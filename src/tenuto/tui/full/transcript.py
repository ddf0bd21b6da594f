"""The transcript: one widget that paints rows, whatever the number of items (DESIGN section 9).

It reads the machine's items, renders those on the screen, and repaints only the rows that changed. Scrolling is
`viewport.py`, the mouse `pointer.py`, what is marked `render/marks.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from textual import events
from textual.geometry import Region
from textual.strip import Strip

from tenuto.text.packed import Packed
from tenuto.tui.full.palette import Palette
from tenuto.tui.full.pointer import PointedWidget, Pointer, Selection, moved
from tenuto.tui.full.viewport import Viewport
from tenuto.tui.render.items import estimate_height, gap_before
from tenuto.tui.render.line import EMPTY, Line
from tenuto.tui.render.marks import Marks, RowMarks, present_match
from tenuto.tui.state.item import GapEnd, Item
from tenuto.tui.state.state import UiState

MARK_ROWS = 3
"""Rows at the bottom of which one has the mark: the last whose text leaves it room."""


def mark_text(unseen: int) -> str:
    """Return what the mark says; `unseen` items have come since the end was seen."""
    return f" ↓ {unseen} new " if unseen else " ↓ End "


def row_of_mark(rows: int, last_widths: Sequence[int], room: int) -> int:
    """Return which of `rows` rows has the mark: the last, or one close to it whose text is at most `room` cells wide.

    `last_widths` are the widths of the last `MARK_ROWS` rows, in cells.
    """
    above = next((above for above, width in enumerate(reversed(last_widths)) if width <= room), 0)
    return rows - 1 - above


class ItemOrder:
    """Items by id and by place. A measured height holds while the item's version is the same, and what is above it."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._places: dict[int, int] = {}
        self._measured: dict[int, int] = {}

    def __contains__(self, item_id: int) -> bool:
        return item_id in self._places

    def place_of(self, item_id: int) -> int | None:
        """Return where an item stands, `None` when it is not there."""
        return self._places.get(item_id)

    def first_place(self, ids: Iterable[int]) -> int | None:
        """Return the place of the first of these items that is there."""
        return next((self._places[item_id] for item_id in ids if item_id in self._places), None)

    def append(self, item_id: int) -> None:
        """Put an item at the end."""
        self._places[item_id] = len(self.ids)
        self.ids.append(item_id)

    def remove(self, item_id: int) -> int | None:
        """Take an item out; return where it stood, `None` when it was not there."""
        place = self._places.pop(item_id, None)
        if place is None:
            return None
        del self.ids[place]
        for later in range(place, len(self.ids)):
            self._places[self.ids[later]] = later
        for changed in (item_id, *self.ids[place : place + 1]):
            self._measured.pop(changed, None)
        return place

    def replace(self, ids: Sequence[int]) -> list[int]:
        """Take another order; return the items that are not there any more."""
        stood_behind = dict(pairwise([0, *self.ids]))
        for above, item_id in pairwise([0, *ids]):
            if stood_behind.get(above) != item_id:
                self._measured.pop(item_id, None)
        before, self.ids = self.ids, list(ids)
        self._places = {item_id: place for place, item_id in enumerate(self.ids)}
        gone = [item_id for item_id in before if item_id not in self._places]
        for item_id in gone:
            self._measured.pop(item_id, None)
        return gone

    # --- heights ---

    def measure(self, item: Item) -> bool:
        """Say whether an item has to be measured, which counts as done then."""
        if self._measured.get(item.id) == item.version:
            return False
        self._measured[item.id] = item.version
        return True

    def is_measured(self, item_id: int) -> bool:
        """Say whether the height of an item is known, or was for an older version of it."""
        return item_id in self._measured

    def forget_heights(self) -> None:
        """Nothing is measured any more."""
        self._measured.clear()


MAX_LINES = 3_000
LineRenderer = Callable[[Item, int], Sequence[Line]]
"""Renders an item for a screen of so many cells."""


class Entry(NamedTuple):
    """An item's lines, and what they were made from."""

    version: int
    gap: int
    lines: Sequence[Line]


class LineCache:
    """Least recently used items go first; those asked for since the last `trim` stay, however long they are."""

    def __init__(self, render: LineRenderer, max_lines: int = MAX_LINES) -> None:
        self._render = render
        self._max_lines = max_lines
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._count = 0
        self._needed: set[int] = set()
        self.width = 0

    def __len__(self) -> int:
        """Return the number of lines kept."""
        return self._count

    def lines(self, item: Item, width: int, gap: int) -> Sequence[Line]:
        """Return the item's lines for `width` cells behind `gap` empty ones; one that is not to be seen has none."""
        if width != self.width:
            self.clear()
            self.width = width
        self._needed.add(item.id)
        entry = self._entries.get(item.id)
        if entry is not None and (entry.version, entry.gap) == (item.version, gap):
            self._entries.move_to_end(item.id)
            return entry.lines
        self.drop(item.id)
        lines = self._render(item, width)
        entry = Entry(item.version, gap, _behind((EMPTY,) * gap, lines) if lines else [])
        self._entries[item.id] = entry
        self._count += len(entry.lines)
        return entry.lines

    def trim(self) -> None:
        """Forget what is too much: to be called after each frame."""
        while self._count > self._max_lines and (oldest := next(iter(self._entries))) not in self._needed:
            self.drop(oldest)
        self._needed.clear()

    def drop(self, item_id: int) -> None:
        """Forget an item's lines."""
        entry = self._entries.pop(item_id, None)
        if entry is not None:
            self._count -= len(entry.lines)

    def clear(self) -> None:
        """Forget everything (another width, detail or theme)."""
        self._entries.clear()
        self._count = 0


def _behind(gap: Sequence[Line], lines: Sequence[Line]) -> Sequence[Line]:
    return lines.copy(gap) if isinstance(lines, Packed) else [*gap, *lines]


WHEEL_ROWS = 3
SCROLLBAR_CELLS = 1
Row = tuple[int, int]


class TranscriptView(PointedWidget, can_focus=False):
    """Paints the transcript of `state()`.

    `toggle` gets the id of an item whose head is clicked, `copy` a text that was selected.
    `reached_gap` is called when the user comes to a stretch that is not loaded, with its item and the end that is
    wanted. `preview` shows until there is a session. `selects` says whether the mouse does more than scroll.
    """

    def __init__(
        self,
        state: Callable[[], UiState],
        render: LineRenderer,
        palette: Palette,
        *,
        toggle: Callable[[int], None],
        reached_gap: Callable[[int, GapEnd], None],
        copy: Callable[[str], None],
        preview: Sequence[Line] = (),
    ) -> None:
        super().__init__(id="transcript")
        self._preview = preview
        self._state = state
        self._palette = palette
        self._toggle = toggle
        self._reached_gap = reached_gap
        self._copy = copy
        self.cache = LineCache(render)
        self.viewport = Viewport(self._measure)
        self.pointer = Pointer(self)
        self.selects = True
        self._marks = Marks()
        self._kept: tuple[list[int], int] | None = None
        self._wants_start = False
        self.order = ItemOrder()
        self._width = 0
        self.shown = list[Row]()
        self._painted: list[tuple[Line, RowMarks]] = []
        self._mark_row = -1
        self._look: tuple[tuple[int, int] | None, int, int, Selection | None] = (None, -1, 0, None)

    # --- what the machine says; `repaint` is called once, when everything has been said ---

    def reset(self) -> None:
        """Everything may be different: read all items anew. What is being read stays, if it is still there."""
        self._forget()
        self.viewport.line = 0
        self._read_items()

    def add_older(self) -> None:
        """Items came before or between others, or are gone: what is known of the others holds."""
        goes_to_start = self._wants_start and (self.viewport.index, self.viewport.line) == (0, 0)
        old = self.order.ids
        self._read_items()
        if self.pointer.selection is not None:
            self.pointer.selection = moved(self.pointer.selection, lambda place: self.order.place_of(old[place]))
        self._painted = []
        if goes_to_start:
            self._go_to_start()

    def rerender(self) -> None:
        """Detail or options changed: the same items look different; what is being read stays."""
        self._forget()
        self._estimate_again()

    def add_item(self, item_id: int) -> None:
        """An item was added at the end."""
        item = self._state().transcript.get(item_id)
        if item is not None:
            self.order.append(item_id)
            self.viewport.append(estimate_height(item, self._text_width) + 1)

    def remove_item(self, item_id: int) -> None:
        """An item is gone."""
        place = self.order.remove(item_id)
        if place is None:
            return
        self.viewport.remove(place)
        self.cache.drop(item_id)
        if self.pointer.selection is not None:
            self.pointer.selection = self.pointer.selection.without(place)

    # --- reading: what is looked for, the block under the cursor ---

    def keep_place(self) -> None:
        """Remember what is being read."""
        viewport = self.viewport
        self._kept = ([], 0) if viewport.follow else (self.order.ids[viewport.index :], viewport.line)

    def restore_place(self) -> None:
        """Go back to what was being read when it was remembered."""
        if self._kept is None:
            return
        (ids, line), self._kept = self._kept, None
        self.viewport.held = False
        place = self.order.first_place(ids)
        if place is None:
            self.viewport.go_to_end()
        else:
            same = self.order.ids[place] == ids[0]
            self.viewport.go_to_item(place)
            self.viewport.scroll(line if same else 0)

    def show_match(self) -> None:
        """Bring the present match of the search on the screen."""
        search = self._state().search
        hit = search.current if search is not None else None
        index = self.order.place_of(hit.id) if hit is not None else None
        if search is None or hit is None or index is None:
            return
        lines = self.lines_of(index)
        found = self._marks.matches(self.item_at(index), lines, search.query)
        present = present_match(found, hit, search.ordinal)
        row = found[present][0].row if present is not None else min(self._gap(index), max(0, len(lines) - 1))
        self._hold()
        self.viewport.reveal(index, row)

    def show_block(self) -> None:
        """Bring the block under the cursor on the screen."""
        index = self.order.place_of(self._state().block)
        self._hold()
        if index is not None:
            self.viewport.reveal_item(index)

    def last_seen(self) -> int:
        """Return the id of the last item that begins or goes on on the screen, 0 where there is none."""
        ids = self.order.ids
        return ids[self.shown[-1][0]] if self.shown and self.shown[-1][0] < len(ids) else 0

    def _hold(self) -> None:
        """Follow no new text while somebody looks at a match or a block."""
        self.viewport.held = self._state().looked_at in self.order

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
        self._go_to_start()
        return self.repaint()

    def _go_to_start(self) -> None:
        """Go there; where the session begins with what is not loaded, that is where the user wants to be."""
        self.viewport.go_to_start()
        first = next(iter(self.order.ids), 0)
        self._wants_start = first in self._state().gaps
        if self._wants_start:
            self._reached_gap(first, "oldest")

    def scroll_to_end(self) -> bool:
        """Go to the end and follow."""
        self.viewport.go_to_end()
        return self.repaint()

    # --- painting ---

    def repaint(self) -> bool:
        """Work out the rows on the screen and refresh those that differ from what is painted. Returns `True`."""
        size = self.size
        if not size.height or not size.width:
            return True
        self._take_width()
        viewport = self.viewport
        viewport.rows = size.height
        self._hold()
        viewport.settle()
        self.shown = viewport.visible()
        self._note_gap()
        painted = self._marked_lines() or [(line, ()) for line in self._previewed(size.height)]
        painted += [(EMPTY, ())] * (size.height - len(painted))
        self.cache.trim()
        room = self._text_width - len(mark_text(viewport.unseen))
        last = [line.width for line, _ in painted[-MARK_ROWS:]]
        self._mark_row = -1 if viewport.ended else row_of_mark(len(painted), last, room)
        look = (viewport.thumb(), self._mark_row, viewport.unseen, self.pointer.selection)
        before, self._painted = self._painted, painted
        if len(before) != len(painted) or look != self._look:
            self._look = look
            self.refresh()
            return True
        pairs = zip(before, painted, strict=True)
        changed = [row for row, (old, new) in enumerate(pairs) if old is not new and old != new]
        if changed:
            self.refresh(*(Region(0, row, size.width, 1) for row in changed))
        return True

    def _previewed(self, rows: int) -> Sequence[Line]:
        """Return what is known of the session's end before it is open."""
        state = self._state()
        if state.session_id and not state.replaying:
            self._preview = ()
        return self._preview[-rows:]

    def _note_gap(self) -> None:
        """Ask for what is missing where a gap is on the screen: what comes below it, if it is the first thing there."""
        gaps = self._state().gaps
        if not gaps or self.viewport.follow:
            return
        for index, _ in self.shown:
            gap = gaps.get(self.order.ids[index])
            if gap is not None and not gap.asked:
                self._reached_gap(self.order.ids[index], "oldest" if index > self.shown[0][0] else "newest")
                return

    def _marked_lines(self) -> list[tuple[Line, RowMarks]]:
        """Return the lines of the rows on the screen with what is marked in each."""
        state = self._state()
        if state.search is None and not state.block:
            self._marks.forget()
            lines_of = {index: self.lines_of(index) for index in dict(self.shown)}
            return [(lines_of[index][line], ()) for index, line in self.shown]
        marked: list[tuple[Line, RowMarks]] = []
        for index, rows in groupby(self.shown, key=itemgetter(0)):
            item, lines = self.item_at(index), self.lines_of(index)
            marks = self._marks.of_item(item, lines, state, self._gap(index))
            marked += [(lines[number], marks(number)) for _, number in rows]
        return marked

    def render_line(self, y: int) -> Strip:
        """Return one row as `repaint` worked it out."""
        width = self.size.width
        if y >= len(self._painted):
            return Strip.blank(width)
        line, marks = self._painted[y]
        strip = self._palette.strip(line, width)
        for mark in marks:
            strip = self._palette.mark(strip, mark.begin, mark.end, mark.style)
        cells = self.pointer.cells(self.shown[y], line) if y < len(self.shown) else None
        if cells is not None:
            strip = self._palette.mark(strip, *cells, "selection")
        if (thumb := self._look[0]) is not None and thumb[0] <= y < sum(thumb):
            strip = self._palette.overlay_right(strip, "▐", f"{line.fill} faint", 0)
        if y == self._mark_row:
            strip = self._palette.overlay_right(strip, mark_text(self.viewport.unseen), "accent", SCROLLBAR_CELLS)
        return strip

    # --- items and their lines ---

    @property
    def _text_width(self) -> int:
        return max(1, self.size.width - SCROLLBAR_CELLS)

    def _take_width(self) -> None:
        """Measure all anew for another width, which is there before word of it: something may be painted in between."""
        if self._width == self._text_width:
            return
        self._width = self._text_width
        self.order.forget_heights()
        self.pointer.selection = None
        self.viewport.rows = self.size.height
        self._estimate_again()

    def item_at(self, index: int) -> Item:
        """Return the item that stands there."""
        item = self._state().transcript.get(self.order.ids[index])
        assert item is not None, "the order and the items agree"
        return item

    def _gap(self, index: int) -> int:
        return gap_before(self.item_at(index - 1) if index else None, self.item_at(index))

    def lines_of(self, index: int) -> Sequence[Line]:
        """Return the lines of the item at `index`, with the empty row that sets it apart from the one before."""
        return self.cache.lines(self.item_at(index), self._width or self._text_width, self._gap(index))

    def _measure(self, index: int) -> int:
        item = self.item_at(index)
        return len(self.lines_of(index)) if self.order.measure(item) else self.viewport.heights[index]

    def _read_items(self) -> None:
        """Take all items over, with the heights that hold. The row at the top stays, if its item is there."""
        viewport, order, old = self.viewport, self.order, self.order.ids
        items = self._state().transcript.ordered()
        heights = dict(zip(old, viewport.heights, strict=True))
        for item_id in order.replace([item.id for item in items]):
            self.cache.drop(item_id)
        width = self._text_width
        known = [heights.get(item.id, 0) if order.is_measured(item.id) else 0 for item in items]
        taken = [height or estimate_height(item, width) + 1 for height, item in zip(known, items, strict=True)]
        viewport.rows = self.size.height
        read = [] if viewport.follow else old[viewport.index :]
        top = order.first_place(read)
        if top is None:
            viewport.reset(taken)
            return
        line = viewport.line if order.ids[top] == read[0] else 0
        seen = order.first_place(reversed(old[: len(old) - viewport.unseen]))
        viewport.reset_at(taken, top, line, len(items) - 1 - (top if seen is None else seen))

    def _estimate_again(self) -> None:
        width = self._text_width
        items = self._state().transcript
        heights = [estimate_height(item, width) + 1 for item_id in self.order.ids if (item := items.get(item_id))]
        self.viewport.estimate_again(heights)

    def _forget(self) -> None:
        self.cache.clear()
        self.order.forget_heights()
        self._painted = []
        self.pointer.selection = None

    # --- places; the pointer's events ---

    def toggle(self, item_id: int) -> None:
        """Collapse or expand an item."""
        self._toggle(item_id)

    def is_on_bar(self, x: int) -> bool:
        """Say whether a column is the scrollbar's."""
        return self._look[0] is not None and x >= self.size.width - SCROLLBAR_CELLS

    def is_on_mark(self, x: int, y: int) -> bool:
        """Say whether a cell belongs to the mark that leads to the end."""
        first = self.size.width - SCROLLBAR_CELLS - len(mark_text(self.viewport.unseen))
        return y == self._mark_row and x >= first

    def on_resize(self) -> None:
        """Another width renders everything anew; another height only shows more or less.

        The end stays on the screen where it was, and so does what is looked at.
        """
        looked_at = self._state().looked_at
        place = self.order.place_of(looked_at)
        shown = any(index == place for index, _ in self.shown)
        self._take_width()
        self._painted = []
        self.viewport.rows = self.size.height
        self.viewport.follow = self.viewport.follow or self.viewport.ended
        self.viewport.settle()
        if looked_at and shown:
            self.show_match()
            self.show_block()
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
        """Begin to select."""
        if event.button == 1 and self.selects:
            event.stop()
            self.pointer.press(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select, or scroll."""
        self.pointer.move(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """What was selected is copied."""
        event.stop()
        if text := self.pointer.release():
            self._copy(text)

    def on_click(self, event: events.Click) -> None:
        """Fold, or select a word or a line."""
        event.stop()
        if self.selects and (text := self.pointer.click(event)):
            self._copy(text)
