"""A unified diff as rows: which line is which on both sides, and the words that changed; for screens and exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_FILE_HEAD = re.compile(r"(?:diff --git |index |--- |\+\+\+ |(?:similarity|dissimilarity) index )")
_FILE_NOTE = re.compile(
    r"(?:rename|copy) (?:from|to) |(?:new|deleted) file mode |(?:old|new) mode |Binary files |GIT binary patch"
)
_NO_NEWLINE = "no newline at the end"
_CARRIAGE_RETURN = "CR"
_MARK = r"[\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]"
_WORD = re.compile(rf"[\w\u0300-\u036f\u0900-\u1cff]+{_MARK}*|\s+|[^\w\s](?:{_MARK}|(?<=\u200d)[^\w\s])*")
"""Of one character as people see it, nothing is marked alone."""
_MARKED_CHARACTERS = 400
"""Longer lines are not compared word by word: nobody reads them so, and it costs their square."""
_COMPARED_PAIRS = 64
_LIKE = 0.5

DIFF_SIGNS = {"added": "+", "removed": "-", "context": " "}
Kind = Literal["added", "removed", "context", "hunk", "note"]


class DiffRow(NamedTuple):
    """One line of a diff; a number is 0 where that side has no such line.

    `marks` are changed (start, end) of the text; `ending` says in words what is special about the line's end.
    A row of kind "hunk" or "note" stands for no line of a file: its text says what is left out, or what else happened.
    """

    kind: Kind
    old: int
    new: int
    text: str
    marks: tuple[tuple[int, int], ...] = ()
    ending: str = ""


def parse_diff(diff: str, marked: int | None = None) -> list[DiffRow]:
    """Return the rows of a unified diff, with or without git's head; what is no part of a diff is left out.

    Only the first `marked` rows are compared word by word, which costs more than all else (`None`: all).
    """
    reader = _Reader()
    for line in diff.removesuffix("\n").split("\n"):
        reader.read(line)
    return _mark_words(reader.rows, len(reader.rows) if marked is None else marked)


class _Reader:
    """Knows how many lines the hunk still has, so that a line that looks like a file's head is taken for what it is."""

    def __init__(self) -> None:
        self.rows: list[DiffRow] = []
        self._old = self._new = 1
        self._old_left = self._new_left = 0

    def read(self, line: str) -> None:
        inside = self._old_left > 0 or self._new_left > 0
        if match := _HUNK.match(line):
            self._begin(match)
        elif line.startswith("@@"):
            self._say("hunk", line.strip("@ "))
        elif line.startswith("\\"):
            self._end_without_newline()
        elif not inside and _FILE_NOTE.match(line):
            self._say("note", line)
        elif not inside and _FILE_HEAD.match(line):
            return
        else:
            self._line(line)

    def _begin(self, match: re.Match[str]) -> None:
        self._old, self._new = int(match[1]), int(match[3])
        self._old_left, self._new_left = int(match[2] or 1), int(match[4] or 1)
        if any(row.kind != "note" for row in self.rows):
            self._say("hunk", match[5])

    def _say(self, kind: Literal["hunk", "note"], text: str) -> None:
        self.rows.append(DiffRow(kind, 0, 0, sanitize_line(text)))

    def _end_without_newline(self) -> None:
        if self.rows:
            self.rows[-1] = self.rows[-1]._replace(ending=_NO_NEWLINE)

    def _line(self, line: str) -> None:
        sign, text = line[:1], line[1:]
        ending = _CARRIAGE_RETURN if text.endswith("\r") else ""
        text = sanitize_for_terminal(text)
        if sign == "+":
            self.rows.append(DiffRow("added", 0, self._new, text, (), ending))
        elif sign == "-":
            self.rows.append(DiffRow("removed", self._old, 0, text, (), ending))
        elif sign == " " or (not line.rstrip("\r") and self.rows):  # some tools take the space off an empty line
            self.rows.append(DiffRow("context", self._old, self._new, text, (), ending))
        else:
            return
        old, new = sign != "+", sign != "-"
        self._old, self._old_left = self._old + old, self._old_left - old
        self._new, self._new_left = self._new + new, self._new_left - new


def _mark_words(rows: list[DiffRow], marked: int) -> list[DiffRow]:
    for start, middle, end in takewhile(lambda change: change[0] < marked, _changes(rows)):
        for first, second in takewhile(lambda pair: pair[0] < marked, _partners(rows, start, middle, end)):
            before, after = rows[first], rows[second]
            removed, added = changed_words(before.text, after.text)
            rows[first] = before._replace(marks=removed)
            rows[second] = after._replace(marks=added)
    return rows


def _partners(rows: Sequence[DiffRow], start: int, middle: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield which removed line became which added one, in order: of each, the first that is like it."""
    if (middle - start) * (end - middle) > _COMPARED_PAIRS:
        yield from zip(range(start, middle), range(middle, end), strict=False)
        return
    free = middle
    for removed in range(start, middle):
        like = (added for added in range(free, end) if _is_like(rows[removed].text, rows[added].text))
        if (added := next(like, None)) is not None:
            yield removed, added
            free = added + 1


def _is_like(before: str, after: str) -> bool:
    if max(len(before), len(after)) > _MARKED_CHARACTERS:
        return False
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, before.strip(), after.strip(), autojunk=False)
    return matcher.quick_ratio() > _LIKE and matcher.ratio() > _LIKE


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
    from difflib import SequenceMatcher

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
