"""What a selection with the mouse covers, and the text that copying it gives."""

from __future__ import annotations

from tenuto.tui.full.pointer import Place, Selection, selected_text, whole_line, word_at
from tenuto.tui.render.line import Line

FIRST = [
    Line((("  ", "gutter"), ("a long sentence that", "text")), soft=True, gutter=2, join=" "),
    Line((("  ", "gutter"), ("goes on", "text")), gutter=2),
    Line((("  ", "gutter"), ("next 字字 line", "text")), gutter=2),
]
SECOND = [Line((("● ", "mark"), ("src/app.py:12 read", "text")), gutter=2)]
ITEMS = [FIRST, SECOND]


def copied(anchor: Place, head: Place) -> str:
    return selected_text(Selection(anchor, head), lambda index: ITEMS[index])


def test_copy_joins_wraps_and_leaves_the_gutter_out() -> None:
    assert copied(Place(0, 0, 0), Place(0, 1, 99)) == "a long sentence that goes on"


def test_direction_does_not_matter() -> None:
    assert copied(Place(0, 2, 6), Place(0, 0, 4)) == copied(Place(0, 0, 4), Place(0, 2, 6))


def test_copy_over_items() -> None:
    assert copied(Place(0, 2, 2), Place(1, 0, 15)) == "next 字字 line\n\nsrc/app.py:12"


def test_r100_cells_of_wide_characters() -> None:
    assert copied(Place(0, 2, 7), Place(0, 2, 11)) == "字字"


def test_rows_that_are_selected() -> None:
    selection = Selection(Place(0, 1, 3), Place(1, 0, 4))
    assert selection.cells(0, 0) is None
    assert selection.cells(0, 1) == (3, None)
    assert selection.cells(0, 2) == (0, None)
    assert selection.cells(1, 0) == (0, 4)
    assert selection.cells(1, 1) is None


def test_an_item_taken_out_moves_or_ends_the_selection() -> None:
    selection = Selection(Place(3, 0, 0), Place(5, 0, 2))
    assert selection.without(1) == Selection(Place(2, 0, 0), Place(4, 0, 2))
    assert selection.without(4) == Selection(Place(3, 0, 0), Place(4, 0, 2))
    assert selection.without(3) is None


def test_a_double_click_takes_a_path_whole() -> None:
    assert word_at(SECOND[0], 5) == (2, 15)
    assert word_at(SECOND[0], 15) is None
    assert word_at(Line((("see a.py:2. Then", "text"),)), 5) == (4, 10), "the sentence's end is not the path's"


def test_a_triple_click_takes_the_logical_line() -> None:
    first, last = whole_line(FIRST, 1)
    assert copied(Place(0, *first), Place(0, *last)) == "a long sentence that goes on"
