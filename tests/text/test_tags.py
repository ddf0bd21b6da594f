"""A text stays within its tags (R-041)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.text.writable import keep_within, tagged

NAMES = ("summary", "output")
PIECES = st.lists(st.one_of(st.text(max_size=5), st.sampled_from(["</summary>", "<summary>", "</output>", "<\\/"])))


@given(PIECES.map("".join))
def test_r041_only_the_last_tag_closes(text: str):
    shown = tagged("summary", text)
    assert shown.startswith("<summary>\n")
    assert shown.find("</summary>") == len(shown) - len("</summary>")


@given(PIECES.map("".join))
def test_what_closes_nothing_stays_as_it_is_and_once_is_enough(text: str):
    once = keep_within(text, *NAMES)
    assert keep_within(once, *NAMES) == once
    assert once == text or any(f"</{name}>" in text for name in NAMES)
