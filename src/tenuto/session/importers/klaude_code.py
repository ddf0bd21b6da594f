"""klaude-code: JSON lines of a type and its data, in one row; rewinds and retractions are lines of their own.

Readers are pure; `find` and `surround` look at files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tenuto.protocol.entry import Entry, NoticeEntry, Origin
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionDetails,
    CompactionEntry,
    DeveloperMessage,
    StopReason,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import AssistantPart, ContentPart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.importers.builder import EXTENSION, WENT_BACK, Piece
from tenuto.session.importers.format import Context, Format, Heading, read_json
from tenuto.session.importers.json_access import (
    Fields,
    arguments_text,
    cost,
    field,
    items,
    plain_parts,
    seconds,
    text,
    texts,
    tokens,
    usage_or_none,
)
from tenuto.text.json_access import as_dict

NAME = "klaude-code"
OPAQUE = "imported:klaude-code"
_MESSAGES = frozenset({"UserMessage", "AssistantMessage", "ToolResultMessage", "DeveloperMessage", "SystemMessage"})
_SIDECARS = frozenset(
    {
        "StreamErrorItem",
        "InterruptEntry",
        "TaskFileChangeSummaryEntry",
        "TaskMetadataItem",
        "CompactionEntry",
        "RewindEntry",
        "RetractEntry",
        "CacheHitRateEntry",
        "FallbackModelConfigWarnEntry",
        "SpawnSubAgentEntry",
        "AwaySummaryEntry",
        "PromptSuggestionEntry",
        "SideQuestionEntry",
    }
)
_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_use": "tool_use",
    "error": "other",
    "aborted": "interrupted",
}
_CHECKPOINT = re.compile(r"<system-reminder>Checkpoint (\d+)</system-reminder>")


def is_line(fields: Fields) -> bool:
    """Whether an object is a line of a session of klaude-code."""
    kind = text(fields, "type")
    if not isinstance(fields.get("data"), dict):
        return False
    return kind in _MESSAGES or kind in _SIDECARS or kind.endswith(("Entry", "Item", "Message"))


def describe(heading: Heading, fields: Fields) -> None:
    """Add what a line says of the session."""
    data = field(fields, "data")
    heading.started = heading.started or seconds(data.get("created_at"))
    if text(fields, "type") == "UserMessage" and not heading.first_text:
        heading.first_text = _plain(data)


def surround(heading: Heading, path: Path) -> None:
    """Add what `meta.json` beside the file says."""
    meta = read_json(path.with_name("meta.json"))
    heading.session_id = text(meta, "id") or path.parent.name
    heading.cwd = text(meta, "work_dir")
    heading.title = text(meta, "title")
    heading.is_subagent = isinstance(meta.get("sub_agent_state"), dict) or bool(text(meta, "parent_session_id"))


def _plain(data: Fields) -> str:
    return "".join(text(as_dict(part), "text") for part in items(data, "parts"))


class KlaudeReader:
    """Reads one file. `_active` are the names of what its loader would have, by the index that compactions refer to."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._count = 0
        self._active: list[str] = []
        self._words: dict[str, str] = {}
        self._checkpoints: dict[str, int] = {}

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the piece of a line."""
        kind, data = text(fields, "type"), field(fields, "data")
        self._count += 1
        name = f"#{self._count}"
        parent: str | None = None
        if kind == "RetractEntry":
            parent = self._retract(text(data, "retracted_text"))
        elif kind == "RewindEntry":
            parent = self._rewind(tokens(data, "checkpoint_id"))
        target = self._kept(data) if kind == "CompactionEntry" else ""
        entry = self._entry(kind, data, fields)
        self._active.append(name)
        if kind == "UserMessage":
            self._words[name] = _plain(data)
        checkpoint = _CHECKPOINT.search(_plain(data)) if kind == "DeveloperMessage" else None
        if checkpoint is not None and len(checkpoint[1]) < 9:
            self._checkpoints[name] = int(checkpoint[1])
        ts = seconds(data.get("created_at"))
        return (Piece(entry=entry, ts=ts, names=(name,), parent=parent, target=target),)

    def finish(self) -> Iterable[Piece]:
        """Return nothing: every line is a piece."""
        return ()

    def _retract(self, words: str) -> str | None:
        """Take the last message of the user out, if it is the one; return the name of what came before it."""
        for index in range(len(self._active) - 1, -1, -1):
            name = self._active[index]
            if name in self._words:
                if self._words[name] != words:
                    return None
                del self._active[index]
                return self._active[index - 1] if index else ""
        return None

    def _rewind(self, checkpoint: int) -> str | None:
        """Take out what came after a checkpoint; return its name."""
        for index, name in enumerate(self._active):
            if self._checkpoints.get(name) == checkpoint:
                del self._active[index + 1 :]
                return name
        return None

    def _kept(self, data: Fields) -> str:
        """Return the name of what a compaction keeps first; empty when it keeps nothing."""
        index = tokens(data, "first_kept_index")
        return self._active[index] if index < len(self._active) else ""

    def _entry(self, kind: str, data: Fields, fields: Fields) -> Entry | None:
        match kind:
            case "UserMessage":
                origin: Origin = "extension" if data.get("source") == "bash_mode" else "typed"
                return UserMessage(parts=self._content(items(data, "parts")), origin=origin)
            case "AssistantMessage":
                return self._answer(data)
            case "ToolResultMessage":
                return self._result(data)
            case "CompactionEntry":
                return _compaction(data)
            case "RewindEntry":
                note, why = text(data, "note"), text(data, "rationale")
                return DeveloperMessage(text=f"The conversation went back to this point. Why: {why}\n{note}")
            case "StreamErrorItem" if text(data, "error"):
                return NoticeEntry(text=text(data, "error"), level="error", kind=EXTENSION)
            case "InterruptEntry":
                return NoticeEntry(text="interrupted", kind=EXTENSION)
            case "RetractEntry":
                return NoticeEntry(text=WENT_BACK, kind=EXTENSION)
            case "SpawnSubAgentEntry":
                self._context.report.count("sidechain")
                return None
            case "DeveloperMessage" | "SystemMessage":
                return self._context.aside("context", fields)
            case _ if kind in _SIDECARS:
                return None
            case _:
                return self._context.aside("unknown", fields)

    def _content(self, content: list[Any]) -> tuple[ContentPart, ...]:
        parts: list[ContentPart] = []
        for value in content:
            part = as_dict(value)
            match part.get("type"):
                case "text":
                    parts += plain_parts(text(part, "text"))
                case "image_url":
                    image = self._context.data_image(text(part, "url"))
                    parts.append(image or TextPart(text=f"[image: {text(part, 'url')[:200]}]"))
                case "image_file":
                    image = self._context.file_image(text(part, "file_path"))
                    parts.append(image or TextPart(text=f"[image: {text(part, 'file_path')}]"))
                case _:
                    parts.append(self._context.unknown_part(value))
        return tuple(parts)

    def _answer(self, data: Fields) -> AssistantMessage:
        parts: list[AssistantPart] = []
        for value in items(data, "parts"):
            part = as_dict(value)
            match part.get("type"):
                case "text":
                    parts += [TextPart(text=text(part, "text"), phase=text(data, "phase"))] if part.get("text") else []
                case "thinking_text":
                    parts += [ThinkingPart(text=text(part, "text"))] if text(part, "text") else []
                case "thinking_signature":
                    continue
                case "tool_call":
                    parts.append(
                        ToolCallPart(
                            id=text(part, "call_id"),
                            name=text(part, "tool_name") or "unknown",
                            arguments=arguments_text(part.get("arguments_json")),
                        )
                    )
                case _:
                    parts.append(self._context.unknown_block(OPAQUE, value))
        usage = field(data, "usage")
        model = "/".join(name for name in (text(usage, "provider"), text(usage, "model_name")) if name)
        self._context.heading.model = model or self._context.heading.model
        return AssistantMessage(
            parts=tuple(parts),
            model=model,
            stop_reason=_STOPS.get(text(data, "stop_reason"), "end_turn"),
            usage=_usage(usage),
            response_id=text(data, "response_id"),
        )

    def _result(self, data: Fields) -> ToolResultMessage:
        images = self._content([part for part in items(data, "parts") if as_dict(part).get("type") != "text"])
        return ToolResultMessage(
            call_id=text(data, "call_id"),
            name=text(data, "tool_name"),
            parts=(*plain_parts(text(data, "output_text")), *images),
            is_error=text(data, "status") in ("error", "aborted"),
            interrupted=text(data, "status") == "aborted",
        )


def _compaction(data: Fields) -> CompactionEntry:
    details = field(data, "details")
    read, modified = texts(details, "read_files"), texts(details, "modified_files")
    return CompactionEntry(
        summary=text(data, "summary"),
        tokens_before=tokens(data, "tokens_before") or None,
        details=CompactionDetails(read_files=read, modified_files=modified) if read or modified else None,
    )


def _usage(usage: Fields) -> Usage | None:
    """Return a usage, whose input counts cached tokens in and whose output counts reasoning in."""
    read, written = tokens(usage, "cached_tokens"), tokens(usage, "cache_write_tokens")
    prices = [cost(usage, name) for name in ("input_cost", "output_cost", "cache_read_cost", "cache_write_cost")]
    known = [price for price in prices if price is not None]
    in_dollars = usage.get("currency", "USD") == "USD"
    return usage_or_none(
        Usage(
            input=max(tokens(usage, "input_tokens") - read - written, 0),
            cache_read=read,
            cache_write=written,
            output=tokens(usage, "output_tokens"),
            reasoning=min(tokens(usage, "reasoning_tokens"), tokens(usage, "output_tokens")),
            cost=sum(known) if known and in_dollars else None,
        )
    )


def find(_environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the session files of klaude-code."""
    yield from (home / ".klaude").glob("projects/*/sessions/*/events.jsonl")


FORMAT = Format(
    name=NAME,
    label="klaude-code",
    is_line=is_line,
    describe=describe,
    reader=KlaudeReader,
    find=find,
    main_files=("events.jsonl",),
    surround=surround,
)
