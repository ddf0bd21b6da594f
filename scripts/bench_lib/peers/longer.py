"""A session of any length in an agent's own format: a turn that the agent itself wrote, again and again.

Works for logs of JSON lines whose lines name each other by ids (`id`, `uuid`, `call_id`, `parentUuid`, …): each
repetition gets ids of its own, and its first line follows the last one of the repetition before.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_IDENTIFIER = re.compile(r"(?:^|_)u?uid$|^id$|_id$|Id$|Uuid$|ID$")
_PARENTS = ("parentUuid", "parentId")
_COUNTER = "ordinal"
_START = "before-the-first"
"""Stands for the parent of a turn that has none; in a repetition it is the last line of the one before."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def lengthen(log: Path, turn: str, size: int) -> int:
    """Repeat the turn that begins with the first line that matches `turn` until the log has so many bytes.

    Returns how often the turn is in it. Raises `ValueError` for a log without such a line.
    """
    lines = log.read_text(encoding="utf-8").splitlines()
    first = next((place for place, line in enumerate(lines) if re.search(turn, line)), None)
    if first is None:
        raise ValueError(f"{log.name} has no line that matches {turn}")
    count = 1
    with log.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        for text in _repetitions(lines[:first], lines[first:]):
            if file.tell() >= size:
                break
            file.write(text)
            count += 1
    return count


def _repetitions(head: Sequence[str], turn: Sequence[str]) -> Iterator[str]:
    known = {name for line in head for name in identifiers(json.loads(line))}
    rows = [json.loads(line) for line in turn]
    parent = next((f'"{key}":' for row in rows for key in _PARENTS if key in row), "")
    before = next((row[key] or _START for row in rows for key in _PARENTS if key in row), "")
    text = "".join(f"{line}\n" for line in turn)
    if before == _START:
        text = text.replace(f"{parent}null", f'{parent}"{_START}"', 1)
    own = sorted({name for row in rows for name in identifiers(row)} - known, key=len, reverse=True)
    chained = [
        row[key] for row in rows for key in ("uuid", "id") if row.get(key) and any(one in row for one in _PARENTS)
    ]
    pattern = "|".join(map(re.escape, [*own, *([before] if before else [])]))
    pieces = re.split(f'"({pattern})"|("{_COUNTER}":)(\\d+)', text)
    last, number = (chained[-1] if chained else ""), 0
    while True:
        number += 1
        names = {name: renamed(name, number) for name in own}
        if before:
            names[before] = last
        last = names.get(chained[-1], "") if chained else ""
        yield _joined(pieces, names, number * len(turn))


def _joined(pieces: Sequence[str | None], names: Mapping[str, str], shift: int) -> str:
    """Put together what was split: text, a name, the counter's key, its number, text, …"""
    parts: list[str] = []
    for place in range(0, len(pieces), 4):
        parts.append(pieces[place] or "")
        if place + 1 < len(pieces):
            name, key, number = pieces[place + 1 : place + 4]
            parts.append(f'"{names[name]}"' if name else f"{key}{int(number or 0) + shift}")
    return "".join(parts)


def renamed(name: str, number: int) -> str:
    """Return an id of the same kind for a repetition."""
    if _UUID.fullmatch(name):
        return str(uuid.uuid5(uuid.UUID(name), str(number)))
    return f"{name}-{number}"


def identifiers(value: Any) -> Iterator[str]:
    """Yield all strings that stand under a key that names something."""
    match value:
        case dict():
            for key, inner in value.items():
                if isinstance(inner, str) and inner and _IDENTIFIER.search(key):
                    yield inner
                else:
                    yield from identifiers(inner)
        case list():
            for inner in value:
                yield from identifiers(inner)
        case _:
            return
