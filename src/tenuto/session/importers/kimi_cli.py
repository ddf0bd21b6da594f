"""kimi-cli: the messages as its model saw them (`context.jsonl`), with marks of its own between them. Pure.

The file has no times and no model names. A compaction rewrote it: it then begins with the summary.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tenuto.protocol.entry import Entry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage, UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.importers.fields import Fields, as_fields, items, text
from tenuto.session.importers.format import Context, Format, Heading, home_of, read_json
from tenuto.session.importers.importing import Piece
from tenuto.session.importers.kimi_parts import answer_parts, call_part, content_parts, plain_text

NAME = "kimi-cli"
_ROLES = frozenset({"user", "assistant", "tool", "system"})
_MARKS = frozenset({"_system_prompt", "_usage", "_checkpoint"})
_COMPACTED = re.compile(r"\s*<system>Previous context has been compacted.*?</system>\s*", re.DOTALL)
_HARNESS = ("<system-reminder>", "<system>CHECKPOINT ")


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
        place = text(as_fields(value), "path")
        digest = hashlib.md5(place.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if place and folder.name.endswith(digest):
            heading.cwd = place


class KimiCliReader:
    """Reads one file."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the piece of a line."""
        if text(fields, "role") in _MARKS:
            return
        yield Piece(entry=self._entry(fields))

    def finish(self) -> Iterable[Piece]:
        """Return nothing: every line is a piece."""
        return ()

    def _entry(self, fields: Fields) -> Entry:
        content = fields.get("content")
        match text(fields, "role"):
            case "user":
                return self._user(fields)
            case "assistant":
                calls = tuple(call_part(as_fields(call)) for call in items(fields, "tool_calls"))
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
)
