"""What a terminal would have shown, and when: the recorded bytes replayed through pyte."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyte
from scripts.bench_lib.terminal import COLUMNS, ROWS

# Strings (OSC, DCS, APC, PM) and private sequences that pyte would print instead of ignoring.
_UNKNOWN = re.compile(
    rb"\x1b[\]P_^].*?(?:\x07|\x1b\\)|\x1b\[[<>=][0-9;:]*[@-~]|\x1b\[\?[0-9;:$]*[^hl0-9;:$]", re.DOTALL
)
_INCOMPLETE = re.compile(rb"\x1b(?:\[[0-9;:<>=?$]*|[\]P_^][^\x07\x1b]*\x1b?)?$", re.DOTALL)


def seen_at(chunks: Sequence[tuple[float, bytes]], test: Callable[[list[str]], bool]) -> float | None:
    """Return when the screen first passed a test of its rows; `None` if it never did."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    held = b""
    for when, data in chunks:
        data = held + data
        cut = _INCOMPLETE.search(data)
        held = data[cut.start() :] if cut else b""
        stream.feed(_UNKNOWN.sub(b"", data[: len(data) - len(held)]))
        if test(_rows(screen)):
            return when
    return None


def _rows(screen: pyte.Screen) -> list[str]:
    """Return what the rows show; the second half of a wide character is empty, which pyte's own way does not expect."""
    return ["".join(screen.buffer[row][column].data for column in range(screen.columns)) for row in range(screen.lines)]


def rows_at_the_end(chunks: Sequence[tuple[float, bytes]]) -> list[str]:
    """Return the rows of the screen after all that came."""
    rows: list[str] = []

    def keep(seen: list[str]) -> bool:
        rows[:] = seen
        return False

    seen_at(chunks, keep)
    return rows


def first_paint(chunks: Sequence[tuple[float, bytes]]) -> float | None:
    """Return when anything at all could be seen."""
    return seen_at(chunks, lambda rows: any(row.strip() for row in rows))


def first_seen(chunks: Sequence[tuple[float, bytes]], characters: str) -> float | None:
    """Return when any of the characters could be seen."""
    return seen_at(chunks, lambda rows: any(character in row for row in rows for character in characters))
