"""Frames in fewer bytes show the same."""

from __future__ import annotations

import pyte
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tenuto.tui.full.resizing import LONG, SparingPieces, SparingScreen

COLUMNS, ROWS = 40, 3
STYLES = (None, *map(Style.parse, ("default on default", "bold red", "dim", "on blue", "reverse", "underline")))
CONSOLE = Console(color_system="256")
PIECES = st.tuples(
    st.sampled_from(("a", "two words", "", "你好", "▐")), st.integers(0, COLUMNS), st.sampled_from(STYLES)
)


def strip_of(pieces: list[tuple[str, int, Style | None]], width: int) -> Strip:
    segments = [Segment(text + " " * blanks, style) for text, blanks, style in pieces]
    return Strip(segments).adjust_cell_length(width)


def painted(*sequences: str) -> list[object]:
    """What a terminal that was full of something shows: colours of what is written, grounds of all."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    stream.feed("\x1b[44m" + "x" * COLUMNS * ROWS + "\x1b[0m")
    for sequence in sequences:
        stream.feed(sequence)
    cells = [screen.buffer[row][column] for row in range(ROWS) for column in range(COLUMNS)]
    return [
        (one.data, one.bg, one.reverse, one.underscore, (one.fg, one.bold) if one.data.strip() else None)
        for one in cells
    ]


@given(st.lists(st.lists(PIECES, max_size=4), min_size=ROWS, max_size=ROWS))
@example([[("a", 0, None), ("", 30, STYLES[1]), ("▐", 0, STYLES[2])]] * ROWS)
def test_a_screen_shows_the_same(rows):
    strips = [[strip_of(pieces, COLUMNS)] for pieces in rows]
    region = Region(0, 0, COLUMNS, ROWS)
    usual = LayoutUpdate(strips, region).render_segments(CONSOLE).replace("\n", "\r\n")
    sparing = SparingScreen(strips, region).render_segments(CONSOLE)
    assert painted(sparing) == painted(usual)
    assert len(sparing) <= len(usual)


@given(st.lists(PIECES, max_size=4), st.lists(PIECES, max_size=4), st.integers(1, COLUMNS - 1), st.data())
def test_pieces_show_the_same(left, right, cut, data):
    first = data.draw(st.integers(0, COLUMNS - 1))
    last = data.draw(st.integers(first + 1, COLUMNS))
    chops = [{0: strip_of(left, cut), cut: strip_of(right, COLUMNS - cut)}] * ROWS
    given_to = (chops, [(1, first, last)], [[cut, COLUMNS]] * ROWS)
    usual = ChopsUpdate(*given_to).render_segments(CONSOLE).replace("\n", "\r\n")
    assert painted(SparingPieces(*given_to).render_segments(CONSOLE)) == painted(usual)


def test_blanks_of_an_empty_row_are_not_sent():
    strips = [[Strip.blank(COLUMNS)]] * ROWS
    sent = SparingScreen(strips, Region(0, 0, COLUMNS, ROWS)).render_segments(CONSOLE)
    assert sent == "".join(f"\x1b[{row};1H\x1b[K" for row in range(1, ROWS + 1))


def test_blanks_before_a_mark_at_the_edge_are_stepped_over():
    blanks = COLUMNS - 3
    row = [Strip([Segment("ab"), Segment(" " * blanks), Segment("▐", STYLES[2])])]
    sent = SparingScreen([row], Region(0, 0, COLUMNS, 1)).render_segments(CONSOLE)
    assert blanks > LONG
    assert sent == f"\x1b[1;1Hab\x1b[{blanks}X\x1b[{blanks}C\x1b[1;31m▐\x1b[0m"
