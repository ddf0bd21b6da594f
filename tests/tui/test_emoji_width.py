"""Characters that terminals measure each in their own way: what follows them stands in its cell in all of them."""

from __future__ import annotations

import re

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual.strip import Strip

from tenuto.tui.inline.bottom import CellRows, Painter, Place
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import plain
from tenuto.tui.render.theme import find_theme
from tenuto.tui.render.width import cell_width, split_graphemes
from tenuto.tui.terminal import emoji_width
from tenuto.tui.terminal.emoji_width import is_unsure, is_unsure_alone, pin, pin_alone, pin_row

JOINED = ["👩‍👩‍👧", "👩🏽‍💻", "🏳️‍🌈", "🏴‍☠️", "❤️‍🔥", "🧑‍🧑‍🧒‍🧒"]
TONES = ["👍🏽", "🫱🏻‍🫲🏿"]
SELECTED = ["⚠️", "✔️", "ℹ️", "↔️", "©️", "1️⃣", "#️⃣", "⌚︎"]
FLAGS = ["🇩🇪", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"]
ALONE = ["🎵", "✅", "🫨", "\U0001fae9", "䷀"]
UNSURE = [*JOINED, *TONES, *SELECTED, *FLAGS, *ALONE]
SURE = ["a", "漢", "한", "e\u0301", "⚠", "✔", "─", "…", "❯", "⠋", "क", "𝄞"]


class Narrow(pyte.Screen):
    """A terminal that adds up what is joined (as pyte does), and takes one cell where `wide` is false, always."""

    def __init__(self, columns: int, rows: int = 4) -> None:
        super().__init__(columns, rows)
        self.set_mode(7, private=True)

    def feed(self, text: str) -> Narrow:
        pyte.Stream(self).feed(text)
        return self

    def column_of(self, character: str) -> int:
        row = self.buffer[self.cursor.y]
        return next(column for column in range(self.columns) if row[column].data == character)


@pytest.mark.parametrize("text", UNSURE)
def test_what_follows_stands_in_its_cell_whatever_the_terminal_counts(text: str) -> None:
    assert is_unsure(text)
    for before in ("", "漢", "x\x1b[1m"):
        screen = Narrow(40).feed("_" * 40 + "\r" + pin(f"{before}{text}\x1b[0m|"))
        cells = cell_width(before.partition("\x1b")[0]) + cell_width(text)
        assert screen.column_of("|") == cells and screen.cursor.x == cells + 1
        shown = [screen.buffer[0][column].data for column in range(cells)]
        assert "_" not in shown, "what stood there shows in no cell that the terminal has left out"


@pytest.mark.parametrize(
    ("text", "shown"), [("👩🏽‍💻", "👩"), ("👍🏽", "👍"), ("🏳️‍🌈", "🏳️"), ("🇩🇪", "🇩🇪\ufe0f"), ("1️⃣", "1️⃣")]
)
def test_foot_is_given_no_part_that_would_hide_what_follows(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "foot")
    for name in ("TMUX", "STY", "ZELLIJ", "TERM_PROGRAM", "VTE_VERSION", "KONSOLE_VERSION", "KITTY_WINDOW_ID"):
        monkeypatch.delenv(name, raising=False)
    emoji_width._paints_over.cache_clear()
    try:
        assert pin(text) == f"\x1b7{' ' * cell_width(text)}\x1b8\x1b7{shown}\x1b8\x1b[{cell_width(text)}C"
    finally:
        emoji_width._paints_over.cache_clear()


@pytest.mark.parametrize("text", SURE)
def test_what_all_agree_on_is_left_alone(text: str) -> None:
    assert not is_unsure(text) and pin(f"\x1b[1m{text}\x1b[0m") == f"\x1b[1m{text}\x1b[0m"


@pytest.mark.parametrize("text", UNSURE)
def test_a_row_that_ends_with_one_is_one_row(text: str) -> None:
    columns = 20 + cell_width(text)
    screen = Narrow(columns).feed("\x1b[4;1H" + pin_row("x" * 20 + text) + "\r\nnext")
    rows = [row.rstrip() for row in screen.display]
    assert rows[2].startswith("x" * 20) and rows[3] == "next"
    assert pyte.modes.DECAWM in screen.mode


@given(st.lists(st.sampled_from([*UNSURE, *SURE, " ", "word", "\x1b[31m", "\x1b[0m"]), max_size=12))
def test_only_places_are_added(parts: list[str]) -> None:
    text = "".join(parts)
    pinned = pin(text)
    written = re.sub(r"\x1b7 +\x1b8\x1b7(.*?)\x1b8\x1b\[[12]C", r"\1", pinned)
    assert written == text
    plain_text = re.sub(r"\x1b\[\d+m", "", text)
    screen = Narrow(80).feed(f"{pinned}|")
    assert screen.cursor.x == cell_width(plain_text) + 1


def test_a_tone_on_what_has_one_cell_is_left_out() -> None:
    assert "☝" in pin("☝🏽") and "🏽" not in pin("☝🏽")


def test_spacing_vowel_signs_take_a_cell_and_stay_with_their_letter() -> None:
    """As counted by xterm, VTE, Konsole, urxvt, tmux and xterm.js; rich and Python's wcwidth have them as marks."""
    counted = {"हिन्दी में लिखा": 12, "நிரல் எழுது": 10, "কোড লেখা": 8, "မြန်မာ": 5, "ខ្មែរ": 4, "മലയാളം കോഡ്": 10}
    assert {text: cell_width(text) for text in counted} == counted
    found = ["हिन्दी में"[start:end] for start, end, _cells in split_graphemes("हिन्दी में")]
    assert found == ["हि", "न्", "दी", " ", "में"]
    assert cell_width("か\u3099") == 2 and cell_width("e\u0301") == 1
    assert Strip([Segment("हिन्दी में लिखा")]).cell_length == 12, "Textual is of the same opinion"


def test_joined_letters_with_a_vowel_are_held_to_their_cells() -> None:
    assert "\x1b[3C" in pin("न्दी") and cell_width("न्दी") == 3
    assert pin("हि") == "हि" and is_unsure_alone("हि") and not is_unsure_alone("ह") and not is_unsure_alone("e\u0301")
    assert pin_alone("हि").endswith("\x1b7हि\x1b8\x1b[2C")


def test_the_halves_of_a_flag_are_one_character() -> None:
    assert split_graphemes("a🇩🇪🇫🇷🇪b") == [(0, 1, 1), (1, 3, 2), (3, 5, 2), (5, 6, 1), (6, 7, 1)]


def test_inline_the_rest_of_a_row_is_written_again_behind_one() -> None:
    written: list[str] = []
    painter, cells = Painter(written.append), CellRows(Paint(find_theme("dark"), "true"))
    cells.turn(20)
    for text in ("ab 👩‍👩‍👧 same", "ab ⚠️ same"):
        painter.paint([cells.row(plain(text).spans)], Place(0, 0), caret=True, columns=20)
    assert " same" in written[1] and "ab" not in written[1], "what is before it may stay"
    assert written[1].index(" same") < written[1].index("\x1b[K")
    painter.paint([cells.row(plain("x" * 18 + "⚠️").spans)], Place(0, 0), caret=True, columns=20)
    assert "\x1b[K" not in written[2].rpartition("x")[2], "behind the last cell there is nothing to erase"
