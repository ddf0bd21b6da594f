"""What a look at the bytes of a log may pass over: never a line that has the words."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.text.matching import count_in_prose, count_matches, may_contain

LETTERS = 'aAbBäÄ "\\\n\t`*/é中'


@given(text=st.text(alphabet=LETTERS, max_size=40), begin=st.integers(0, 40), length=st.integers(1, 8))
def test_a_line_that_has_the_words_always_passes(text: str, begin: int, length: int):
    for query in (text[begin : begin + length], text.lower()[begin : begin + length]):
        if count_in_prose(text, query):
            assert may_contain(msgspec.json.encode({"text": text}), query)


@pytest.mark.parametrize(
    ("text", "query"),
    [("one two three", "one three"), ("part 49, and a list of it", "part 49 of"), ("Straße", "strasse x")],
)
def test_a_line_with_other_words_is_passed_over(text: str, query: str):
    assert not may_contain(msgspec.json.encode({"text": text}), query)


def test_capitals_count_as_soon_as_one_is_typed():
    assert count_matches("Parser and parser", "parser") == 2
    assert count_matches("Parser and parser", "Parser") == 1
    assert count_matches("anything", "") == 0


def test_emphasis_hides_nothing():
    assert count_in_prose("Look at the **tail** block of `x`", "tail block") == 1
    assert may_contain(b"Look at the **tail** block", "tail block")
