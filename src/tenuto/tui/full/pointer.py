"""The mouse in the transcript: selecting text, folding with a click, dragging the scrollbar."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct
from textual import events
from textual.timer import Timer
from textual.widget import Widget

from tenuto.tui.full.viewport import Viewport
from tenuto.tui.render.frame import tells_of_more
from tenuto.tui.render.line import Line, Position, copy_text, last_row
from tenuto.tui.render.width import cell_width, take_cells
from tenuto.tui.state.item import Item

_WORD = re.compile(r"[\w./~@%+#=:?&$-]+")
BETWEEN_ITEMS = "\n\n"


class Place(NamedTuple):
    """An item by its place in the transcript, a line of it, and a cell of that line."""

    item: int
    line: int
    cell: int


class Selection(Struct, frozen=True):
    """From where the button went down to where the pointer is; the end is exclusive."""

    anchor: Place
    head: Place

    @property
    def empty(self) -> bool:
        """Whether nothing is selected."""
        return self.anchor == self.head

    @property
    def ends(self) -> tuple[Place, Place]:
        """Both ends in the order of the text."""
        return (self.anchor, self.head) if self.anchor <= self.head else (self.head, self.anchor)

    def cells(self, index: int, line: int) -> tuple[int, int | None] | None:
        """Return the selected cells of a row, `None` as the end for all the rest, or `None` when there are none."""
        first, last = self.ends
        row = (index, line)
        if self.empty or row < first[:2] or row > last[:2]:
            return None
        begin = first.cell if row == first[:2] else 0
        end = last.cell if row == last[:2] else None
        return None if end == 0 and begin == 0 else (begin, end)

    def without(self, index: int) -> Selection | None:
        """Return the selection after the item at `index` was taken out, `None` when it ended there."""
        if index in (self.anchor.item, self.head.item):
            return None
        ends = [place._replace(item=place.item - (place.item > index)) for place in (self.anchor, self.head)]
        return Selection(ends[0], ends[1])


def moved(selection: Selection, place_of: Callable[[int], int | None]) -> Selection | None:
    """Return the selection where its items stand now, which `place_of` says; `None` when one of its ends is gone."""
    anchor, head = place_of(selection.anchor.item), place_of(selection.head.item)
    if anchor is None or head is None:
        return None
    return Selection(selection.anchor._replace(item=anchor), selection.head._replace(item=head))


def selected_text(selection: Selection, lines_of: Callable[[int], Sequence[Line]]) -> str:
    """Return the logical text of what is selected; `lines_of` gives the lines of an item by its place."""
    first, last = selection.ends
    if selection.empty:
        return ""
    pieces: list[str] = []
    for index in range(first.item, last.item + 1):
        begin = Position(first.line, first.cell) if index == first.item else None
        end = Position(last.line, last.cell) if index == last.item else None
        pieces.append(copy_text(lines_of(index), begin, end).strip("\n"))
    return BETWEEN_ITEMS.join(pieces)


SENTENCE_SIGNS = ".,:"
"""What ends a sentence, and is no part of the word before it."""


def word_at(line: Line, cell: int) -> tuple[int, int] | None:
    """Return the cells of the word (path, address, identifier) at a cell, `None` where there is none."""
    text = line.text
    at = take_cells(text, cell)
    for match in _WORD.finditer(text):
        if match.start() <= at < match.end():
            end = match.start() + len(match[0].rstrip(SENTENCE_SIGNS))
            return cell_width(text[: match.start()]), cell_width(text[: end if at < end else match.end()])
    return None


def whole_line(lines: Sequence[Line], line: int) -> tuple[Position, Position]:
    """Return the first and the last position of the logical line that a row belongs to."""
    first, last = line, last_row(lines, line)
    while first > 0 and lines[first - 1].soft:
        first -= 1
    return Position(first, lines[first].gutter), Position(last, lines[last].width)


DRAG_SCROLL_SECONDS = 0.05


class PointedWidget(Widget):
    """What the pointer needs of the transcript. `shown` is the item and the line of each row on the screen."""

    viewport: Viewport
    shown: list[tuple[int, int]]

    def item_at(self, index: int) -> Item:
        """Return the item that stands there."""
        raise NotImplementedError

    def lines_of(self, index: int) -> Sequence[Line]:
        """Return the lines of the item at `index`."""
        raise NotImplementedError

    def toggle(self, item_id: int) -> None:
        """Collapse or expand an item."""
        raise NotImplementedError

    def is_on_bar(self, x: int) -> bool:
        """Say whether a column is the scrollbar's."""
        raise NotImplementedError

    def is_on_mark(self, x: int, y: int) -> bool:
        """Say whether a cell belongs to the mark that leads to the end."""
        raise NotImplementedError

    def scroll_rows(self, delta: int) -> bool:
        """Scroll by rows, down when positive."""
        raise NotImplementedError

    def scroll_to_end(self) -> bool:
        """Go to the end and follow."""
        raise NotImplementedError

    def repaint(self) -> bool:
        """Refresh the rows that differ from what is painted."""
        raise NotImplementedError


class Pointer:
    """What the button went down on, and what has been selected since."""

    def __init__(self, view: PointedWidget) -> None:
        self._view = view
        self.selection: Selection | None = None
        self._timer: Timer | None = None
        self._at: tuple[int, int] | None = None
        self._on_bar = False
        self._dragging = False
        self._had_selection = False

    @property
    def selected(self) -> str:
        """The logical text of the selection, empty when there is none."""
        return selected_text(self.selection, self._view.lines_of) if self.selection else ""

    def clear(self) -> bool:
        """Take the selection away; say whether there was one."""
        had = self.selection is not None
        self.selection = None
        if had:
            self._view.refresh()
        return had

    def cells(self, row: tuple[int, int], line: Line) -> tuple[int, int] | None:
        """Return the selected cells of a row (item and line number), the gutter left out."""
        if self.selection is None:
            return None
        cells = self.selection.cells(*row)
        if cells is None:
            return None
        end = line.width if cells[1] is None else min(cells[1], line.width)
        begin = max(cells[0], line.gutter)
        return (begin, end) if begin < end else None

    # --- the button ---

    def press(self, event: events.MouseDown) -> None:
        """Begin a selection, or take hold of the scrollbar."""
        view = self._view
        view.capture_mouse()
        self._on_bar = view.is_on_bar(event.x)
        if self._on_bar:
            self._drag_bar(event.y)
            return
        if view.is_on_mark(event.x, event.y):
            view.scroll_to_end()
            return
        place = self._place_at(event.x, event.y)
        self._had_selection = self.clear()
        self.selection = Selection(place, place) if place else None
        self._dragging = place is not None

    def move(self, event: events.MouseMove) -> None:
        """Go on with it; outside the screen it scrolls."""
        if self._on_bar:
            self._drag_bar(event.y)
        elif self._dragging:
            self._at = (event.x, event.y)
            self._select_to(event.x, event.y)
            outside = event.y < 0 or event.y >= self._view.size.height
            if outside and self._timer is None:
                self._timer = self._view.set_interval(DRAG_SCROLL_SECONDS, self._scroll_on)
            elif not outside:
                self._stop_timer()

    def release(self) -> str:
        """End it; return the text that was selected."""
        self._view.release_mouse()
        self._stop_timer()
        was_dragging, self._dragging, self._on_bar = self._dragging, False, False
        if self.selection is not None and self.selection.empty:
            self.selection = None
        return self.selected if was_dragging else ""

    def click(self, event: events.Click) -> str:
        """Once: fold or unfold; twice: select a word; three times: a line. Returns what was selected.

        What ends a selection, or has made one, is no click.
        """
        view = self._view
        place = self._place_at(event.x, event.y)
        if place is None or (event.chain == 1 and (self.selection is not None or self._had_selection)):
            return ""
        lines = view.lines_of(place.item)
        if event.chain == 1:
            self._fold(place, lines[place.line : place.line + 2])
            return ""
        ends = word_at(lines[place.line], place.cell) if event.chain == 2 else None
        if ends is not None:
            return self._select(place._replace(cell=ends[0]), place._replace(cell=ends[1]))
        if event.chain >= 3:
            first, last = whole_line(lines, place.line)
            return self._select(Place(place.item, first.row, first.cell), Place(place.item, last.row, last.cell))
        return ""

    def _drag_bar(self, y: int) -> None:
        self._view.viewport.go_to_thumb(y)
        self._view.repaint()

    def _fold(self, place: Place, rest: Sequence[Line]) -> None:
        """Fold or unfold by a click on an item's head, or on the row that says how much is folded.

        `rest` is the row that was clicked, and the next one where there is one.
        """
        item = self._view.item_at(place.item)
        if place.line <= 1 or (item.folded and (len(rest) == 1 or any(map(tells_of_more, rest[:1])))):
            self._view.toggle(item.id)

    def _select(self, anchor: Place, head: Place) -> str:
        self.selection = Selection(anchor, head)
        self._view.refresh()
        return self.selected

    def _select_to(self, x: int, y: int) -> None:
        place = self._place_at(x, y)
        if place is not None and self.selection is not None:
            self.selection = Selection(self.selection.anchor, place)
            self._view.refresh()

    def _scroll_on(self) -> None:
        if self._at is not None:
            self._view.scroll_rows(-1 if self._at[1] < 0 else 1)
            self._select_to(*self._at)

    def _place_at(self, x: int, y: int) -> Place | None:
        """Return the place under the pointer, the nearest one when it is outside the rows."""
        shown = self._view.shown
        if not shown:
            return None
        row = max(0, min(y, len(shown) - 1))
        cell = 0 if y < 0 else self._view.size.width if y >= len(shown) else max(0, x)
        return Place(*shown[row], cell)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
