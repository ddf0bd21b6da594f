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
        if test(screen.display):
            return when
    return None


def first_paint(chunks: Sequence[tuple[float, bytes]]) -> float | None:
    """Return when anything at all could be seen."""
    return seen_at(chunks, lambda rows: any(row.strip() for row in rows))


def first_seen(chunks: Sequence[tuple[float, bytes]], characters: str) -> float | None:
    """Return when any of the characters could be seen."""
    return seen_at(chunks, lambda rows: any(character in row for row in rows for character in characters))
