"""Pi: a tree of JSON lines, each with its id and its parent's. Readers are pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tenuto.protocol.entry import (
    BranchSummaryEntry,
    Entry,
    ExtensionEntry,
    LabelEntry,
    NoticeEntry,
    ShellEntry,
    TitleEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionDetails,
    CompactionEntry,
    StopReason,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import AssistantPart, ContentPart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.importers.builder import EXTENSION, Piece
from tenuto.session.importers.format import Context, Format, Heading, home_of
from tenuto.session.importers.json_access import (
    LOST_IMAGE,
    Fields,
    arguments_text,
    cost,
    field,
    items,
    plain_parts,
    plain_text,
    raw_json,
    seconds,
    text,
    texts,
    tokens,
    usage_or_none,
)
from tenuto.text.json_access import as_dict, as_list

NAME = "pi"
OPAQUE = "imported:pi"
_KINDS = frozenset(
    {
        "session",
        "message",
        "thinking_level_change",
        "model_change",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "label",
        "session_info",
        "context_edit",
    }
)
_SILENT = frozenset({"session", "thinking_level_change", "model_change"})
_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "toolUse": "tool_use",
    "aborted": "interrupted",
    "error": "interrupted",
}


def is_line(fields: Fields) -> bool:
    """Whether an object is a line of a session file of Pi."""
    return text(fields, "type") in _KINDS and "timestamp" in fields and not isinstance(fields.get("payload"), dict)


def describe(heading: Heading, fields: Fields) -> None:
    """Add what a line says of the session."""
    kind = text(fields, "type")
    if kind == "session":
        heading.session_id = text(fields, "id")
        heading.cwd = text(fields, "cwd")
        heading.started = seconds(fields.get("timestamp"))
    elif kind == "session_info":
        heading.title = text(fields, "name") or heading.title
    elif kind == "message" and not heading.first_text and field(fields, "message").get("role") == "user":
        heading.first_text = plain_text(field(fields, "message").get("content"))


class PiReader:
    """Reads one file; entries of the first version, which had no ids, are named by their place in it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._index = -1

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the piece of a line."""
        self._index += 1
        name = text(fields, "id")
        parent: str | None = None
        if name and "parentId" in fields:
            parent = text(fields, "parentId")
        ts = seconds(fields.get("timestamp"))
        if text(fields, "type") == "session":
            return ()
        entry, target = self._entry(fields)
        names = (name,) if name else (f"#{self._index}",)
        return (Piece(entry=entry, ts=ts, names=names, parent=parent, target=target),)

    def finish(self) -> Iterable[Piece]:
        """Return nothing: every line is a piece."""
        return ()

    def _entry(self, fields: Fields) -> tuple[Entry | None, str]:
        kind = text(fields, "type")
        if kind == "message":
            return self._message(field(fields, "message")), ""
        if kind == "compaction":
            return _compaction(fields), _first_kept(fields)
        if kind == "branch_summary":
            entry = BranchSummaryEntry(
                summary=text(fields, "summary"),
                from_seq=0,
                details={
                    "read_files": list(texts(field(fields, "details"), "readFiles")),
                    "modified_files": list(texts(field(fields, "details"), "modifiedFiles")),
                },
            )
            return entry, text(fields, "fromId")
        if kind == "custom_message":
            return self._custom(fields), ""
        if kind == "label":
            return LabelEntry(target=0, text=text(fields, "label")), text(fields, "targetId")
        if kind == "session_info":
            return TitleEntry(title=text(fields, "name")), ""
        if kind in _SILENT:
            return None, ""
        if kind == "custom":
            return ExtensionEntry(extension=f"pi:{text(fields, 'customType')}", state=raw_json(fields.get("data"))), ""
        return self._context.aside("unknown", fields), ""

    def _message(self, message: Fields) -> Entry | None:
        match message.get("role"):
            case "user":
                return UserMessage(parts=self._content(message.get("content")))
            case "assistant":
                return self._answer(message)
            case "toolResult":
                return ToolResultMessage(
                    call_id=text(message, "toolCallId"),
                    name=text(message, "toolName"),
                    parts=self._content(message.get("content")),
                    is_error=message.get("isError") is True,
                )
            case "bashExecution":
                return _shell(message)
            case "custom" | "hookMessage":
                return self._custom(message)
            case _:
                return self._context.aside("unknown", message)

    def _custom(self, fields: Fields) -> ExtensionEntry:
        parts = self._content(fields.get("content"))
        return ExtensionEntry(extension=f"pi:{text(fields, 'customType')}", in_view=bool(parts), parts=parts)

    def _content(self, content: Any) -> tuple[ContentPart, ...]:
        if isinstance(content, str):
            return plain_parts(content)
        parts: list[ContentPart] = []
        for value in as_list(content):
            block = as_dict(value)
            if block.get("type") == "text":
                parts += plain_parts(text(block, "text"))
            elif block.get("type") == "image":
                image = self._context.base64_image(text(block, "data"), text(block, "mimeType"))
                parts.append(image or LOST_IMAGE)
            else:
                parts.append(self._context.unknown_part(value))
        return tuple(parts)

    def _answer(self, message: Fields) -> Entry:
        parts: list[AssistantPart] = []
        for value in items(message, "content"):
            block = as_dict(value)
            match block.get("type"):
                case "text":
                    parts += [TextPart(text=text(block, "text"))] if text(block, "text") else []
                case "thinking":
                    parts += [ThinkingPart(text=text(block, "thinking"))] if text(block, "thinking") else []
                case "toolCall":
                    parts.append(
                        ToolCallPart(
                            id=text(block, "id"),
                            name=text(block, "name") or "unknown",
                            arguments=arguments_text(block.get("arguments")),
                        )
                    )
                case _:
                    parts.append(self._context.unknown_block(OPAQUE, value))
        if not parts and text(message, "errorMessage"):
            return NoticeEntry(text=text(message, "errorMessage"), level="error", kind=EXTENSION)
        self._context.heading.model = _model(message) or self._context.heading.model
        return AssistantMessage(
            parts=tuple(parts),
            model=_model(message),
            stop_reason=_STOPS.get(text(message, "stopReason"), "other"),
            usage=_usage(field(message, "usage")),
            response_id=text(message, "responseId"),
        )


def _model(message: Fields) -> str:
    provider, name = text(message, "provider"), text(message, "model")
    return f"{provider}/{name}" if provider and name else name


def _usage(usage: Fields) -> Usage | None:
    return usage_or_none(
        Usage(
            input=tokens(usage, "input"),
            cache_read=tokens(usage, "cacheRead"),
            cache_write=tokens(usage, "cacheWrite"),
            output=tokens(usage, "output"),
            cost=cost(field(usage, "cost"), "total"),
        )
    )


def _shell(message: Fields) -> ShellEntry:
    code = message.get("exitCode")
    return ShellEntry(
        command=text(message, "command"),
        output=text(message, "output"),
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31 else None,
        excluded=message.get("excludeFromContext") is True,
        truncated=message.get("truncated") is True,
        output_path=text(message, "fullOutputPath"),
    )


def _compaction(fields: Fields) -> CompactionEntry:
    details = field(fields, "details")
    read, modified = texts(details, "readFiles"), texts(details, "modifiedFiles")
    return CompactionEntry(
        summary=text(fields, "summary"),
        tokens_before=tokens(fields, "tokensBefore") or None,
        details=CompactionDetails(read_files=read, modified_files=modified) if read or modified else None,
        usage=_usage(field(fields, "usage")),
    )


def _first_kept(fields: Fields) -> str:
    """Return the name of the entry that a compaction keeps first; empty when that is the compaction itself."""
    name = text(fields, "firstKeptEntryId")
    if name:
        return "" if name == text(fields, "id") else name
    index = fields.get("firstKeptEntryIndex")
    return f"#{index}" if isinstance(index, int) else "?"


def find(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the session files of Pi."""
    yield from home_of(environ, "PI_CODING_AGENT_DIR", home, ".pi/agent").glob("sessions/*/*.jsonl")


FORMAT = Format(name=NAME, label="Pi", is_line=is_line, describe=describe, reader=PiReader, find=find)
