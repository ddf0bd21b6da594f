"""The formats that can be imported, and which one a file has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

import msgspec

from tenuto.session.importers import claude_code, codex, kimi_cli, kimi_code, klaude_code, pi
from tenuto.session.importers.builder import EXTENSION
from tenuto.session.importers.format import Format, Heading
from tenuto.session.importers.json_access import Fields, as_fields, field, parse_object, text
from tenuto.session.log.log import LOG_NAME
from tenuto.session.paths import SESSIONS

FORMATS: tuple[Format, ...] = (
    claude_code.FORMAT,
    codex.FORMAT,
    pi.FORMAT,
    kimi_code.FORMAT,
    kimi_cli.FORMAT,
    klaude_code.FORMAT,
)
HEAD_LINES = 100
HEAD_BYTES = 1 << 18
"""How much of a file is read to know what it is and whose; one line may be longer."""
MAX_TITLE = 200


class NotImportable(Exception):  # noqa: N818 (it says what the file is)
    """There is nothing at a path that can be imported; the text says why, for a user."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A session file of another agent. `size` is in bytes, `changed` seconds since the epoch."""

    path: Path
    format: Format
    heading: Heading
    size: int = 0
    changed: float = 0.0

    @property
    def name(self) -> str:
        """What a user calls the session: its title, else how it began, on one line."""
        words = " ".join((self.heading.title or self.heading.first_text).split())
        return words[:MAX_TITLE] or "(no text)"


def open_source(path: Path) -> Source:
    """Return the session file at `path`, or the one that a directory stands for. Raises `NotImportable`, `OSError`."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 (links stay as they are)
    if path.is_dir():
        candidates = [path / name for known in FORMATS for name in known.main_files]
        found = next((candidate for candidate in candidates if candidate.is_file()), None)
        if found is None:
            raise NotImportable(f"{path} is a directory without a session file; name the file itself")
        path = found
    elif not path.is_file():
        raise NotImportable(f"{path} is not a file")
    beside = path.with_name("context.jsonl")
    if path.name == "wire.jsonl" and beside.is_file():  # kimi-cli shows from the one and continues from the other
        path = beside
    objects = _head(path)
    return _describe(path, _recognise(path, objects), objects)


def find_sources(environ: Mapping[str, str], home: Path) -> list[Source]:
    """Return the sessions in the agents' usual places, the last changed first; sub-agents' ones are left out."""
    found: list[Source] = []
    for known in FORMATS:
        for path in _paths(known, environ, home):
            try:
                source = _describe(path, known, _head(path))
            except OSError:
                continue
            if source.heading.first_text and not source.heading.is_subagent:
                found.append(source)
    return sorted(found, key=lambda source: source.changed, reverse=True)


def _paths(known: Format, environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    try:
        yield from known.find(environ, home)
    except OSError:
        return


def _head(path: Path) -> list[Fields]:
    """Return the objects of the first lines. Raises `OSError`."""
    objects: list[Fields] = []
    size = 0
    with path.open("rb") as file:
        for line in islice(file, HEAD_LINES):
            size += len(line)
            fields = parse_object(line)
            if fields is not None:
                objects.append(fields)
            if size > HEAD_BYTES:
                break
    return objects


def _recognise(path: Path, objects: list[Fields]) -> Format:
    if any(fields.get("type") == "header" and "seq" not in fields and "session_id" in fields for fields in objects):
        raise NotImportable(f"{path} is a session of Tenuto itself; continue it with --resume")
    counted = [(sum(known.is_line(fields) for fields in objects), known) for known in FORMATS]
    best, found = max(counted, key=lambda pair: pair[0])
    if not best:
        labels = ", ".join(known.label for known in FORMATS)
        raise NotImportable(f"{path} is not a session file of a known agent ({labels})")
    return found


def _describe(path: Path, known: Format, objects: list[Fields]) -> Source:
    heading = Heading()
    known.surround(heading, path)
    for fields in objects:
        known.describe(heading, as_fields(fields))
    heading.session_id = heading.session_id or path.stem
    if "\0" in heading.cwd or not PurePath(heading.cwd).is_absolute():
        heading.cwd = ""
    stat = path.stat()
    return Source(path=path, format=known, heading=heading, size=stat.st_size, changed=stat.st_mtime)


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
