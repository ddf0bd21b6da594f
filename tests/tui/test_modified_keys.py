"""Keys as terminals with kitty's protocol really send them: the same on both screens, and nothing typed is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from tenuto.tui.full.driver import InputReader
from tenuto.tui.inline.keys import Press
from tenuto.tui.keys.bindings import normal_key, typed_by
from tests.tui.key_bytes import key_reader

Keys = list[tuple[str, str | None]]


def on_the_full_screen(data: str) -> Keys:
    """The keys of these bytes, and what each types."""
    keys = [message for message in InputReader().feed(data.encode()) if isinstance(message, events.Key)]
    return [(normal_key(key.key), typed_by(key.key, key.character)) for key in keys]


def inline(data: str) -> Keys:
    keys = key_reader().feed(data.encode())
    return [(normal_key(key.name), typed_by(key.name, key.character)) for key in keys if isinstance(key, Press)]


@pytest.fixture(params=[on_the_full_screen, inline])
def read(request: pytest.FixtureRequest):
    return request.param


@pytest.mark.parametrize(
    ("data", "key"),
    [
        # kitty 0.26 with NumLock on
        ("\x1b[1;129A", "up"), ("\x1b[1;129D", "left"), ("\x1b[1;129H", "home"), ("\x1b[3;129~", "delete"),
        ("\x1b[5;129~", "pageup"), ("\x1b[1;129P", "f1"), ("\x1b[15;129~", "f5"), ("\x1b[1;130D", "shift+left"),
        ("\x1b[1;133D", "ctrl+left"), ("\x1b[1;131D", "alt+left"), ("\x1b[127;129u", "backspace"),
        ("\x1b[13;129u", "enter"), ("\x1b[9;130u", "shift+tab"), ("\x1b[97;133u", "ctrl+a"), ("\x1b[27;129u", "escape"),
        ("\x1b[122;137u", "super+z"), ("\x1b[1;65B", "down"), ("\x1b[1;193C", "right"),
        # the keypad
        ("\x1b[57414;129u", "enter"), ("\x1b[57419;129u", "up"), ("\x1b[57426u", "delete"),
        ("\x1b[57421;5u", "ctrl+pageup"),
        # another script, and the places of its keys on a Latin keyboard
        ("\x1b[1089::99;5u", "ctrl+c"), ("\x1b[1092::97;133u", "ctrl+a"), ("\x1b[1079::112;3u", "alt+p"),
        ("\x1b[252::91;5u", "ctrl+ü"), ("\x1b[45:95;6u", "ctrl+_"), ("\x1b[122:90;6u", "ctrl+shift+z"),
        ("\x1b[47;5u", "ctrl+/"),
        # what one key is in other terminals
        ("\x1b[105;5u", "tab"), ("\x1b[109;5u", "enter"), ("\x1b[91;5u", "escape"), ("\x1b[91;133u", "escape"),
        ("\x1b[127;2u", "backspace"), ("\x1b[127;130u", "backspace"), ("\x1b[27;2u", "escape"),
        ("\x1b[27;2;127~", "backspace"), ("\x1b[127;6u", "ctrl+shift+backspace"),
        ("\x1b[13;5u", "ctrl+enter"), ("\x1b[13;2u", "shift+enter"), ("\x1b[27;5;13~", "ctrl+enter"),
        ("\x1b[127;5:2u", "ctrl+backspace"), ("\x1b[1;1:2A", "up"),
        # Konsole, as it comes
        ("\x1bOM", "shift+enter"),
    ],
)  # fmt: skip
def test_a_key_is_the_same_whatever_is_locked_and_whichever_script_is_written(read, data: str, key: str) -> None:
    assert read(data) == [(key, None)]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        # kitty 0.26, every key as a sequence: no text for what is not ASCII
        ("\x1b[252;u", "ü"), ("\x1b[252;2u", "Ü"), ("\x1b[233;129u", "é"), ("\x1b[8364;u", "€"),
        ("\x1b[20320;129u", "你"),
        ("\x1b[97;;97u", "a"), ("\x1b[98;2;66u", "B"), ("\x1b[223;2;63u", "?"), ("\x1b[33:167;2u", "§"),
        ("\x1b[57400;129;49u", "1"), ("\x1b[57400;129u", "1"), ("\x1b[57409;129;46u", "."), ("\x1b[32;2u", " "),
        ("\x1b[223;2u", "ß"), ("\x1b[97;;97:769u", "a\u0301"),
    ],
)  # fmt: skip
def test_a_key_that_types_is_what_it_types(read, data: str, text: str) -> None:
    assert "".join(typed or "" for _, typed in read(data)) == text


@pytest.mark.parametrize(
    "data",
    [
        "\x1b[57441u", "\x1b[57442;129u", "\x1b[57358;65u", "\x1b[57360;129u", "\x1b[57453u",  # by themselves
        "\x1b[97;1:3u", "\x1b[1;1:3A", "\x1b[3;129:3~", "\x1b[13;2:3u",  # releases
        "\x1b[57441;5u", "\x1b[55296;5u", "\x1b[55296u", "\x1b[99999999999u",
    ],
)  # fmt: skip
def test_releases_and_modifiers_by_themselves_are_nothing(read, data: str) -> None:
    assert read(data) == []


@given(st.from_regex(r"\x1b\[[0-9:;]{0,24}[uA-H~P-S]", fullmatch=True))
def test_no_sequence_raises_or_types_what_cannot_be_shown(data: str) -> None:
    for read in (on_the_full_screen, inline):
        for _, typed in read(data):
            assert not typed or typed.encode()
