"""Widths in cells, wrapping, and what copying makes of it (R-100)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.render.line import Line, Position, copy_text, indent, wrap, wrap_code
from tenuto.tui.render.width import cell_width, pad, split_graphemes, take_cells, truncate, truncate_middle

CHARACTERS = st.sampled_from(
    [*"ab -/_.,()", "é", "e\u0301", "日", "本", "。", "（", "👩‍👩‍👧", "❤️", "ｱ", "\u200b", "한"]
)
TEXTS = st.lists(CHARACTERS, max_size=80).map("".join)
WORDS = st.lists(
    st.one_of(st.text("abcdef", min_size=1, max_size=12), st.sampled_from(["日本語", "👩‍👩‍👧", "naïve"])),
    min_size=1,
    max_size=30,
).map(" ".join)


@pytest.mark.parametrize(
    ("text", "cells"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👩‍👩‍👧", 2), ("❤️", 2), ("한국어", 6), ("", 0), ("ｱ", 1)],
)
def test_r100_width_is_in_cells(text, cells):
    assert cell_width(text) == cells


@given(TEXTS)
def test_graphemes_cover_the_text(text):
    graphemes = split_graphemes(text)
    assert "".join(text[start:end] for start, end, _ in graphemes) == text
    assert sum(cells for _, _, cells in graphemes) == cell_width(text)


@given(TEXTS, st.integers(1, 40))
def test_truncate_never_exceeds(text, cells):
    cut = truncate(text, cells)
    assert cell_width(cut) <= cells
    assert cut == text or cut.endswith("…")
    assert cell_width(truncate_middle(text, cells)) <= cells


def test_truncate_middle_keeps_both_ends():
    assert truncate_middle("~/projects/tenuto/src/main.py", 17) == "~/proj…rc/main.py"


def test_take_cells_stops_before_a_wide_character():
    assert take_cells("日本", 3) == 1
    assert pad("日", 4) == "日  "


@given(TEXTS, st.integers(2, 30))
def test_r100_no_row_is_wider_and_copying_joins_them(text, width):
    lines = wrap([(text, "text")], width)
    assert all(line.width <= width for line in lines)
    assert copy_text(lines).rstrip(" ") == text.rstrip(" ")


@given(TEXTS, st.integers(2, 30))
def test_code_keeps_every_space(text, width):
    lines = wrap_code([(text, "code")], width)
    assert all(line.width <= width for line in lines)
    assert copy_text(lines) == text


@given(st.text("ab\t ", max_size=60), st.integers(4, 30))
def test_tabs_are_shown_as_spaces_and_copied_as_tabs(text, width):
    lines = wrap_code([(text, "code")], width)
    assert all("\t" not in line.text and line.width <= width for line in lines)
    assert copy_text(lines) == text


@given(WORDS, st.integers(12, 40))
def test_words_that_fit_are_not_broken(text, width):
    rows = [line.text for line in wrap([(text, "text")], width)]
    broken = [word for word in text.split(" ") if word.isascii() and not any(word in row.split(" ") for row in rows)]
    assert not broken


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["a", "b", "c"])), max_size=6), st.integers(2, 30))
def test_spans_keep_their_styles(spans, width):
    wanted = [(character, style) for text, style in spans for character in text if character != " "]
    shown = [
        (character, style)
        for line in wrap(spans, width)
        for text, style in line.spans
        for character in text
        if character != " "
    ]
    assert shown == wanted


def test_closing_marks_do_not_begin_a_row():
    rows = [line.text for line in wrap([("日本語の文章、です。", "text")], 12)]
    assert rows == ["日本語の文", "章、です。"]


def test_long_address_is_cut_and_joined_on_copy():
    address = "https://example.com/" + "a" * 50
    lines = wrap([(f"see {address} now", "text")], 30)
    assert lines[0].text == "see"
    assert address in copy_text(lines)


def test_hanging_rows_are_indented_and_copied_without_it():
    lines = wrap([("one two three four", "text")], 9, 2)
    assert [line.text for line in lines] == ["one two", "  three", "  four"]
    assert copy_text(lines) == "one two three four"


def test_copy_between_two_positions():
    lines = indent(wrap([("alpha beta gamma", "text")], 11), ("> ", "bar"), ("> ", "bar"))
    assert [line.text for line in lines] == ["> alpha beta", "> gamma"]
    assert copy_text(lines, Position(0, 8), Position(1, 5)) == "beta gam"
    assert copy_text(lines, Position(0, 0), Position(0, 7)) == "alpha"
    assert copy_text(lines, Position(1, 0)) == "gamma"


def test_copy_of_a_cut_row_gives_all_of_it():
    line = Line((("  long…", "text"),), gutter=2, source="long text")
    assert copy_text([line]) == "long text"
    assert copy_text([line], Position(0, 3), Position(0, 5)) == "on"
