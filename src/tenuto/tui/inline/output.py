"""The terminal that is painted on: everything of one frame in one write, shown at once where the terminal can."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from tenuto.tui.first_paint.paint import reflow_of
from tenuto.tui.terminal.emulator import Reflow, recognise
from tenuto.tui.terminal.writer import TerminalWriter

SYNC_BEGIN, SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
TMUX_SYNC = (3, 7)
"""The first version of tmux that is trusted with synchronised output."""
SETTLE_SECONDS = 2.0
FRAME_CHARACTERS = 8_192
"""Terminals show what they have of a frame that takes them too long."""


class Size(NamedTuple):
    """Cells of a terminal."""

    rows: int
    columns: int


DEFAULT_SIZE = Size(rows=24, columns=80)


class Sink(Protocol):
    """What takes the frames: a `TerminalWriter`, or a text file."""

    def write(self, text: str, /) -> object:
        """Take a text."""
        ...

    def flush(self) -> object:
        """Hand on what has gathered."""
        ...


class InlineOutput:
    """Writes frames to `sink`. `get_size` asks the terminal for its size."""

    def __init__(self, sink: Sink, get_size: Callable[[], Size], *, synchronised: bool) -> None:
        self.get_size = get_size
        self._sink = sink
        self._marks = (SYNC_BEGIN, SYNC_END) if synchronised else ("", "")
        self._holding = False
        self._gathered: list[str] = []

    @contextlib.contextmanager
    def frame(self) -> Generator[None]:
        """Write what is written inside at once, at the end of the outermost frame."""
        before, self._holding = self._holding, True
        try:
            yield
        finally:
            self._holding = before
            self.flush()

    def settle(self) -> None:
        """Wait until everything is written, where that happens elsewhere: another program will write next."""
        self.flush()
        if isinstance(self._sink, TerminalWriter):
            self._sink.drain(SETTLE_SECONDS)

    def stalled(self) -> bool:
        """Say whether the terminal is far behind."""
        return isinstance(self._sink, TerminalWriter) and self._sink.stalled

    def write(self, sequences: str) -> None:
        """Write what the terminal understands, with the next `flush`."""
        if sequences:
            self._gathered.append(sequences)

    def flush(self) -> None:
        """Write what has gathered, unless a frame is being made."""
        if self._holding or not self._gathered:
            return
        begin, end = self._marks
        data, self._gathered = "".join(self._gathered), []
        for piece in split_frame(data):
            self._sink.write(f"{begin}{piece}{end}")
        self._sink.flush()


def split_frame(data: str) -> Iterator[str]:
    """Return what is to be written in pieces of about `FRAME_CHARACTERS`, each of whole rows: none is ever torn."""
    start = 0
    while len(data) - start > FRAME_CHARACTERS:
        end = data.rfind("\r\n", start, start + FRAME_CHARACTERS)
        if end < 0:
            end = data.find("\r\n", start + FRAME_CHARACTERS)
        if end < 0:
            break
        yield data[start : end + 2]
        start = end + 2
    yield data[start:]


def terminal_size(descriptor: int) -> Callable[[], Size]:
    """Return what asks the terminal for its size; one that does not know is 80 by 24."""

    def ask() -> Size:
        try:
            columns, rows = os.get_terminal_size(descriptor)
        except OSError:
            return DEFAULT_SIZE
        return Size(rows=rows or DEFAULT_SIZE.rows, columns=columns or DEFAULT_SIZE.columns)

    return ask


def synchronises(environ: Mapping[str, str]) -> bool:
    """Say whether frames may be marked as such (DEC 2026): others than old versions of tmux take it or leave it."""
    if not environ.get("TMUX") and environ.get("TERM_PROGRAM") != "tmux":
        return environ.get("TERM") != "linux"
    version = re.match(r"(\d+)\.(\d+)", environ.get("TERM_PROGRAM_VERSION", ""))
    return version is not None and (int(version[1]), int(version[2])) >= TMUX_SYNC


STABLE_SECONDS = 0.3
"""A width that has not changed for so long is taken for the last one."""

CLEARING_SECONDS = 0.03
"""A terminal that clears what is painted again shows nothing of it until then."""
PAINTED_AGAIN = "\x1b]133;A;k=s\x1b\\"
"""Tells kitty that the rows from this one on are painted again at another size; it clears them, and wraps none.

Left to itself it says the wrong row for the cursor. `k=s`: this is no prompt that its keys should jump to.
"""
NOT_PAINTED_AGAIN = "\x1b]133;A;k=s;redraw=0\x1b\\"
"""Takes that back: the next program's rows are not to be cleared."""

Row = Sequence[int]
"""The cells of each character of a row."""


class Painted(Struct, frozen=True):
    """The rows of the bottom as they were painted, and in which of them, and in which cell, the cursor is."""

    rows: Sequence[Row]
    cursor_row: int
    cursor_column: int


def habit_in(environ: Mapping[str, str]) -> Reflow:
    """Return what the terminal does with the rows of the bottom at another size."""
    return "clears" if recognise(environ) == "kitty" else reflow_of(environ)


def rows_above_cursor(painted: Painted, widths: Sequence[int], habit: Reflow) -> int:
    """Return how many rows of the bottom are above the cursor now.

    `widths` are those that the terminal has had: the one that was painted for, then each that came after it.
    """
    match habit:
        case "cuts" | "clears":
            return painted.cursor_row
        case "wraps" | "wraps-above":
            above = sum(wrapped_rows(row, widths[-1]) for row in painted.rows[: painted.cursor_row])
            present = painted.rows[painted.cursor_row : painted.cursor_row + 1]
            return above + (_row_of(present, painted, widths[-1]) if habit == "wraps" else 0)
        case "counts":
            return _counted(painted, widths)


def wrapped_rows(row: Row, columns: int) -> int:
    """Return how many rows a row takes that is wrapped at this width; a wide character is never parted."""
    return len(_starts(row, columns))


def _starts(row: Row, columns: int) -> list[int]:
    """Return the cells at which the pieces of a wrapped row begin."""
    starts, cell = [0], 0
    for cells in row:
        if cell + cells - starts[-1] > columns and cell > starts[-1]:
            starts.append(cell)
        cell += cells
    return starts


def _row_of(row: Sequence[Row], painted: Painted, columns: int) -> int:
    """Return in which piece of its wrapped row the cursor is."""
    starts = _starts(row[0], columns) if row else [0]
    piece = sum(start <= painted.cursor_column for start in starts) - 1
    return piece + (painted.cursor_column - starts[piece]) // columns


def _counted(painted: Painted, widths: Sequence[int]) -> int:
    """Return where the cursor is after all these widths, in rows from the first; each row is wrapped by itself."""
    cursor = painted.cursor_row
    rows = list(painted.rows)
    heights = [1] * len(rows)
    for before, columns in itertools.pairwise(widths):
        ends = [sum(heights[: place + 1]) for place in range(len(rows))]
        moved = cursor
        for place in reversed(range(len(rows))) if columns < before else range(len(rows)):
            present = moved if columns < before else cursor
            if ends[place] - heights[place] <= present < ends[place]:
                rows[place] = _cut(rows[place], before, columns)  # the rest is left to the program
                continue
            height = wrapped_rows(rows[place], columns)
            moved += height - heights[place]
            heights[place] = height
        cursor = moved
    return cursor


def _cut(row: Row, before: int, columns: int) -> Row:
    """Return what is left of a row, wrapped at `before`, that is cut at `columns`."""
    kept: list[int] = []
    starts, cell = _starts(row, before), 0
    for cells in row:
        start = max(start for start in starts if start <= cell)
        if cell + cells - start <= columns:
            kept.append(cells)
        cell += cells
    return kept
