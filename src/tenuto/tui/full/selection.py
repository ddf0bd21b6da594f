"""What the mouse has selected in the transcript, and the text of it. Pure.

A place is an item, a line of it and a cell, so a selection stays on its text while the screen scrolls or items are
added. Copying gives the logical text: no gutter, wrapped lines joined (`render/line.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from tenuto.tui.render.line import Line, Position, copy_text, last_row
from tenuto.tui.render.width import cell_width, take_cells

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
