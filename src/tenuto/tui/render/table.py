"""Tables: as wide as they need, no wider than the screen; cells wrap; too many columns become records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from tenuto.tui.render.line import EMPTY, Line, Span
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.width import cell_width
from tenuto.tui.render.wrap import wrap

Alignment = Literal["left", "right", "center"]
MIN_COLUMN = 4


class Cell(NamedTuple):
    """One cell of a table; its spans have no newline."""

    spans: Sequence[Span]
    alignment: Alignment = "left"

    @property
    def width(self) -> int:
        """Cells of its text on one row."""
        return sum(cell_width(text) for text, _style in self.spans)


def table_lines(header: Sequence[Cell], rows: Sequence[Sequence[Cell]], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a table's rows within `width` cells; cell by cell where columns have no room, or would not be seen."""
    columns = len(header)
    if not glyphs.column or columns * MIN_COLUMN + 3 * (columns - 1) > width:
        return _records(header, rows, width)
    natural = [max(1, *(row[index].width for row in [header, *rows])) for index in range(columns)]
    widths = fit_columns(natural, width - 3 * (columns - 1))
    if widths != natural:
        least = [max(_longest_word(row[index]) for row in [header, *rows]) for index in range(columns)]
        widths = keep_words_whole(widths, least)
    lines = _row(header, widths, glyphs)
    rule = f"{glyphs.rule}{glyphs.cross}{glyphs.rule}".join(glyphs.rule * column for column in widths)
    lines.append(Line(((rule, "rule"),)))
    drawn = [_row(row, widths, glyphs) for row in rows]
    # Rows of several lines would run into each other.
    between = [Line(((rule, "rule"),))] if any(len(row) > 1 for row in drawn) else []
    for place, row in enumerate(drawn):
        lines.extend([*between, *row] if place else row)
    return lines


def fit_columns(natural: Sequence[int], available: int) -> list[int]:
    """Return column widths whose sum is at most `available`: narrow columns keep theirs, wide ones share the rest."""
    if sum(natural) <= available:
        return list(natural)
    widths = list(natural)
    left, open_columns = available, sorted(range(len(natural)), key=lambda index: natural[index])
    while open_columns:
        share = left // len(open_columns)
        index = open_columns[0]
        if natural[index] > share:
            break
        left -= natural[index]
        open_columns.pop(0)
    for position, index in enumerate(open_columns):
        share = left // (len(open_columns) - position)
        widths[index] = share
        left -= share
    return widths


def keep_words_whole(widths: Sequence[int], least: Sequence[int]) -> list[int]:
    """Return the widths with cells moved to where a word of `least` cells has none, from where they can be spared."""
    moved = list(widths)
    for index in sorted(range(len(moved)), key=lambda index: least[index]):
        spare = [max(0, width - words) for width, words in zip(moved, least, strict=True)]
        lacking = least[index] - moved[index]
        if not 0 < lacking <= sum(spare):
            continue
        moved[index] += lacking
        while lacking:
            giver = max(range(len(moved)), key=lambda place: spare[place] if place != index else 0)
            moved[giver] -= 1
            spare[giver] -= 1
            lacking -= 1
    return moved


def _longest_word(cell: Cell) -> int:
    return max((cell_width(word) for word in "".join(text for text, _style in cell.spans).split()), default=0)


def _row(cells: Sequence[Cell], widths: Sequence[int], glyphs: Glyphs) -> list[Line]:
    wrapped = [wrap(cell.spans, column) for cell, column in zip(cells, widths, strict=True)]
    lines: list[Line] = []
    rule = (f" {glyphs.column} ", "rule")
    for height in range(max(len(lines_of_cell) for lines_of_cell in wrapped)):
        spans: list[Span] = []
        for index, column in enumerate(widths):
            line = wrapped[index][height] if height < len(wrapped[index]) else EMPTY
            if index:
                spans.append(rule)
            _align(spans, line, column, cells[index].alignment)
        while spans and not spans[-1][0].strip():
            spans.pop()
        lines.append(Line(tuple(spans)))
    return lines


def _align(spans: list[Span], line: Line, column: int, alignment: Alignment) -> None:
    space = column - line.width
    before = {"left": 0, "right": space, "center": space // 2}[alignment]
    if before > 0:
        spans.append(_blank(before))
    spans.extend(line.spans)
    if space - before > 0:
        spans.append(_blank(space - before))


@lru_cache(maxsize=256)
def _blank(cells: int) -> Span:
    """Return one object for each width: a long table has thousands."""
    return " " * cells, "text"


def _records(header: Sequence[Cell], rows: Sequence[Sequence[Cell]], width: int) -> list[Line]:
    lines: list[Line] = []
    for row in rows:
        if lines:
            lines.append(EMPTY)
        for name, cell in zip(header, row, strict=True):
            lines.extend(wrap([*name.spans, (": ", "dim"), *cell.spans], width, 2 if width > 8 else 0))
    return lines or wrap([span for name in header for span in (*name.spans, (" ", "text"))], width)
