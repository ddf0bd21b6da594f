"""Where the cursor stops, and what was cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.complete.paste import Pastes
from tenuto.tui.keys.line_editor import CutTexts, blank_before, stop_after, stop_before, word_after, word_before
from tenuto.tui.render.width import split_graphemes

FAMILY = "👨‍👩‍👧‍👦"
MARK = Pastes().mark("x\ny")


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("abc", [0, 1, 2, 3]),
        ("e\u0301x", [0, 2, 3]),
        (f"a{FAMILY}b", [0, 1, 1 + len(FAMILY), 2 + len(FAMILY)]),
        ("字é", [0, 1, 2]),
        ("a\nb\n\nc", [0, 1, 2, 3, 4, 5, 6]),
        (f"a{MARK}b", [0, 1, 1 + len(MARK), 2 + len(MARK)]),
        (f"{MARK}{MARK}", [0, len(MARK), 2 * len(MARK)]),
        ("1\ufe0f\u20e3 2", [0, 3, 4, 5]),
    ],
)
def test_r100_the_cursor_stops_where_people_see_a_character_end(text: str, stops: list[int]) -> None:
    forwards = [0]
    while forwards[-1] < len(text):
        forwards.append(stop_after(text, forwards[-1]))
    backwards = [len(text)]
    while backwards[-1] > 0:
        backwards.append(stop_before(text, backwards[-1]))
    assert forwards == stops
    assert backwards[::-1] == stops


@given(st.text(max_size=80), st.integers(0, 80))
def test_stops_always_move_and_stay_inside(text: str, cursor: int) -> None:
    cursor = min(cursor, len(text))
    assert 0 <= stop_before(text, cursor) < max(1, cursor)
    assert min(cursor, len(text) - 1) < stop_after(text, cursor) <= len(text) or not text


@pytest.mark.parametrize("emoji", ["⚠️", "1️⃣", "👩‍👩‍👧", "👍🏽"])
def test_no_word_begins_or_ends_inside_an_emoji(emoji: str) -> None:
    text = f"a {emoji}{emoji}é漢 {emoji} b"
    bounds = {0, len(text)} | {start for start, _end, _cells in split_graphemes(text)}
    for place in bounds:
        assert word_before(text, place) in bounds and word_after(text, place) in bounds


def test_inside_a_mark_both_sides_are_its_ends() -> None:
    assert stop_before(f"a{MARK}b", 5) == 1
    assert stop_after(f"a{MARK}b", 5) == 1 + len(MARK)


def test_a_word_is_never_a_piece_of_a_mark() -> None:
    text = f"say {MARK} now"
    assert word_before(text, len(text)) == len(text) - 3
    assert word_before(text, len(text) - 3) == 4
    assert word_before(text, 4 + len(MARK)) == 4
    assert word_after(text, 3) == 4 + len(MARK) == word_after(text, 4)
    assert (word_before("one  two ", 9), word_after("one  two ", 3)) == (5, 8)


@pytest.mark.parametrize(
    ("text", "back", "on", "blank"),
    [
        ("foo/bar-baz.qux(abc)", [16, 12, 8, 4, 0], [3, 7, 11, 15, 19, 20], [0]),
        ("cat  src/a_b.py ", [13, 9, 5, 0], [3, 8, 12, 15, 16], [5, 0]),
        ("caf\u00e9 e\u0301a\u4e2d\u6587 --x", [13, 5, 0], [4, 10, 14], [11, 5, 0]),
        ("...", [0], [3], [0]),
        ("", [0], [0], [0]),
    ],
)
def test_words_are_readlines_and_a_cut_to_a_blank_takes_a_whole_path(
    text: str, back: list[int], on: list[int], blank: list[int]
) -> None:
    assert walk(text, len(text), word_before, len(back)) == back
    assert walk(text, 0, word_after, len(on)) == on
    assert walk(text, len(text), blank_before, len(blank)) == blank


def walk(text: str, cursor: int, step: Callable[[str, int], int], times: int) -> list[int]:
    """Return where the cursor stops."""
    stops = [cursor]
    for _ in range(times):
        stops.append(step(text, stops[-1]))
    return stops[1:]


def test_cuts_in_a_row_are_one_text_and_older_ones_come_back() -> None:
    cuts = CutTexts()
    cuts.cut("three", before=True)
    cuts.cut("two ", before=True)
    cuts.cut(" four", before=False)
    cuts.rest()
    cuts.cut("other", before=False)
    assert cuts.yank_older() == ("", ""), "only after a yank"
    assert cuts.yank() == "other"
    assert cuts.yank_older() == ("other", "two three four")
    assert cuts.yank_older() == ("two three four", "other")
    cuts.rest()
    assert cuts.yank_older() == ("", "")
