"""Finding whole objects in a line that is no entry as it stands: glued lines, or good ones behind a fragment.

One pass over the bytes, whatever is in them. An object that may be an entry begins with one of three keys; a text of
valid JSON cannot hold such a beginning, so one in the middle of a string says that the string was torn there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

DEEPEST = 8
"""How many whole objects may stand around one that is looked at; entries stand in none, or in a torn one."""
_NAMES = rb'"(?:type|seq|ts)":'
_START = re.compile(rb"\{" + _NAMES)
_PASSED = re.compile(
    rb'(?:[^"{}\[\]]++'  # numbers, commas, NUL bytes
    rb'|"(?:[^"\\{]++|\\(?!\{'
    + _NAMES
    + rb")[\x00-\xff]|\{(?!"
    + _NAMES
    + rb'))*+"'  # a string with no beginning in it
    rb")*+"
)


class Span(msgspec.Struct, frozen=True):
    """A stretch of bytes from `start` up to `end` whose brackets match, and those that stand in it."""

    start: int
    end: int
    inner: tuple[Span, ...] = ()


class _Open(msgspec.Struct):
    """A bracket that is open; `start` is where it stands if an entry may begin there, else -1.

    `inner` takes what is whole inside; with `shared` it is the list of the bracket around it.
    """

    closing: int
    start: int
    inner: list[Span]
    shared: bool


def find_spans(line: bytes) -> Iterator[Span]:
    """Yield the outermost stretches that may be entries, in order. The work grows with the length of the line alone."""
    open_brackets: list[_Open] = []
    found = _START.search(line)
    position = found.start() if found else len(line)
    while position < len(line):
        byte = line[position]
        if byte in b"{[":
            start = position if _START.match(line, position) else -1
            shared = start < 0 and bool(open_brackets)
            inner = open_brackets[-1].inner if shared else []
            open_brackets.append(_Open(b"}]"[b"{[".index(byte)], start, inner, shared))
        elif byte in b"}]":
            if open_brackets and open_brackets[-1].closing != byte:
                yield from _let_go(open_brackets)
            elif open_brackets:
                closed = open_brackets.pop()
                inner = closed.inner if closed.start < 0 else [Span(closed.start, position + 1, tuple(closed.inner))]
                if not open_brackets:
                    yield from inner
                elif not closed.shared:
                    open_brackets[-1].inner += inner
        else:  # a string that is torn
            yield from _let_go(open_brackets)
            found = _START.search(line, position)
            position = found.start() if found else len(line)
            continue
        position = _end_of_passed(line, position + 1)
    yield from _let_go(open_brackets)


def _end_of_passed(line: bytes, position: int) -> int:
    """Return where the next bracket stands, or the quote of a torn string."""
    found = _PASSED.match(line, position)
    return found.end() if found else position


def _let_go(open_brackets: list[_Open]) -> Iterator[Span]:
    """Yield what is whole inside brackets that will never be closed."""
    for one in open_brackets:
        if not one.shared:
            yield from one.inner
    open_brackets.clear()
