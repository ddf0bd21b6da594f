"""Looking for words: in the text of an item, and in its rows once it is drawn. Pure.

Capitals count as soon as one is typed. Matches do not overlap and lie within one logical line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenuto.text.matching import counts_capitals
from tenuto.tui.render.line import Line, logical_lines, text_start
from tenuto.tui.render.width import cell_width


class Cells(NamedTuple):
    """Cells `begin` to `end` (exclusive) of a row."""

    row: int
    begin: int
    end: int


Match = tuple[Cells, ...]
"""Where a match stands: one stretch of cells, or one in each row that it wraps over."""


def find_in_text(text: str, query: str) -> Iterator[int]:
    """Yield the index of each match in a text."""
    if not query:
        return
    searched = text if counts_capitals(query) else _lower(text)
    at = searched.find(query)
    while at >= 0:
        yield at
        at = searched.find(query, at + len(query))


def find_in_lines(lines: Sequence[Line], query: str) -> list[Match]:
    """Return the matches in an item's rows, gutters left out, wrapped rows read as one line."""
    found: list[Match] = []
    for first, last in logical_lines(lines):
        found.extend(_find_in_rows(lines, first, last, query))
    return found


def _find_in_rows(lines: Sequence[Line], first: int, last: int, query: str) -> Iterator[Match]:
    """Yield the matches in the rows of one logical line."""
    text = ""
    spans: list[tuple[int, int, int]] = []  # row, where its text begins in the joined text, and where it ends
    for row in range(first, last + 1):
        shown = lines[row].text[text_start(lines[row]) :]
        spans.append((row, len(text), len(text) + len(shown)))
        text += shown if row == last else shown + lines[row].join
    for at in find_in_text(text, query):
        end = at + len(query)
        yield tuple(
            Cells(row, *_cells(lines[row], max(at, begin) - begin, min(end, stop) - begin))
            for row, begin, stop in spans
            if begin < end and at < stop
        )


def _cells(line: Line, begin: int, end: int) -> tuple[int, int]:
    start = text_start(line)
    text = line.text
    return cell_width(text[: start + begin]), cell_width(text[: start + end])


def snippet(text: str, query: str, ordinal: int, width: int) -> tuple[str, str, str]:
    """Return the line of the match of that number in about `width` characters: before it, the match, behind it."""
    for number, at in enumerate(find_in_text(text, query)):
        if number == ordinal:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            line_end = len(text) if end < 0 else end
            begin = max(start, at - max(0, width - len(query)) // 3)
            before = text[begin:at].lstrip() if begin == start else f"…{text[begin:at]}"
            return before, text[at : at + len(query)], text[at + len(query) : min(line_end, begin + width)]
    return "", "", ""


def _lower(text: str) -> str:
    """Return the text in lower case, every character at its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join([low if len(low := character.lower()) == 1 else character for character in text])
