"""What people write, what terminals send, and what is shown: one key, one name."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

from tenuto.tui.full.driver import InputReader
from tenuto.tui.inline.keys import Press, read_keys
from tenuto.tui.keys.bindings import KeyNameError, key_label, normal_key, parse_keys, typed_by
from tenuto.tui.keys.keys import KEYS
from tests.tui.key_bytes import bytes_of, key_reader

TABLE = sorted({normal_key(key) for row in KEYS for key in row.keys})


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Ctrl-X", "ctrl+x"), ("C-x", "ctrl+x"), ("^X", "ctrl+x"), ("control+X", "ctrl+x"),
        ("M-p", "alt+p"), ("Option-P", "alt+p"), ("alt+P", "alt+p"), ("C-M-x", "ctrl+alt+x"), ("M-C-x", "ctrl+alt+x"),
        ("esc", "escape"), ("Return", "enter"), ("S-Tab", "shift+tab"), ("PgDn", "pagedown"),
        ("PageUp", "pageup"), ("ctrl+pgup", "ctrl+pageup"), ("del", "delete"), ("→", "right"), ("F12", "f12"),
        ("K", "K"), ("shift+k", "K"), ("?", "?"), ("question_mark", "?"), ("space", "space"), ("-", "-"),
        ("ctrl+-", "ctrl+-"), ("ctrl--", "ctrl+-"), ("ctrl++", "ctrl++"), ("+", "+"), ("super+k", "super+k"),
        ("C-x C-e", "ctrl+x ctrl+e"), (" Ctrl+X   q ", "ctrl+x q"), ("é", "é"),
    ],
)  # fmt: skip
def test_people_may_write_keys_as_they_are_used_to(written, key):
    assert parse_keys(written) == key


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("ctrl+i", "Tab"), ("C-m", "Enter"), ("ctrl+[", "Esc"), ("ctrl+h", "Backspace"), ("ctrl+1", "digit"),
        ("cmd+k", "super+k"), ("command+k", "terminals keep"), ("win+x", "super+x"), ("hyper+x", "no modifier"),
        ("entr", "did you mean enter"), ("f99", "no key"), ("ctrl+", "names no key"), ("", "names no key"),
        ("a b c", "chord of 3"), ("ctrl+x cmd+e", "super+e"),
    ],
)  # fmt: skip
def test_what_no_terminal_sends_is_explained(written, words):
    with pytest.raises(KeyNameError, match=words.replace("+", r"\+")):
        parse_keys(written)


@given(st.text(max_size=12))
def test_nothing_that_is_written_ends_in_a_fault(text):
    try:
        key = parse_keys(text)
    except KeyNameError as error:
        assert "\n" not in str(error) or "\n" in text
    else:
        assert parse_keys(key) == key


@pytest.mark.parametrize("key", TABLE)
def test_labels_can_be_written_into_the_file(key):
    assert normal_key(key) == key
    if key not in ("ctrl+h",):  # bound for terminals whose Backspace sends it
        assert parse_keys(key_label(key)) == key


@pytest.mark.parametrize(
    ("key", "label"),
    [("ctrl+o", "Ctrl+O"), ("pageup", "PageUp"), ("y", "y"), ("N", "N"), ("alt+up", "Alt+↑"), ("escape", "Esc"),
     ("ctrl+x ctrl+e", "Ctrl+X Ctrl+E"), ("?", "?"), ("ctrl+_", "Ctrl+_"), ("ctrl+shift+z", "Ctrl+Shift+Z")],
)  # fmt: skip
def test_keys_are_shown_as_people_read_them(key, label):
    assert key_label(key) == label


def full_names(data: str) -> list[str]:
    reader = InputReader()
    messages = list(reader.feed(data.encode()))
    deadline = time.monotonic() + 120
    while reader.timeout is not None and time.monotonic() < deadline:
        time.sleep(0.02)
        messages += reader.idle()
    return [normal_key(message.key) for message in messages if isinstance(message, events.Key)]


def inline_names(data: str) -> list[str]:
    reader = key_reader()
    keys = [*reader.feed(data.encode()), *reader.give_up()]
    return [normal_key(key.name) for key in keys if isinstance(key, Press)]


@pytest.mark.parametrize("key", TABLE)
def test_every_key_of_the_table_is_the_same_key_in_both_screens(key):
    data = bytes_of(key)
    if key == "ctrl+h":
        assert inline_names(data) == ["backspace"]
    else:
        assert full_names(data) == inline_names(data) == key.split()


@pytest.mark.parametrize(
    "data", ["\x1b[13;2u", "\x1b[27;2;13~", "\x1b[13;2:1u", "\x1b[119;5u", "\x1b[27;5;119~", "\x1b[119:87;5u"]
)
def test_every_protocol_says_the_same_to_both_screens(data):
    assert full_names(data) == inline_names(data) == (["shift+enter"] if "13" in data else ["ctrl+w"])


@pytest.mark.parametrize(
    "data", ["\x1b[57441;1u", "\x1b[?1u", "\x1b[999999999;1u", "\x1b[97;5:3u", "\x1b[;;u", "\x1b[1:2:3u"]
)
def test_an_unknown_key_is_never_escape_and_text(data):
    for names in (full_names(data + "a"), inline_names(data + "a")):
        assert "escape" not in names and names[-1:] == ["a"] and len(names) <= 2


def test_a_key_with_alt_types_nothing_whatever_the_terminal_says():
    assert (typed_by("alt+f", "f"), typed_by("ctrl+x", "x"), typed_by("alt+shift+f", "F")) == (None, None, None)
    assert (typed_by("plus", "+"), typed_by("shift+a", "A"), typed_by("a", "a")) == ("+", "A", "a")


def test_what_joins_characters_is_typed_and_control_characters_are_not():
    assert (typed_by("zero_width_joiner", "\u200d"), typed_by("zero_width_non_joiner", "\u200c")) == (
        "\u200d",
        "\u200c",
    )
    assert [typed_by("escape", "\x1b"), typed_by("x", "\x9b"), typed_by("up", None)] == [None] * 3


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("\x1b\x1b", ["escape"] * 2),
        ("\x1b\x1b[A", ["alt+up"]),
        ("\x1b\x1bOA", ["alt+up"]),
        ("\x1b\x1b[5~", ["alt+pageup"]),
        ("\x1b<", ["alt+<"]),
        ("\x1b/", ["alt+/"]),
        ("\x1bF", ["alt+shift+f"]),
    ],
)
def test_an_escape_before_a_key_is_alt_and_two_of_them_are_two(data, keys):
    assert full_names(data) == inline_names(data) == keys


BASIC = {"up", "down", "left", "right", "home", "end", "insert", "delete", "pageup", "pagedown", "f1", "f5", "f12"}
OTHERWISE = ("\x1b[7^", "\x1b[8^", "\x1bOb", "\x1bb", "\x1bf", "\x1b[1;9", "\x1b[5")
"""Where Textual's table crosses two keys of rxvt, takes Alt for Ctrl or Super for Alt; and PuTTY's own way."""


def test_every_sequence_of_a_basic_key_has_the_name_that_textual_has_for_it() -> None:
    checked = 0
    for sequence, keys in ANSI_SEQUENCES_KEYS.items():
        if not isinstance(keys, tuple) or len(keys) != 1 or not sequence.startswith("\x1b"):
            continue
        name = str(keys[0].value)
        if name.split("+")[-1] in BASIC and not sequence.startswith(OTHERWISE):
            assert [normal_key(read) for read, _ in read_keys(sequence)] == [normal_key(name)], repr(sequence)
            checked += 1
    assert checked > 60
