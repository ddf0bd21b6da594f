"""The formats that can be imported, and which one a file has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath

import msgspec

from tenuto.session.importers import claude_code, codex, kimi_cli, kimi_code, klaude_code, pi
from tenuto.session.importers.format import Format, Heading
from tenuto.session.importers.json_access import Fields, as_fields
from tenuto.session.importers.lines import parse_object

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
