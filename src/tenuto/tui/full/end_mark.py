"""The mark that leads to the end of the transcript, shown while the end is not on the screen. Pure."""

from __future__ import annotations

from collections.abc import Sequence

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
