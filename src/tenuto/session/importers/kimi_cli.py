"""kimi-cli: the messages as its model saw them (`context.jsonl`), with marks of its own between them.

The files have no times and no model names. A file that was compacted begins with the summary.

Readers are pure; `find` and `surround` look at files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tenuto.protocol.entry import Entry, NoticeEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage, UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.importers.builder import EXTENSION, WENT_BACK, Piece
from tenuto.session.importers.format import Context, Format, Heading, home_of, read_json
from tenuto.session.importers.json_access import Fields, items, plain_text, text
from tenuto.session.importers.kimi_code import answer_parts, call_part, content_parts
from tenuto.text.json_access import as_dict

NAME = "kimi-cli"
_ROLES = frozenset({"user", "assistant", "tool", "system"})
_MARKS = frozenset({"_system_prompt", "_usage", "_checkpoint"})
_COMPACTED = re.compile(r"\s*<system>Previous context has been compacted.*?</system>\s*", re.DOTALL)
_ASIDE = re.compile(r"context_(\d{1,9})\.jsonl")
_HARNESS = ("<system-reminder>", "<system>CHECKPOINT ")


NEXT_FILE: Fields = {"role": "_next_file"}
"""Stands between the files of a session."""


class _Message(NamedTuple):
    """A message of a file: its piece, and the piece that one who goes back to it goes on from."""

    name: str
    place: str
    digest: bytes


def is_line(fields: Fields) -> bool:
    """Whether an object is a line of a context file of kimi-cli."""
    role = text(fields, "role")
    return role in _MARKS or (role in _ROLES and "content" in fields and "type" not in fields)


def describe(heading: Heading, fields: Fields) -> None:
    """Add what a line says of the session."""
    if text(fields, "role") == "user" and not heading.first_text:
        words = plain_text(fields.get("content")).strip()
        heading.first_text = "" if words.startswith("<system") else words


def surround(heading: Heading, path: Path) -> None:
    """Add what `state.json` beside the file says, and the working directory, which is known by its hash."""
    heading.session_id = path.parent.name if path.name == "context.jsonl" else path.stem
    heading.title = text(read_json(path.with_name("state.json")), "custom_title")
    folder = path.parent.parent if path.name == "context.jsonl" else path.parent
    for value in items(read_json(folder.parent.parent / "kimi.json"), "work_dirs"):
        place = text(as_dict(value), "path")
        digest = hashlib.md5(place.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if place and folder.name.endswith(digest):
            heading.cwd = place


class KimiCliReader:
    """Reads the files of one session, the oldest first.

    A compaction, a revert and a clear each put the file aside (`context_N.jsonl`) and begin a new one, which repeats
    what stays. What is repeated is not taken twice; where the new file leaves the old one, a branch begins.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._names = 0
        self._before: list[_Message] = []
        self._present: list[_Message] = []
        self._repeats = -1
        self._is_prefix = False
        self._summary: Fields | None = None

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the pieces of a line."""
        if fields is NEXT_FILE:
            yield from self.finish()
            self._before, self._present, self._repeats = self._present, [], 0
            self._is_prefix = True
        elif text(fields, "role") not in _MARKS:
            yield from self._message(fields)

    def finish(self) -> Iterable[Piece]:
        """Return what is left to say of a file at its end."""
        if self._summary is not None:
            yield self._compaction("")
        elif self._is_prefix and self._repeats < len(self._before):
            yield Piece(entry=NoticeEntry(text=WENT_BACK, kind=EXTENSION), parent=self._last_repeated())
        self._repeats, self._is_prefix = -1, False

    def _message(self, fields: Fields) -> Iterable[Piece]:
        digest = _digest(fields)
        if self._summary is not None:
            place = next((at for at in range(len(self._before) - 1, -1, -1) if self._before[at].digest == digest), -1)
            yield self._compaction(self._before[place].name if place >= 0 else "")
            self._repeats = place
        if 0 <= self._repeats < len(self._before) and self._before[self._repeats].digest == digest:
            self._repeat(self._before[self._repeats])
            return
        parent: str | None = None
        if self._is_prefix:
            self._is_prefix = False
            if not self._repeats and _is_summary(fields):
                self._summary = fields
                return
            parent = self._last_repeated()
        self._repeats = -1
        yield self._piece(self._entry(fields), digest, parent=parent)

    def _repeat(self, message: _Message) -> None:
        """Take note of a message that is there already; what a compaction kept stands behind its summary."""
        self._repeats += 1
        self._present.append(message if self._is_prefix else message._replace(place=self._present[0].place))

    def _last_repeated(self) -> str | None:
        """Return the name of the place where this file leaves the one before, `None` when it goes on from its end."""
        if self._repeats == len(self._before):
            return None
        return self._before[self._repeats - 1].place if self._repeats else ""

    def _compaction(self, target: str) -> Piece:
        fields, self._summary = self._summary or {}, None
        return self._piece(self._entry(fields), _digest(fields), target=target)

    def _piece(self, entry: Entry, digest: bytes, parent: str | None = None, target: str = "") -> Piece:
        self._names += 1
        name = f"#{self._names}"
        self._present.append(_Message(name, name, digest))
        return Piece(entry=entry, names=(name,), parent=parent, target=target)

    def _entry(self, fields: Fields) -> Entry:
        content = fields.get("content")
        match text(fields, "role"):
            case "user":
                return self._user(fields)
            case "assistant":
                calls = tuple(call_part(as_dict(call)) for call in items(fields, "tool_calls"))
                parts = (*answer_parts(content, self._context), *calls)
                return AssistantMessage(parts=parts, stop_reason="tool_use" if calls else "end_turn")
            case "tool":
                parts = content_parts(content, self._context)
                failed = text_of(parts).startswith("<system>ERROR:")
                return ToolResultMessage(call_id=text(fields, "tool_call_id"), name="", parts=parts, is_error=failed)
            case "system":
                return self._context.aside("context", fields)
            case _:
                return self._context.aside("unknown", fields)

    def _user(self, fields: Fields) -> Entry:
        parts = content_parts(fields.get("content"), self._context)
        words = text_of(parts)
        compacted = _COMPACTED.match(words)
        if compacted is not None:
            return CompactionEntry(summary=words[compacted.end() :].strip(), reason="threshold")
        if words.lstrip().startswith(_HARNESS):
            return self._context.aside("context", fields)
        return UserMessage(parts=parts)


def _is_summary(fields: Fields) -> bool:
    return text(fields, "role") == "user" and _COMPACTED.match(plain_text(fields.get("content"))) is not None


def _digest(fields: Fields) -> bytes:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode("utf-8", "replace")).digest()


def earlier_files(path: Path) -> list[Path]:
    """Return the files that were put aside before `path`, the oldest first."""
    if path.name != "context.jsonl":
        return []
    numbered = [(int(found[1]), file) for file in path.parent.iterdir() if (found := _ASIDE.fullmatch(file.name))]
    return [file for _, file in sorted(numbered)]


def find(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the context files."""
    folder = home_of(environ, "KIMI_SHARE_DIR", home, ".kimi") / "sessions"
    yield from folder.glob("*/*/context.jsonl")


FORMAT = Format(
    name=NAME,
    label="Kimi CLI",
    is_line=is_line,
    describe=describe,
    reader=KimiCliReader,
    find=find,
    main_files=("context.jsonl",),
    surround=surround,
    earlier_files=earlier_files,
    next_file=NEXT_FILE,
)
