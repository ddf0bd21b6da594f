"""What is marked in an item's rows: the matches of the open search, the block under the cursor. Pure, for both screens.

Only the items on the screen are looked at, and each once for as long as it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tenuto.text.matching import counts_capitals
from tenuto.tui.render.line import Line, Span, logical_lines, text_start
from tenuto.tui.render.width import cell_width, take_cells
from tenuto.tui.state.item import Item
from tenuto.tui.state.search import Hit, Search
from tenuto.tui.state.state import UiState


class Cells(NamedTuple):
    """Cells `begin` to `end` (exclusive) of a row."""

    row: int
    begin: int
    end: int


Match = tuple[Cells, ...]
"""Where a match stands: one stretch of cells, or one in each row that it wraps over."""


def find_in_text(text: str, query: str) -> Iterator[int]:
    """Yield the index of each match in a text."""
    if not query:
        return
    searched = text if counts_capitals(query) else _lower(text)
    at = searched.find(query)
    while at >= 0:
        yield at
        at = searched.find(query, at + len(query))


def find_in_lines(lines: Sequence[Line], query: str) -> list[Match]:
    """Return the matches in an item's rows, gutters left out, wrapped rows read as one line."""
    found: list[Match] = []
    for first, last in logical_lines(lines):
        found.extend(_find_in_rows(lines, first, last, query))
    return found


def _find_in_rows(lines: Sequence[Line], first: int, last: int, query: str) -> Iterator[Match]:
    """Yield the matches in the rows of one logical line."""
    text = ""
    spans: list[tuple[int, int, int]] = []  # row, where its text begins in the joined text, and where it ends
    for row in range(first, last + 1):
        shown = lines[row].text[text_start(lines[row]) :]
        spans.append((row, len(text), len(text) + len(shown)))
        text += shown if row == last else shown + lines[row].join
    for at in find_in_text(text, query):
        end = at + len(query)
        yield tuple(
            Cells(row, *_cells(lines[row], max(at, begin) - begin, min(end, stop) - begin))
            for row, begin, stop in spans
            if begin < end and at < stop
        )


def _cells(line: Line, begin: int, end: int) -> tuple[int, int]:
    start = text_start(line)
    text = line.text
    return cell_width(text[: start + begin]), cell_width(text[: start + end])


def snippet(text: str, query: str, ordinal: int, width: int) -> tuple[str, str, str]:
    """Return the line of the match of that number in about `width` characters: before it, the match, behind it."""
    for number, at in enumerate(find_in_text(text, query)):
        if number == ordinal:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            line_end = len(text) if end < 0 else end
            begin = max(start, at - max(0, width - len(query)) // 3)
            before = text[begin:at].lstrip() if begin == start else f"…{text[begin:at]}"
            return before, text[at : at + len(query)], text[at + len(query) : min(line_end, begin + width)]
    return "", "", ""


def _lower(text: str) -> str:
    """Return the text in lower case, every character at its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join([low if len(low := character.lower()) == 1 else character for character in text])


MATCH, PRESENT_MATCH, BLOCK = "match", "match.current", "block.mark"
"""Style names."""


class Mark(NamedTuple):
    """Cells `begin` to `end` (exclusive) of a row are drawn in this style over their own."""

    begin: int
    end: int
    style: str


RowMarks = tuple[Mark, ...]


class Marks:
    """Finds the marks of the items on the screen, and remembers what it found in them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, list[Match]]] = {}

    def matches(self, item: Item, lines: Sequence[Line], query: str) -> list[Match]:
        """Return the matches in an item's lines."""
        key = (query, item.version, item.folded, id(lines))
        known = self._known.get(item.id)
        if known is None or known[0] != key:
            known = self._known[item.id] = (key, find_in_lines(lines, query))
        return known[1]

    def forget(self) -> None:
        """Forget what was found: nothing is looked for any more."""
        self._known.clear()

    def of_item(self, item: Item, lines: Sequence[Line], state: UiState, gap: int) -> Callable[[int], RowMarks]:
        """Return what gives the marks of an item's lines, by number; the first `gap` lines are not its own."""
        found = self._of_search(item, lines, state.search) if state.search is not None else {}
        block: RowMarks = (Mark(0, 1, BLOCK),) if item.id == state.block else ()
        return lambda number: (*(block if number >= gap else ()), *found.get(number, ()))

    def _of_search(self, item: Item, lines: Sequence[Line], search: Search) -> dict[int, list[Mark]]:
        if not search.query:
            return {}
        found = self.matches(item, lines, search.query)
        current = search.current
        present = present_match(found, current, search.ordinal) if current and current.id == item.id else None
        marks: dict[int, list[Mark]] = {}
        for number, match in enumerate(found):
            style = PRESENT_MATCH if number == present else MATCH
            for cells in match:
                marks.setdefault(cells.row, []).append(Mark(cells.begin, cells.end, style))
        return marks


def present_match(found: Sequence[Match], hit: Hit, ordinal: int) -> int | None:
    """Return which of the matches in an item's rows is the present one.

    The text of an item may have other matches than its rows (Markdown's own marks): then it is the nearest by rank.
    """
    if not found:
        return None
    return ordinal if len(found) == hit.count else min(len(found) - 1, ordinal * len(found) // hit.count)


def draw_marks(line: Line, marks: RowMarks) -> Line:
    """Return a row with the marks' styles over its own."""
    spans = line.spans
    for mark in marks:
        spans = tuple(_restyled(spans, mark))
    return Line(spans)


def _restyled(spans: Sequence[Span], mark: Mark) -> Iterator[Span]:
    at = 0
    for text, style in spans:
        begin = take_cells(text, mark.begin - at)
        end = max(begin, take_cells(text, mark.end - at))
        pieces = ((text[:begin], style), (text[begin:end], f"{style} {mark.style}"), (text[end:], style))
        yield from (piece for piece in pieces if piece[0])
        at += cell_width(text)
