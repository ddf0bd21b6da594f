"""Bracketed pastes, in whatever pieces they are read."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.terminal.paste_splitter import PASTE_BEGIN, PASTE_END, Paste, PasteSplitter

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


LINE = "a line of text that nobody types in the time of one read, " * 3


def test_a_burst_without_marks_is_a_paste_whose_line_ends_do_not_send() -> None:
    assert PasteSplitter().feed(f"{LINE}\rsecond\r", 1.0) == [Paste(f"{LINE}\nsecond\n")]
    assert isinstance(PasteSplitter().feed(LINE, 1.0)[0], Paste)


def test_a_burst_goes_on_in_the_reads_right_behind_it() -> None:
    splitter = PasteSplitter()
    parts = splitter.feed(f"{LINE}\r\n", 1.0) + splitter.feed("end\r", 1.01) + splitter.feed("\r", 2.0)
    assert [(str(part), isinstance(part, Paste)) for part in parts] == [
        (f"{LINE}\n", True),
        ("end\n", True),
        ("\r", False),
    ]


def test_one_line_and_a_return_are_text_and_enter_for_programs_that_type() -> None:
    assert PasteSplitter().feed(f"{LINE}\r", 1.0) == [Paste(LINE), "\r"]
    splitter = PasteSplitter()
    assert splitter.feed(LINE, 1.0) == [Paste(LINE)]
    assert splitter.feed("\r", 1.01) == ["\r"]


def test_keys_are_no_burst() -> None:
    for keys in ("x" * 64, "\x7f" * 100, "\x1b[A" * 100, LINE + "\x01", "y\r"):
        parts = PasteSplitter().feed(keys, 1.0)
        assert parts == [keys]
        assert not isinstance(parts[0], Paste)


def test_a_part_of_a_mark_that_is_no_key_is_waited_for_like_a_paste() -> None:
    for size in range(3, len(PASTE_BEGIN)):
        splitter = PasteSplitter()
        assert splitter.feed(PASTE_BEGIN[:size]) == []
        assert (splitter.holding, splitter.inside) == (False, True)
        assert splitter.feed(f"{PASTE_BEGIN[size:]}a\rb{PASTE_END}") == [Paste("a\nb")]


def test_a_mark_whose_beginning_was_given_away_as_a_key_begins_a_paste_all_the_same() -> None:
    for beginning in ("\x1b", "\x1b["):
        splitter = PasteSplitter()
        splitter.feed(beginning)
        assert splitter.holding
        assert splitter.give_up() == [beginning]
        assert splitter.feed(f"{PASTE_BEGIN.removeprefix(beginning)}a\rb{PASTE_END}") == [Paste("a\nb")]


def test_keys_behind_a_lone_escape_are_keys() -> None:
    splitter = PasteSplitter()
    splitter.feed("\x1b")
    splitter.give_up()
    assert splitter.feed("[20") == ["[20"]
    assert splitter.feed("0~a\r") == ["0~a\r"]
