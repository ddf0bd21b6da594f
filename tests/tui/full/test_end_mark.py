"""Where the mark that leads to the end stands: beside text, never over it where there is room close by."""

from __future__ import annotations

import pytest

from tenuto.tui.full.transcript import mark_text, row_of_mark


@pytest.mark.parametrize(
    ("rows", "last_widths", "row"),
    [
        (20, [10, 10, 10], 19),
        (20, [10, 10, 75], 18),
        (20, [10, 75, 75], 17),
        (20, [75, 75, 75], 19),
        (2, [10, 75], 0),
        (1, [75], 0),
    ],
)
def test_the_mark_is_on_the_last_row_whose_text_leaves_it_room(rows: int, last_widths: list[int], row: int):
    assert row_of_mark(rows, last_widths, 72) == row


def test_it_says_what_is_new():
    assert mark_text(0) == " ↓ End "
    assert mark_text(12) == " ↓ 12 new "
