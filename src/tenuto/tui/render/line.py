"""The unit that both screens paint: one row of styled text, and what copying it gives.

A style name is one or more words, applied from left to right: a name of the theme (`code.keyword`), a modifier
(`bold`, `italic`, …), a colour (`fg=2`, `bg=#102030`) and, last, a link target (`@https://…`). See `theme.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tenuto.tui.render.width import cell_width, take_cells, truncate

Span = tuple[str, str]
"""(text, style name)"""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One row. Thousands of them are alive: keep it small.

    `gutter` is how many leading cells copying leaves out. `soft` says that the next line continues this one; `join` is
    what the wrap swallowed between the two. `source` is what the row stands for where that is not what it shows
    (a tab that was expanded). `fill` is the style of the screen's row to the right of the text.
    """

    spans: tuple[Span, ...]
    soft: bool = False
    gutter: int = 0
    join: str = ""
    source: str | None = None
    fill: str = ""

    @property
    def text(self) -> str:
        """The row as painted, gutter included."""
        if len(self.spans) == 1:
            return self.spans[0][0]
        return "".join([text for text, _style in self.spans])

    @property
    def width(self) -> int:
        """Cells of the whole row, gutter included."""
        return sum([cell_width(text) for text, _style in self.spans])


EMPTY = Line(())


class Position(NamedTuple):
    """A place in a range of lines: the row, and the cell in it."""

    row: int
    cell: int


def plain(text: str, style: str = "text") -> Line:
    """Return a line of one style."""
    return Line(((text, style),))


def with_fill(line: Line, style: str) -> Line:
    """Return the line with a style for the screen's row to the right of its text."""
    return Line(line.spans, line.soft, line.gutter, line.join, line.source, style)


def indent(lines: Iterable[Line], first: Span, rest: Span, *, visible: bool = False) -> list[Line]:
    """Put `first` before the first line and `rest`, of the same width, before all others.

    The prefix becomes gutter. With `visible` it is content (a list's bullet, the indentation of its paragraphs),
    except where a line continues a soft wrap or already begins with a gutter.
    """
    prefixed: list[Line] = []
    prefix, width = first, cell_width(first[0])
    continues = False
    for line in lines:
        hidden = not visible or continues or line.gutter > 0
        if line.spans or prefix[0].strip():
            gutter = line.gutter + width if hidden else 0
            shown = _shown(line, prefix, hidden)
            prefixed.append(Line((prefix, *line.spans), line.soft, gutter, line.join, shown, line.fill))
        else:
            prefixed.append(line)
        continues = line.soft
        prefix = rest
    return prefixed


def _shown(line: Line, prefix: Span, hidden: bool) -> str | None:
    if line.source is None or hidden:
        return line.source
    return prefix[0] + line.source


def copy_text(lines: Sequence[Line], start: Position | None = None, end: Position | None = None) -> str:
    """Return the logical text of `lines` between two positions (`end` exclusive): no gutter, soft wraps joined."""
    first = start or Position(0, 0)
    last = end or Position(len(lines), 0)
    pieces: list[str] = []
    stop = min(last.row + (1 if last.cell > 0 else 0), len(lines))
    for row in range(max(first.row, 0), stop):
        line = lines[row]
        begin = first.cell if row == first.row else 0
        finish = last.cell if row == last.row else None
        pieces.append(_copied(line, begin, finish))
        if row + 1 < stop:
            pieces.append(line.join if line.soft else "\n")
    return "".join(pieces)


def _copied(line: Line, begin: int, finish: int | None) -> str:
    whole = begin <= line.gutter and (finish is None or finish >= line.width)
    if whole and line.source is not None:
        return line.source
    text = line.text
    from_index = take_cells(text, begin) if begin > line.gutter else text_start(line)
    to_index = len(text) if finish is None else take_cells(text, finish)
    return text[from_index:to_index]


def text_start(line: Line) -> int:
    """Return the index at which the gutter of a row ends; a mark without width right behind it is text."""
    cells = index = 0
    for text, _style in line.spans:
        if cells >= line.gutter:
            break
        cells += cell_width(text)
        index += len(text)
    return index


def last_row(lines: Sequence[Line], row: int) -> int:
    """Return the last row of the logical line that a row belongs to."""
    while lines[row].soft and row + 1 < len(lines):
        row += 1
    return row


def logical_lines(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row of each logical line."""
    first = 0
    while first < len(lines):
        last = last_row(lines, first)
        yield first, last
        first = last + 1


def fit(spans: Sequence[Span], width: int) -> Line:
    """Return a line of these spans, cut to `width` cells."""
    fitted: list[Span] = []
    left = width
    for text, style in spans:
        piece = truncate(text, left)
        if piece:
            fitted.append((piece, style))
        left -= cell_width(piece)
    return Line(tuple(fitted))


def fit_lines(lines: Sequence[Line], width: int) -> list[Line]:
    """Return the lines, those cut that are wider than `width` cells."""
    return [line if line.width <= width else fit(line.spans, width) for line in lines]


def filled(line: Line, width: int) -> Line:
    """Return the line with its fill as spaces up to `width` cells: for what is painted but never copied."""
    if not line.fill or line.width >= width:
        return line
    return Line((*line.spans, (" " * (width - line.width), line.fill)))
