"""What an imported session says of its source, so that a second import of the same one is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tenuto.session.importers.builder import EXTENSION
from tenuto.session.importers.formats import Source
from tenuto.session.importers.json_access import as_fields, field, text
from tenuto.session.importers.lines import parse_object
from tenuto.session.log import LOG_NAME
from tenuto.session.paths import SESSIONS

MARK_BYTES = 65_536
MARK_LINES = 2


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What an imported session says of its source: the file's `size` in bytes at that time."""

    directory: Path
    format: str
    session: str
    path: str
    size: int


def mark_of(source: Source, now: float) -> dict[str, Any]:
    """Return what the session of a source says of it; `now` is the time of the import."""
    return {
        "format": source.format.name,
        "session": source.heading.session_id,
        "path": str(source.path),
        "size": source.size,
        "imported": now,
    }


def find_marks(home: Path) -> list[Mark]:
    """Return what the sessions under `home` that were imported say of their sources."""
    return [mark for log in sorted((home / SESSIONS).glob(f"*/*/{LOG_NAME}")) if (mark := _read_mark(log))]


def _read_mark(log: Path) -> Mark | None:
    try:
        with log.open("rb") as file:
            lines = file.read(MARK_BYTES).split(b"\n")[:MARK_LINES]
    except OSError:
        return None
    for line in lines:
        fields = as_fields(parse_object(line) if b'"import"' in line else None)
        state = field(fields, "state")
        if fields.get("type") == "extension" and fields.get("extension") == EXTENSION and text(state, "format"):
            size = state.get("size")
            return Mark(
                directory=log.parent,
                format=text(state, "format"),
                session=text(state, "session"),
                path=text(state, "path"),
                size=size if isinstance(size, int) else 0,
            )
    return None


def matching_marks(source: Source, marks: list[Mark]) -> Iterator[Mark]:
    """Yield the marks of the same source: the same session of the same agent, or the same file."""
    for mark in marks:
        if mark.format != source.format.name:
            continue
        if mark.path == str(source.path) or (mark.session and mark.session == source.heading.session_id):
            yield mark
