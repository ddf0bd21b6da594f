"""Bracketed pastes, in whatever pieces they are read."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.paste_splitter import PASTE_BEGIN, PASTE_END, Paste, PasteSplitter

PLAIN = st.text(st.sampled_from("ab\x1b[0~12é字\n"), max_size=12).filter(lambda text: PASTE_BEGIN[:2] not in text)


def feed_in_pieces(data: str, cuts: list[int]) -> list[str]:
    splitter = PasteSplitter()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    parts: list[str] = []
    for begin, end in pairwise(places):
        parts += splitter.feed(data[begin:end])
    return parts + splitter.give_up()


@given(st.lists(st.tuples(PLAIN, PLAIN), max_size=4), PLAIN, st.lists(st.integers(0, 120), max_size=20))
def test_r099_any_chunking_gives_the_same_pastes(pairs: list[tuple[str, str]], last: str, cuts: list[int]) -> None:
    data = "".join(f"{plain}{PASTE_BEGIN}{pasted}{PASTE_END}" for plain, pasted in pairs) + last
    parts = feed_in_pieces(data, cuts)
    assert [str(part) for part in parts if isinstance(part, Paste)] == [pasted for _, pasted in pairs]
    assert "".join(part for part in parts if not isinstance(part, Paste)) == "".join(p for p, _ in pairs) + last


def test_r099_escape_sequences_inside_a_paste_arrive() -> None:
    pasted = "\x1b[31mred\x1b[0m\x1b\x1b[20"
    assert feed_in_pieces(f"{PASTE_BEGIN}{pasted}{PASTE_END}", [9, 10, 11, 20]) == [pasted]


def test_line_ends_become_line_feeds() -> None:
    assert feed_in_pieces(f"{PASTE_BEGIN}a\rb\r\nc\nd{PASTE_END}", []) == ["a\nb\nc\nd"]


def test_a_lost_end_mark_does_not_swallow_keys() -> None:
    splitter = PasteSplitter()
    assert splitter.feed(f"{PASTE_BEGIN}text") == []
    assert splitter.inside
    assert splitter.give_up() == [Paste("text")]
    assert splitter.feed("k") == ["k"]


def test_a_lone_escape_is_held_back_only_until_asked_for() -> None:
    splitter = PasteSplitter()
    assert splitter.feed("a\x1b") == ["a"]
    assert splitter.holding
    assert splitter.give_up() == ["\x1b"]
    assert not splitter.holding
