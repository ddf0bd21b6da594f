"""Where the bottom begins after the terminal has become another width. Pure.

Most terminals wrap rows that have become too long, and take the cursor along; a few cut them. What is above the
bottom belongs to the terminal, so it has to be known exactly how far up the bottom reaches now.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenuto.tui.emulator import Habit, recognise
from tenuto.tui.first_paint.inline_paint import habit_of

STABLE_SECONDS = 0.3
"""A width that has not changed for so long is taken for the last one."""

CLEARING_SECONDS = 0.03
"""A terminal that clears what is painted again shows nothing of it until then."""
PAINTED_AGAIN = "\x1b]133;A;k=s\x1b\\"
"""Tells kitty that the rows from this one on are painted again at another size; it clears them, and wraps none.

Left to itself it says the wrong row for the cursor. `k=s`: this is no prompt that its keys should jump to.
"""
NOT_PAINTED_AGAIN = "\x1b]133;A;k=s;redraw=0\x1b\\"
"""Takes that back: the next program's rows are not to be cleared."""

Row = Sequence[int]
"""The cells of each character of a row."""


class Painted(Struct, frozen=True):
    """The rows of the bottom as they were painted, and in which of them, and in which cell, the cursor is."""

    rows: Sequence[Row]
    cursor_row: int
    cursor_column: int


def habit_in(environ: Mapping[str, str]) -> Habit:
    """Return what the terminal does with the rows of the bottom at another size."""
    return "clears" if recognise(environ) == "kitty" else habit_of(environ)


def rows_above_cursor(painted: Painted, widths: Sequence[int], habit: Habit) -> int:
    """Return how many rows of the bottom are above the cursor now.

    `widths` are those that the terminal has had: the one that was painted for, then each that came after it.
    """
    match habit:
        case "cuts" | "clears":
            return painted.cursor_row
        case "wraps" | "wraps-above":
            above = sum(wrapped_rows(row, widths[-1]) for row in painted.rows[: painted.cursor_row])
            present = painted.rows[painted.cursor_row : painted.cursor_row + 1]
            return above + (_row_of(present, painted, widths[-1]) if habit == "wraps" else 0)
        case "counts":
            return _counted(painted, widths)


def wrapped_rows(row: Row, columns: int) -> int:
    """Return how many rows a row takes that is wrapped at this width; a wide character is never parted."""
    return len(_starts(row, columns))


def _starts(row: Row, columns: int) -> list[int]:
    """Return the cells at which the pieces of a wrapped row begin."""
    starts, cell = [0], 0
    for cells in row:
        if cell + cells - starts[-1] > columns and cell > starts[-1]:
            starts.append(cell)
        cell += cells
    return starts


def _row_of(row: Sequence[Row], painted: Painted, columns: int) -> int:
    """Return in which piece of its wrapped row the cursor is."""
    starts = _starts(row[0], columns) if row else [0]
    piece = sum(start <= painted.cursor_column for start in starts) - 1
    return piece + (painted.cursor_column - starts[piece]) // columns


def _counted(painted: Painted, widths: Sequence[int]) -> int:
    """Return where the cursor is after all these widths, in rows from the first; each row is wrapped by itself."""
    cursor = painted.cursor_row
    rows = list(painted.rows)
    heights = [1] * len(rows)
    for before, columns in itertools.pairwise(widths):
        ends = [sum(heights[: place + 1]) for place in range(len(rows))]
        moved = cursor
        for place in reversed(range(len(rows))) if columns < before else range(len(rows)):
            present = moved if columns < before else cursor
            if ends[place] - heights[place] <= present < ends[place]:
                rows[place] = _cut(rows[place], before, columns)  # the rest is left to the program
                continue
            height = wrapped_rows(rows[place], columns)
            moved += height - heights[place]
            heights[place] = height
        cursor = moved
    return cursor


def _cut(row: Row, before: int, columns: int) -> Row:
    """Return what is left of a row, wrapped at `before`, that is cut at `columns`."""
    kept: list[int] = []
    starts, cell = _starts(row, before), 0
    for cells in row:
        start = max(start for start in starts if start <= cell)
        if cell + cells - start <= columns:
            kept.append(cells)
        cell += cells
    return kept
