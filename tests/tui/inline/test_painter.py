"""Rows that are painted in place: whatever stood there, the terminal shows what was painted last."""

from __future__ import annotations

import pyte
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.tui.inline.bottom import CellRows, Painter, Place
from tenuto.tui.paint import Paint
from tenuto.tui.render.theme import find_theme

COLUMNS, ROWS = 12, 8
TEXTS = st.text(st.sampled_from("ab 漢é字—xyz"), max_size=14)
SPANS = st.lists(st.tuples(TEXTS, st.sampled_from(["text", "dim", "accent"])), max_size=3).map(tuple)
FRAMES = st.lists(
    st.tuples(st.lists(SPANS, min_size=1, max_size=ROWS - 2), st.integers(0, 99), st.integers(0, 99), st.booleans()),
    min_size=1,
    max_size=5,
)


class Terminal:
    def __init__(self) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)
        self.written: list[str] = []
        self.painter = Painter(self.write)

    def write(self, text: str) -> None:
        self.written.append(text)
        self.stream.feed(text)

    def paint(self, cells: CellRows, frame: tuple) -> None:
        spans, row, column, caret = frame
        rows = [cells.row(one) for one in spans]
        place = Place(row % len(rows), column % COLUMNS)
        self.painter.paint(rows, place, caret=caret, columns=COLUMNS)

    def look(self) -> tuple:
        cells = [[(cell.data, cell.fg) for cell in (line[x] for x in range(COLUMNS))] for line in self.lines()]
        return cells, (self.screen.cursor.x, self.screen.cursor.y), self.screen.cursor.hidden

    def lines(self) -> list:
        return [self.screen.buffer[y] for y in range(ROWS)]


def new_cells() -> CellRows:
    cells = CellRows(Paint(find_theme("dark"), "256"))
    cells.turn(COLUMNS)
    return cells


@given(FRAMES)
@example([([(), ()], 0, 0, False), ([(("a" * 10 + "字", "text"),)], 0, 59, False)])
def test_frames_one_after_the_other_look_as_the_last_one_alone(frames: list[tuple]) -> None:
    one, fresh, cells = Terminal(), Terminal(), new_cells()
    for frame in frames:
        one.paint(cells, frame)
    fresh.paint(cells, frames[-1])
    assert one.look() == fresh.look()


@given(FRAMES)
def test_the_same_frame_again_writes_nothing_and_in_doubt_all_of_it(frames: list[tuple]) -> None:
    one, cells = Terminal(), new_cells()
    for frame in frames:
        one.paint(cells, frame)
    look, before = one.look(), len("".join(one.written))
    one.paint(cells, frames[-1])
    assert len("".join(one.written)) == before
    one.screen.erase_in_display(2)
    one.painter.doubt()
    one.paint(cells, frames[-1])
    assert one.look() == look


@given(FRAMES)
def test_what_is_erased_leaves_nothing_and_the_cursor_where_it_began(frames: list[tuple]) -> None:
    one, cells = Terminal(), new_cells()
    one.write("above\r\n")
    for frame in frames:
        one.paint(cells, frame)
    one.painter.erase()
    assert [row.rstrip() for row in one.screen.display if row.strip()] == ["above"]
    assert (one.screen.cursor.x, one.screen.cursor.y) == (0, 1)


def test_a_key_costs_what_it_changes() -> None:
    one, cells = Terminal(), new_cells()
    one.paint(cells, ([(("❯ abc", "text"),), (("footer", "dim"),)], 0, 5, True))
    one.written.clear()
    one.paint(cells, ([(("❯ abcd", "text"),), (("footer", "dim"),)], 0, 6, True))
    assert "footer" not in "".join(one.written) and "abc" not in "".join(one.written)
