from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.text.bounding import (
    bound_middle,
    cut_head,
    cut_tail,
    replace_surrogates,
    shorten,
    take_head,
    take_tail,
)

GRAPHEMES = [
    "a",
    "é",
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "🇩🇪",
    "👍🏽",
    "한",
    "\u1112\u1161\u11ab",
    "❤\ufe0f",
    "\r\n",
    "中",
    "\n",
]
graphemes = st.lists(st.sampled_from(GRAPHEMES), max_size=40)


@given(graphemes, st.integers(0, 60))
def test_r074_a_cut_never_splits_a_grapheme(pieces: list[str], limit: int) -> None:
    # Two flags side by side join into one run of regional indicators, a mark joins what is before it: so only
    # cuts at the boundaries of the list are right.
    text = "".join(pieces)
    ends = {0}
    for piece in pieces:
        ends.add(max(ends) + len(piece))
    head, tail = cut_head(text, limit), cut_tail(text, limit)
    assert len(head) <= limit
    assert len(tail) <= limit
    assert len(head) in ends
    assert len(text) - len(tail) in ends


@given(st.text(max_size=300), st.integers(1, 200), st.integers(1, 20))
def test_bounded_text_is_two_ends_of_the_original_and_counts_what_is_missing(text: str, chars: int, lines: int) -> None:
    bounded = bound_middle(text, chars, lines)
    if bounded is None:
        assert len(text) <= chars
        return
    assert text.startswith(bounded.head)
    assert text.endswith(bounded.tail)
    assert len(bounded.head) + len(bounded.tail) + bounded.omitted_chars == len(text)
    assert len(bounded.head) + len(bounded.tail) <= chars
    middle = text[len(bounded.head) : len(text) - len(bounded.tail)]
    assert middle.count("\n") == bounded.omitted_lines
    assert bounded.head.count("\n") + bounded.tail.count("\n") <= lines


def test_ends_prefer_whole_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    bounded = bound_middle(text, 500)
    assert bounded is not None
    assert bounded.head.endswith("\n")
    assert bounded.tail.startswith("line ")


def test_a_single_long_line_keeps_both_ends() -> None:
    bounded = bound_middle("a" * 5000 + "b" * 5000, 100)
    assert bounded is not None
    assert (bounded.head, bounded.tail) == ("a" * 50, "b" * 50)
    assert bounded.joined("[…]") == "a" * 50 + "\n[…]\n" + "b" * 50


def test_take_head_and_tail_leave_short_texts_alone() -> None:
    assert take_head("a\nb\n", 10, 5) == "a\nb\n" == take_tail("a\nb\n", 10, 5)
    assert take_head("a\nb\nc\nd\n", 100, 2) == "a\nb\n"
    assert take_tail("a\nb\nc\nd\n", 100, 2) == "c\nd\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("\ud83d\ude00", "😀"), ("a\ud800b", "a\ufffdb"), ("\udc00\ud800", "\ufffd\ufffd"), ("plain 😀", "plain 😀")],
)
def test_r073_lone_surrogates_are_replaced_and_pairs_joined(text: str, expected: str) -> None:
    assert replace_surrogates(text) == expected
    replace_surrogates(text).encode("utf-8")


@given(st.text(st.characters(), max_size=50))
def test_r073_whatever_comes_can_be_encoded(text: str) -> None:
    replace_surrogates(text).encode("utf-8")


def test_shorten_makes_one_line() -> None:
    assert shorten("a\n  b\tc", 80) == "a b c"
    assert shorten("e\u0301" * 10, 6) == "e\u0301e\u0301…"
    assert unicodedata.normalize("NFC", shorten("e\u0301" * 2, 9)) == "éé"


def test_a_pile_of_marks_does_not_defeat_the_limit() -> None:
    assert len(cut_head("a" + "\u0301" * 10_000, 100)) == 100
