"""The lines of a session file of JSON lines: one object a line, damage skipped and counted.

Split on byte 0x0A only. Memory is bounded by the longest line. Objects that stand whole in a damaged line (two writers
at once, a torn line and the next one glued to it) are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import msgspec

from tenuto.session.importers.json_access import Fields
from tenuto.session.importers.report import Report
from tenuto.session.log import Damage
from tenuto.text.writable import clean

IsLine = Callable[[Fields], bool]
MAX_ATTEMPTS = 256
"""How often an object is looked for in one damaged line; a line of nothing but braces ends there."""


def read_lines(lines: Iterable[bytes], is_line: IsLine, report: Report) -> Iterator[Fields]:
    """Yield the objects of the lines. Raises only what reading the lines raises.

    `is_line` tells an object of the format from one that merely stands inside of a torn line.
    """
    for number, line in enumerate(lines, 1):
        report.lines = number
        fields = parse_object(line)
        if fields is not None:
            yield fields
            continue
        bare = line.strip()
        if not bare:
            continue
        reason = _reason(line)
        report.add_damage(Damage(line=number, size=len(line.rstrip(b"\n")), reason=reason))
        yield from _salvage(line, is_line)


def parse_object(line: bytes) -> Fields | None:
    """Return the object of a line, `None` when it holds none."""
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            value = clean(json.loads(line.decode("utf-8", "surrogatepass")))
        except (ValueError, RecursionError):
            return None
    return cast("Fields", value) if isinstance(value, dict) else None


def _reason(line: bytes) -> str:
    if b"\0" in line:
        return "NUL bytes"
    try:
        line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "invalid UTF-8"
    return "not a JSON object" if line.endswith(b"\n") else "cut off"


def _salvage(line: bytes, is_line: IsLine) -> Iterator[Fields]:
    text = line.decode("utf-8", "replace")
    parse = json.JSONDecoder().raw_decode
    place, attempts = text.find('{"'), 0
    while place >= 0 and attempts < MAX_ATTEMPTS:
        attempts += 1
        after = place + 1
        try:
            value, end = parse(text, place)
            value = clean(value)
        except (ValueError, RecursionError):
            value, end = None, after
        if isinstance(value, dict) and is_line(cast("Fields", value)):
            after = end
            yield cast("Fields", value)
        place = text.find('{"', after)
