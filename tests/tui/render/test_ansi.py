"""Output of programs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.render.line import ansi_lines
from tests.tui.render.test_markdown import PAYLOADS, UNSAFE

PIECES = st.lists(
    st.sampled_from(
        [*PAYLOADS, "text", "\n", "\r", "\b", "\t", "\x1b[31m", "\x1b[0m", "\x1b[38;5;9m", "\x1b[48;2;1;2;3m", "\x1b["]
    )
).map("".join)


def test_colours_become_style_words():
    line = ansi_lines("a\x1b[1;31mb\x1b[0mc\x1b[92;44md\x1b[39me\x1b[38;5;208mf\x1b[48;2;1;2;255mg")[0]
    assert line == [
        ("a", "output"),
        ("b", "output fg=1 bold"),
        ("c", "output"),
        ("d", "output fg=10 bg=4"),
        ("e", "output bg=4"),
        ("f", "output fg=208 bg=4"),
        ("g", "output fg=208 bg=#0102ff"),
    ]


def test_colon_forms_are_read():
    assert ansi_lines("\x1b[38:2::1:2:3mx\x1b[0m\x1b[38:5:7my\x1b[0m\x1b[4:3mz\x1b[4:0mw")[0] == [
        ("x", "output fg=#010203"),
        ("y", "output fg=7"),
        ("z", "output underline"),
        ("w", "output"),
    ]


def test_a_colour_goes_on_over_rows():
    assert ansi_lines("\x1b[32mone\ntwo\x1b[m\nthree") == [
        [("one", "output fg=2")],
        [("two", "output fg=2")],
        [("three", "output")],
    ]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("10%\r50%\r100%", "100%"),
        ("done\r\nnext\r\r\n", "done\nnext\n"),
        ("N\bNA\bAME", "NAME"),
        ("a\x1b[2Kb\x1b[10;5Hc", "abc"),
        ("before\x1b]0;never ended\nafter", "before\nafter"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ],
)
def test_what_is_left_reads_well(raw, shown):
    assert "\n".join("".join(part for part, _ in line) for line in ansi_lines(raw)) == shown


@given(PIECES)
def test_r088_nothing_that_a_terminal_acts_on_is_left(raw):
    for line in ansi_lines(raw):
        for text, style in line:
            assert not UNSAFE.search(text.replace("\t", ""))
            assert re.fullmatch(r"[\w .=#]+", style)


@given(st.text(st.characters(codec="utf-8"), max_size=100))
def test_any_text_is_survived(raw):
    assert len(ansi_lines(raw)) == raw.count("\n") + 1
