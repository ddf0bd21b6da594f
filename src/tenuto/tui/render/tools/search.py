"""How searches are shown: counts in the head, and below it where the matches are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenuto.text.figures import plural
from tenuto.tui.machine.item import ToolItem
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.frame import Frame, rows_of
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.tools.look import FOLDED_LINES, read_arguments, result_text

_NO_HIT = ("[", "(", "--", "No ")
_NOTICE = 1_000
"""Characters at the end of a result in which its own notices stand."""
_GREP_MATCH = re.compile(r"^(?:[^\n:]+:)?\d+:", re.MULTILINE)
_GREP_TOTAL = re.compile(r"([\d,]+ matching lines in [\d,]+ files)")
_GLOB_TOTAL = re.compile(r"newest of ([\d,]+ files)")
_NUMBER = re.compile(r"\d+[:-]")
_PLACE = re.compile(r"([^:]+)([:-]\d+[:-])")


def grep_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return how many lines or files matched."""
    text = result_text(item)
    if total := _GREP_TOTAL.search(text, len(text) - _NOTICE):
        return [(total[1], "dim")]
    if read_arguments(item.arguments).get("output", "lines") != "lines":
        return _count(text, "file")
    return _count("\n".join(_GREP_MATCH.findall(text)), "match")


def glob_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return how many files there are."""
    text = result_text(item)
    total = _GLOB_TOTAL.search(text, len(text) - _NOTICE)
    return [(total[1], "dim")] if total else _count(text, "file")


def _count(text: str, noun: str) -> Sequence[Span]:
    hits = sum(1 for line in text.split("\n") if line and not line.startswith(_NO_HIT))
    return [(plural(hits, noun) if hits else "nothing found", "dim")]


def grep_body(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the matching lines, their places told from their text."""
    return rows_of([_with_place(line) for line in ansi_lines(result_text(item))], frame, FOLDED_LINES, 0)


def _with_place(line: Sequence[Span]) -> Sequence[Span]:
    if len(line) != 1 or line[0][0].startswith(_NO_HIT):
        return line
    text, style = line[0]
    if number := _NUMBER.match(text):
        return [(number[0], "faint"), (text[number.end() :], style)]
    if place := _PLACE.match(text):
        return [(place[1], "path"), (place[2], "faint"), (text[place.end() :], style)]
    return [(text, "path")]
