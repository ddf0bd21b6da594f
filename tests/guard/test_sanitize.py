from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_keeping_colour, sanitize_line, sanitize_output

PAYLOADS = {
    "OSC 0 title": ("a\x1b]0;evil\x07b", "ab"),
    "OSC 52 clipboard": ("a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"),
    "OSC 8 link": ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "click"),
    "unterminated OSC": ("a\x1b]0;evil\nnext", "a\nnext"),
    "DCS": ("a\x1bP1;2|data\x1b\\b", "ab"),
    "tmux passthrough": ("a\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\b", "ab"),
    "APC": ("a\x1b_Gf=100;data\x1b\\b", "ab"),
    "PM and SOS": ("a\x1b^x\x1b\\b\x1bXy\x1b\\c", "abc"),
    "cursor moves": ("a\x1b[2J\x1b[H\x1b[10;20Hb\x1b[1A", "ab"),
    "status query": ("a\x1b[6nb\x1b[cc", "abc"),
    "full reset": ("a\x1bcb", "ab"),
    "private mode": ("\x1b[?1049h\x1b[?25l\x1b[>4;2mx", "x"),
    "charset": ("\x1b(0x\x1b(B", "x"),
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "8-bit CSI": ("a\x9b2Jb", "ab"),
    "8-bit OSC": ("a\x9d0;evil\x9cb", "ab"),
    "8-bit DCS": ("a\x90evil\x9cb", "ab"),
    "other C1": ("a\x85\x84b", "ab"),
    "BEL, BS, DEL, NUL, SO": ("a\x07\x08\x7f\x00\x0eb", "ab"),
    "carriage return": ("real\rfake", "realfake"),
    "bidi controls": ("a\u202ecod.exe\u202c\u2066b\u2069\u200f", "acod.exeb"),
    "escape at the end": ("a\x1b", "a"),
    "unfinished CSI": ("a\x1b[12;", "a"),
    "nested to rejoin": ("\x1b\x1b]0;x\x07[31mA", "[31mA"),
    "lone surrogate": ("a\ud800b", "a\ufffdb"),
    "kept": ("tab\tline\nünï 中 👩\u200d👧", "tab\tline\nünï 中 👩\u200d👧"),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_r088_payload_table(name: str) -> None:
    payload, expected = PAYLOADS[name]
    assert sanitize_for_terminal(payload) == expected


pieces = st.lists(
    st.sampled_from(
        ["\x1b", "[", "]", "31", "m", ";", "\x07", "\\", "P", "\x9b", "\x9d", "\x9c", "a", "\n", "\u202e", "c"]
    )
)


@given(pieces)
def test_r088_no_control_byte_is_ever_left(parts: list[str]) -> None:
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", sanitize_for_terminal("".join(parts))
    )


@given(pieces)
def test_r088_with_colour_only_plain_sgr_is_left(parts: list[str]) -> None:
    left = re.sub(r"\x1b\[[0-9;:]*m", "", sanitize_keeping_colour("".join(parts)))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", left)


def test_colour_stays_where_asked() -> None:
    assert sanitize_keeping_colour("\x1b[1;31mred\x1b[0m\x1b]0;t\x07\x1b[2J") == "\x1b[1;31mred\x1b[0m"


def test_output_is_what_a_terminal_would_have_left() -> None:
    assert sanitize_output("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"
    assert sanitize_output("a\r\nb\r\n") == "a\nb\n"
    assert sanitize_output("last\r") == "last"


def test_a_line_is_one_line() -> None:
    assert sanitize_line("evil\x1b]0;x\x07 branch\nname\r2") == "evil branch name 2"
