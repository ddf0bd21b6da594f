"""Bytes to named keys: every protocol the same key, nothing invented, nothing lost."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.tui.inline.application import Keyboard
from tenuto.tui.inline.keys import ESCAPE_SECONDS, KeyReader, Pasted, Press


class Listener:
    def __init__(self) -> None:
        self.keys: list[Press | Pasted] = []
        self.focus: list[bool] = []
        self.reader = KeyReader(self.focus.append, lambda _light: None)

    def feed(self, text: str) -> None:
        self.keys += self.reader.feed(text.encode("utf-8", "surrogatepass"))

    def rest(self) -> None:
        """A moment without input: enough for a lone Escape."""
        if self.reader.timeout == ESCAPE_SECONDS:
            self.give_up()

    def give_up(self) -> None:
        self.keys += self.reader.give_up()

    def names(self) -> list[str]:
        return [key.name if isinstance(key, Press) else f"paste {key.text}" for key in self.keys]

    def typed(self) -> str:
        return "".join(key.character or "" for key in self.keys if isinstance(key, Press))


def names(*chunks: str) -> list[str]:
    listener = Listener()
    for chunk in chunks:
        listener.feed(chunk)
    listener.give_up()
    return listener.names()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("\r", "enter"), ("\n", "ctrl+j"), ("\t", "tab"), ("\x7f", "backspace"), ("\x1b", "escape"),
        ("\x01", "ctrl+a"), ("\x1b[Z", "shift+tab"), ("\x1b[A", "up"), ("\x1bOA", "up"), ("\x1b[5~", "pageup"),
        ("\x1b[1;5D", "ctrl+left"), ("\x1b[1;2A", "shift+up"), ("\x1b[1;5H", "ctrl+home"), ("\x1bOP", "f1"),
        ("\x1b\r", "alt+enter"), ("\x1bp", "alt+p"), ("\x1b\x7f", "alt+backspace"), ("\x1b\x1b[A", "alt+up"),
        ("\x1b[13;2u", "shift+enter"), ("\x1b[13;3u", "alt+enter"), ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[27u", "escape"), ("\x1b[111;5u", "ctrl+o"), ("\x1b[111;5:1u", "ctrl+o"), ("\x1b[112;3u", "alt+p"),
        ("\x1b[9;2u", "shift+tab"), ("?", "question_mark"), ("\x1f", "ctrl+underscore"), ("\x1b[57414u", "enter"),
    ],
)  # fmt: skip
def test_keys_have_one_name_whatever_the_protocol(data: str, name: str) -> None:
    assert names(data) == [name]
    assert names(*data) == [name]  # byte by byte as well


@pytest.mark.parametrize(
    "data",
    ["\x1b[111;5:3u", "\x1b[?62;22c", "\x1b]11;rgb:1/2/3\x1b\\", "\x1b]11;rgb:1/2/3\x07", "\x1b[57441;1u"],
)  # fmt: skip
def test_what_is_no_key_is_nothing(data: str) -> None:
    assert names(data) == []
    assert names(data + "a") == ["a"]


def test_a_paste_is_one_event_with_every_character() -> None:
    assert names("a\x1b[200~x\ry\x1b[A\x1b[201~b") == ["a", "paste x\ny\x1b[A", "b"]


def test_a_paste_without_its_end_is_told_and_can_be_given_up() -> None:
    listener = Listener()
    listener.feed("\x1b[200~half")
    listener.rest()
    assert listener.names() == [] and (listener.reader.timeout or 0) > ESCAPE_SECONDS
    listener.give_up()
    listener.feed("k")
    assert listener.names() == ["paste half", "k"]


@pytest.mark.parametrize(
    "sequence", ["\x1b[A", "\x1bOA", "\x1b[1;5D", "\x1b[13;2u", "\x1b[200~x\x1b[201~", "\x1b[?62;22c"]
)
def test_a_slow_line_may_rest_within_a_sequence_but_an_escape_is_quick(sequence: str) -> None:
    for cut in range(2, len(sequence)):
        listener = Listener()
        listener.feed(f"a{sequence[:cut]}")
        listener.rest()
        listener.feed(f"{sequence[cut:]}b")
        listener.rest()
        assert listener.names() == ["a", *names(sequence), "b"], cut
    listener = Listener()
    listener.feed("\x1b")
    listener.rest()
    assert listener.names() == ["escape"] and listener.reader.timeout is None


@pytest.mark.parametrize(("data", "name"), [("\x1b[", "alt+["), ("\x1bO", "alt+o")])
def test_what_has_begun_as_a_sequence_is_a_key_in_the_end(data: str, name: str) -> None:
    listener = Listener()
    listener.feed(data)
    listener.rest()
    assert listener.names() == [] and (listener.reader.timeout or 0) > ESCAPE_SECONDS
    listener.give_up()
    assert [one.lower() for one in listener.names()] == [name]


def test_focus_is_told_and_is_no_key() -> None:
    listener = Listener()
    listener.feed("\x1b[I\x1b[O")
    assert listener.focus == [True, False] and listener.names() == []


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=50), st.integers(0, 50))
def test_text_arrives_as_it_is_in_any_pieces(text: str, cut: int) -> None:
    listener = Listener()
    listener.feed(text[:cut])
    listener.feed(text[cut:])
    assert listener.typed() == text


@example("\x1b]")
@example("\x1b[?")
@given(st.text(st.sampled_from("\x1b[]O;:?0123456789uABmR~P\\\x07abc"), max_size=30))
def test_no_bytes_raise_and_the_keyboard_lives_on(data: str) -> None:
    listener = Listener()
    listener.feed(data)
    listener.give_up()
    listener.rest()
    listener.keys.clear()
    listener.feed("zz")  # the first one ends an answer of the terminal that had only begun
    listener.rest()
    assert all(isinstance(key, Press | Pasted) for key in listener.keys)
    assert "z" in listener.typed() or listener.names()


@pytest.mark.parametrize("blocking", [True, False])
def test_a_keyboard_is_never_waited_for(blocking: bool) -> None:
    there, typed = os.pipe()
    try:
        os.set_blocking(there, blocking)
        keyboard = Keyboard(there)
        assert keyboard.read() is None
        os.write(typed, b"ab")
        assert keyboard.read() == b"ab"
        assert keyboard.read() is None
        os.close(typed)
        assert keyboard.read() == b""
    finally:
        os.close(there)
