"""Diffs: numbers and signs in the gutter, words that changed, two columns on a wide screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.protocol.message import DiffView
from tenuto.tui.render.line import Line, Span, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.wrap import wrap_code

SPLIT_WIDTH = 140
FOLDED_ROWS = 20
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MARKED_CHARACTERS = 400
"""Longer lines are not compared word by word: nobody reads them so, and it costs their square."""

Kind = Literal["added", "removed", "context", "hunk"]


class DiffRow(NamedTuple):
    """One line of a diff; a number is 0 where that side has no such line. `marks` are changed (start, end)."""

    kind: Kind
    old: int
    new: int
    text: str
    marks: tuple[tuple[int, int], ...] = ()


def parse_diff(diff: str) -> list[DiffRow]:
    """Return the rows of a unified diff without its `---` and `+++` head; what is no diff line is left out."""
    rows: list[DiffRow] = []
    old = new = 1
    for line in sanitize_for_terminal(diff).removesuffix("\n").split("\n"):
        sign, text = line[:1], line[1:]
        if match := _HUNK.match(line):
            old, new = int(match[1]), int(match[2])
            if rows:
                rows.append(DiffRow("hunk", 0, 0, ""))
        elif sign == "+":
            rows.append(DiffRow("added", 0, new, text))
            new += 1
        elif sign == "-":
            rows.append(DiffRow("removed", old, 0, text))
            old += 1
        elif sign == " " or (not line and rows):  # some tools take the space off an empty line
            rows.append(DiffRow("context", old, new, text))
            old, new = old + 1, new + 1
    return _mark_words(rows)


def _mark_words(rows: list[DiffRow]) -> list[DiffRow]:
    for start, middle, end in _changes(rows):
        for index in range(min(middle - start, end - middle)):
            before, after = rows[start + index], rows[middle + index]
            removed, added = changed_words(before.text, after.text)
            rows[start + index] = before._replace(marks=removed)
            rows[middle + index] = after._replace(marks=added)
    return rows


def _changes(rows: Sequence[DiffRow]) -> Iterator[tuple[int, int, int]]:
    """Yield (first removed, first added, end) of each run of removed lines with added ones right after it."""
    index = 0
    while index < len(rows):
        start = index
        while index < len(rows) and rows[index].kind == "removed":
            index += 1
        middle = index
        while index < len(rows) and rows[index].kind == "added":
            index += 1
        if start < middle < index:
            yield start, middle, index
        if index == start:
            index += 1


def changed_words(before: str, after: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the changed (start, end) of both lines; nothing when they are too different for it to help."""
    if max(len(before), len(after)) > _MARKED_CHARACTERS:
        return (), ()
    old, new = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < 0.4:
        return (), ()
    removed: list[tuple[int, int]] = []
    added: list[tuple[int, int]] = []
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            _extend(removed, old, old_start, old_end)
            _extend(added, new, new_start, new_end)
    return tuple(removed), tuple(added)


def _extend(marks: list[tuple[int, int]], words: Sequence[str], start: int, end: int) -> None:
    if start < end:
        begin = sum(map(len, words[:start]))
        marks.append((begin, begin + sum(map(len, words[start:end]))))


def diff_summary(view: DiffView, glyphs: Glyphs) -> tuple[Span, ...]:
    """Return "+12 −3" as spans."""
    return (f"+{view.added}", "diff.plus"), (" ", "dim"), (f"{glyphs.minus}{view.removed}", "diff.minus")


def diff_lines(view: DiffView, width: int, glyphs: Glyphs, limit: int | None = None) -> list[Line]:
    """Return the rows of a diff within `width` cells, at most `limit` lines of it and then how many more there are."""
    rows = parse_diff(view.diff)
    shown = rows if limit is None or len(rows) <= limit else rows[:limit]
    digits = len(str(max((max(row.old, row.new) for row in rows), default=1)))
    if width >= SPLIT_WIDTH and any(row.kind == "removed" for row in rows):
        lines = _split(shown, width, digits, glyphs)
    else:
        lines = [line for row in shown for line in _unified(row, width, digits, glyphs)]
    if len(shown) < len(rows):
        lines.append(plain(f"{glyphs.ellipsis} +{len(rows) - len(shown)} lines", "dim"))
    return lines


_SIGNS = {"added": "+", "removed": "-", "context": " "}


def _unified(row: DiffRow, width: int, digits: int, glyphs: Glyphs) -> list[Line]:
    if row.kind == "hunk":
        return [plain(" " * digits + f" {glyphs.ellipsis}", "dim")]
    number = f"{row.new or row.old:>{digits}} "
    sign = f"{_SIGNS[row.kind]} "
    gutter = digits + 1 + len(sign)
    body = wrap_code(_body(row), max(width - gutter, 4))
    head: tuple[Span, ...] = ((number, f"diff.number diff.{row.kind}"), (sign, f"diff.{row.kind}"))
    below: tuple[Span, ...] = ((" " * gutter, f"diff.{row.kind}"),)
    return [
        Line((*(below if index else head), *line.spans), line.soft, gutter, "", line.source)
        for index, line in enumerate(body)
    ]


def _body(row: DiffRow) -> list[Span]:
    style = f"diff.{row.kind}"
    if not row.marks:
        return [(row.text, style)] if row.text else []
    spans: list[Span] = []
    position = 0
    for start, end in row.marks:
        spans.append((row.text[position:start], style))
        spans.append((row.text[start:end], f"{style}.word"))
        position = end
    spans.append((row.text[position:], style))
    return [span for span in spans if span[0]]


def _split(rows: Sequence[DiffRow], width: int, digits: int, glyphs: Glyphs) -> list[Line]:
    """Old on the left, new on the right. Copying takes the right side: what the file says now."""
    half = (width - 3) // 2
    lines: list[Line] = []
    for left, right in _pairs(rows):
        if left is not None and left.kind == "hunk":
            lines.extend(_unified(left, width, digits, glyphs))
            continue
        old = _unified(left, half, digits, glyphs) if left else []
        new = _unified(right, half, digits, glyphs) if right else []
        for index in range(max(len(old), len(new))):
            left_line = old[index] if index < len(old) else Line(())
            right_line = new[index] if index < len(new) else Line(())
            space = " " * (half - left_line.width)
            middle = (
                (space, f"diff.{left.kind}" if left and left_line.spans else "text"),
                (f" {glyphs.column} ", "rule"),
            )
            spans = (*left_line.spans, *middle, *right_line.spans)
            gutter = half + 3 + right_line.gutter
            lines.append(Line(spans, right_line.soft, gutter, "", right_line.source))
    return lines


def _pairs(rows: Sequence[DiffRow]) -> Iterator[tuple[DiffRow | None, DiffRow | None]]:
    index = 0
    while index < len(rows):
        if rows[index].kind in ("context", "hunk"):
            same = rows[index]
            # The left column counts the old file's lines.
            yield same._replace(new=0), same
            index += 1
            continue
        old: list[DiffRow] = []
        new: list[DiffRow] = []
        while index < len(rows) and rows[index].kind in ("removed", "added"):
            (old if rows[index].kind == "removed" else new).append(rows[index])
            index += 1
        for position in range(max(len(old), len(new))):
            yield (old[position] if position < len(old) else None), (new[position] if position < len(new) else None)
