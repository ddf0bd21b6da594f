"""The early editor against a plain model; what it does not know it leaves alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.complete.paste import FOLD_CHARACTERS, FOLD_LINES
from tenuto.tui.first_paint import editor as early
from tenuto.tui.first_paint.editor import EarlyEditor
from tenuto.tui.full.driver import InputReader
from tenuto.tui.inline.keys import Press
from tests.tui.first_paint.model import BYTES, LETTERS, Prompt, encode
from tests.tui.key_bytes import key_reader

TOKENS = st.one_of(
    st.sampled_from([one for one in BYTES if one != "f2"]),
    st.sampled_from(LETTERS).map(lambda one: f"type:{one}"),
    st.sampled_from(["one\ntwo", "漢字 plain", "\n", ""]).map(lambda one: f"paste:{one}"),
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


@given(st.lists(TOKENS, max_size=40), st.lists(st.integers(0, 2000), max_size=8))
def test_text_cursor_and_sent_are_the_models_until_it_freezes(tokens: list[str], cuts: list[int]) -> None:
    data = b"".join(map(encode, tokens))
    editor = EarlyEditor(200)
    for piece in split(data, cuts):
        editor.feed(piece)
    model, consumed = Prompt(), b""
    for token in tokens:
        if len(consumed) == len(data) - len(editor.rest):
            break
        model.press(token)
        consumed += encode(token)
    assert (editor.text, editor.cursor, editor.sent) == (model.text, model.cursor, model.sent)
    assert consumed + editor.rest == data
    assert editor.frozen or not editor.rest


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_no_bytes_break_it_nor_does_it_matter_how_they_come(data: bytes, cuts: list[int]) -> None:
    whole, pieces = EarlyEditor(), EarlyEditor()
    whole.feed(data)
    for piece in split(data, cuts):
        pieces.feed(piece)
    assert (whole.text, whole.cursor, whole.sent, whole.rest) == (pieces.text, pieces.cursor, pieces.sent, pieces.rest)
    assert data.endswith(whole.rest)


@pytest.mark.parametrize(
    "key", [b"\x1bOQ", b"\t", b"\n", b"\x1b[A", b"\x1bb", b"\x1a", b"\x04", b"\xff", b"\xc3a", "\u200d".encode(), b"?"]
)
def test_a_key_that_is_not_known_stays_with_all_that_follows(key: bytes) -> None:
    editor = EarlyEditor()
    editor.feed((b"" if key == b"?" else b"ab") + key)
    editor.feed(b"cd\r")
    assert editor.frozen
    assert editor.rest == key + b"cd\r"
    assert editor.sent == []


@pytest.mark.parametrize("text", ["/help", "see @file", "!ls", " !ls", "more\\"])
def test_what_the_machine_must_judge_is_not_sent_early(text: str) -> None:
    editor = EarlyEditor()
    editor.feed(text.encode() + b"\r")
    assert (editor.text, editor.rest, editor.sent) == (text, b"\r", [])


def test_a_long_paste_is_left_to_be_folded() -> None:
    assert (early.PASTE_CHARACTERS, early.PASTE_LINES) == (FOLD_CHARACTERS, FOLD_LINES)
    for text in ("x" * (FOLD_CHARACTERS + 1), "\r" * FOLD_LINES):
        editor = EarlyEditor()
        data = b"\x1b[200~" + text.encode() + b"\x1b[201~"
        editor.feed(b"a" + data)
        assert (editor.text, editor.rest) == ("a", data)


def test_a_paste_without_an_end_is_not_waited_for_when_it_is_long() -> None:
    editor = EarlyEditor()
    editor.feed(b"\x1b[200~" + b"x" * early.MAX_PASTE_BYTES)
    assert editor.frozen
    assert len(editor.rest) == early.MAX_PASTE_BYTES + 6


def test_an_incomplete_sequence_is_handed_over_as_it_is() -> None:
    for beginning in (b"\x1b", b"\x1b[", b"\x1b[3", b"\xe6\xbc", b"\x1b[200~pas"):
        editor = EarlyEditor()
        editor.feed(b"a" + beginning)
        assert (editor.text, editor.rest, editor.frozen) == ("a", beginning, False)


def test_a_lone_escape_is_a_key_after_a_while() -> None:
    editor = EarlyEditor()
    editor.feed(b"\x1b[?62;22ca\x1b")
    assert editor.waits_for_key
    editor.give_up_waiting()
    assert editor.frozen
    editor.feed(b"h")
    full = [str(getattr(key, "key", "")) for key in InputReader().feed(editor.rest)]
    inline = key_reader().feed(editor.rest)
    assert full == [key.name for key in inline if isinstance(key, Press)] == ["escape", "h"]


def test_home_in_a_text_that_may_be_wrapped_is_the_front_ends() -> None:
    for text, columns in ((b"a" * 30, 50), (b"\x1b[200~a\rb\x1b[201~", 80), (b"\x1b[200~  a\x1b[201~", 80)):
        editor = EarlyEditor(columns)
        editor.feed(text + b"\x1b[H")
        assert editor.rest == b"\x1b[H"


def test_answers_that_nobody_waits_for_are_dropped() -> None:
    editor = EarlyEditor()
    editor.feed(b"a\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\b\x1b]10;rgb:0/0/0\x07c\x1b[?62;22cd")
    assert (editor.text, editor.frozen) == ("abcd", False)


def test_what_was_typed_before_the_terminal_was_raw_has_line_feeds_for_enter() -> None:
    editor = EarlyEditor()
    editor.feed(b"one\ntwo", cooked=True)
    assert (editor.sent, editor.text) == (["one"], "two")


def test_ctrl_c_interrupts() -> None:
    editor = EarlyEditor()
    editor.feed(b"abc\x03def")
    assert editor.interrupted


@pytest.mark.parametrize(
    "burst",
    [b"x" * 40 + b"\r" + b"y" * 40 + b"\r", b"/a/long/path" * 8, b"one\n" * 30, "漢字の行 ".encode() * 20],
)
@pytest.mark.parametrize("cooked", [False, True])
def test_what_nobody_can_have_typed_is_left_whole_for_the_front_end(burst: bytes, cooked: bool) -> None:
    editor = early.EarlyEditor()
    editor.feed(b"ab", cooked=cooked)
    editor.feed(burst, cooked=cooked)
    assert (editor.text, editor.sent) == ("ab", [])
    assert editor.frozen
    assert editor.rest == (burst.replace(b"\n", b"\r") if cooked else burst)


@pytest.mark.parametrize(
    "pasted", [b"", b"/tmp/shot.png", b"'/tmp/a shot.png'", b"file:///tmp/shot.png", b"~/shot.png"]
)
def test_a_dropped_file_is_left_for_the_front_end(pasted: bytes) -> None:
    editor = early.EarlyEditor()
    data = b"\x1b[200~" + pasted + b"\x1b[201~"
    editor.feed(b"ab" + data)
    assert (editor.text, editor.rest) == ("ab", data)
