"""Where the bottom begins after the terminal has become another width. Pure.

Most terminals wrap rows that have become too long, and take the cursor along; a few cut them. What is above the
bottom belongs to the terminal, so it has to be known exactly how far up the bottom reaches now.
"""

from __future__ import annotations

from collections.abc import Sequence

STABLE_SECONDS = 0.3
"""A width that has not changed for so long is taken for the last one."""


def rows_above_cursor(widths: Sequence[int], column: int, columns: int, *, wraps: bool) -> int:
    """Return how many rows of the bottom are above the cursor now.

    `widths` are the cells of the rows above it, as they were painted, `column` is its own; `columns` is the new width.
    """
    if not wraps:
        return len(widths)
    return sum(max(1, -(-width // columns)) for width in widths) + column // columns
