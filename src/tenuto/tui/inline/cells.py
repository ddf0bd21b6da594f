"""Rows as prompt-toolkit compares them: a character with its style in each cell, as wide as this program measures it.

Its own windows lay out every row anew for each key; here a row that is still the same is the same object.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from prompt_toolkit.layout.screen import Char

from tenuto.guard.sanitize import blank_for_terminal
from tenuto.tui.emoji_width import is_unsure_alone
from tenuto.tui.inline.output import REST
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import Span
from tenuto.tui.render.theme import Theme
from tenuto.tui.render.width import split_graphemes

Row = defaultdict[int, Char]
"""The characters of a row by cell."""
Spans = tuple[Span, ...]
MARKS = 64
_UNPAINTED = Char(" ", "[transparent]")
_COVERED = Char("", "")
"""The second cell of a wide character."""


class CellRows:
    """Makes rows in the colours of `paint`. It knows those that were asked for since the last but one `turn`."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._theme: Theme = paint.theme
        self._columns = 0
        self._before: dict[Spans, Row] = {}
        self._now: dict[Spans, Row] = {}
        self._marks = 0

    def turn(self, columns: int) -> None:
        """Begin another frame, `columns` cells wide."""
        same = columns == self._columns and self._theme is self._paint.theme
        self._before, self._now = self._now if same else {}, {}
        self._columns, self._theme = columns, self._paint.theme

    def row(self, spans: Spans) -> Row:
        """Return the row of these spans, cut to the screen. Control characters in it are blanks."""
        row = self._now.get(spans)
        if row is None:
            row = self._now[spans] = self._before.get(spans) or self._make(spans)
        return row

    def _make(self, spans: Spans) -> Row:
        row: Row = defaultdict(lambda: _UNPAINTED)
        cell, mark = 0, ""
        for text, name in spans:
            style = self._paint.name(name)
            safe = blank_for_terminal(text).replace("\t", " ")
            watched = not safe.isascii()
            for start, end, width in split_graphemes(safe):
                if not width:
                    continue
                if cell + width > self._columns:
                    return row
                if watched and not mark and is_unsure_alone(safe[start:end]):
                    mark = self._next_mark()
                row[cell] = _char(safe[start:end], style + mark, width)
                for covered in range(cell + 1, cell + width):
                    row[covered] = _COVERED
                cell += width
        if mark and cell < self._columns:
            row[cell] = _char(REST, mark, 1)
        return row

    def _next_mark(self) -> str:
        """Return what makes the rest of a row differ from any that stood there.

        What a terminal shows of a character beyond its cells lies on those behind it: they are all written again.
        """
        self._marks = (self._marks + 1) % MARKS
        return f" class:again{self._marks}"


def cells_of(row: Row) -> list[int]:
    """Return how many cells each character of a row takes, without the blanks at its end."""
    end = max((cell + 1 for cell, char in row.items() if char.char.strip() and char.char != REST), default=0)
    return [row[cell].width for cell in range(end) if row[cell] is not _COVERED]


@lru_cache(maxsize=4_096)
def _char(text: str, style: str, width: int) -> Char:
    """Return a character that is `width` cells wide; prompt-toolkit would add up those that an emoji is joined of."""
    char = Char(text, style)
    char.width = width
    return char
