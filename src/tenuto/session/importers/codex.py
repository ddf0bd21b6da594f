"""Codex: a rollout of JSON lines with a payload each; what one response of the model held stands in a row.

Readers are pure; `find` and `surround` look at files.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tenuto.protocol.entry import Entry, NoticeEntry, UsageEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage, UserMessage
from tenuto.protocol.part import AssistantPart, ContentPart, TextPart, ThinkingPart, ToolCallPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.importers.builder import EXTENSION, WENT_BACK, Piece
from tenuto.session.importers.format import Context, Format, Heading, home_of
from tenuto.session.importers.json_access import (
    LOST_IMAGE,
    Fields,
    arguments_text,
    field,
    items,
    parse_object,
    plain_parts,
    plain_text,
    raw_json,
    seconds,
    text,
    tokens,
    usage_or_none,
)
from tenuto.text.json_access import as_dict, as_list

NAME = "codex"
OPAQUE = "imported:codex"
_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_BARE = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
     "local_shell_call", "web_search_call"}
)  # fmt: skip
"""Items that stood in a line of their own before lines had payloads."""
_SILENT_ITEMS = frozenset({"ghost_snapshot", "compaction_trigger"})
_SILENT_LINES = frozenset({"world_state", "token_usage_record", "inter_agent_communication", "session_state"})
_UNREADABLE = frozenset({"compaction", "compaction_summary", "context_compaction"})
_FILE_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)")
_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<apps_instructions>",
    "<skills_instructions>",
    "<plugins_instructions>",
    "<personality_spec>",
    "<model_switch>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
)


def is_line(fields: Fields) -> bool:
    """Whether an object is a line of a rollout."""
    kind = text(fields, "type")
    if isinstance(fields.get("payload"), dict):
        return kind in _LINES or (bool(kind) and "timestamp" in fields)
    if kind == "message":
        return isinstance(fields.get("content"), list) and "role" in fields
    return kind in _BARE or ("instructions" in fields and "timestamp" in fields and "id" in fields)


def describe(heading: Heading, fields: Fields) -> None:
    """Add what a line says of the session."""
    heading.started = heading.started or seconds(fields.get("timestamp"))
    payload = field(fields, "payload")
    kind = text(fields, "type")
    if kind == "session_meta" and not heading.session_id:
        heading.session_id = text(payload, "id") or text(payload, "session_id")
        heading.cwd = text(payload, "cwd")
        source = payload.get("source")
        heading.is_subagent = isinstance(source, dict) and "subagent" in source
    elif not kind and "instructions" in fields:
        heading.session_id = text(fields, "id")
    elif kind == "turn_context":
        heading.cwd = heading.cwd or text(payload, "cwd")
    elif kind == "response_item" or kind in _BARE:
        item = payload or fields
        said = plain_text(item.get("content"))
        if item.get("role") == "user" and not heading.first_text and not said.lstrip().startswith(_CONTEXT):
            heading.first_text = said


def surround(heading: Heading, path: Path) -> None:
    """Add the name that the user gave the session, which stands in an index over all of them."""
    found = _FILE_NAME.fullmatch(path.stem)
    for folder in path.parents if found else ():
        try:
            index = folder / "session_index.jsonl"
            heading.title = _titles(index, index.stat().st_mtime_ns).get(found[1], "") if found else ""
        except OSError:
            continue
        return


@functools.lru_cache(maxsize=4)
def _titles(index: Path, _changed: int) -> dict[str, str]:
    """Return the names by session; the newest line of a session counts. Raises `OSError`."""
    rows = (parse_object(line) or {} for line in index.read_bytes().split(b"\n"))
    return {text(row, "id"): text(row, "thread_name") for row in rows if text(row, "thread_name")}


class CodexReader:
    """Reads one rollout."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._parts: list[AssistantPart] = []
        self._usage: Usage | None = None
        self._total: Fields = {}
        self._provider, self._model = "openai", ""
        self._names = 0
        self._turns: list[str] = []
        self._last = ""
        self._ts = 0.0

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the pieces that a line completes."""
        self._ts = seconds(fields.get("timestamp")) or self._ts
        kind, payload = text(fields, "type"), field(fields, "payload")
        match kind:
            case "session_meta":
                self._provider = text(payload, "model_provider") or self._provider
            case "turn_context":
                self._model = text(payload, "model") or self._model
                self._context.heading.model = self._full_model()
            case "response_item":
                yield from self._item(payload)
            case "event_msg":
                yield from self._event(payload)
            case "compacted":
                yield from self._compacted(payload)
            case _ if kind in _BARE:
                yield from self._item(fields)
            case _ if kind in _SILENT_LINES or "record_type" in fields or not kind:
                return
            case _:
                yield self._piece(self._context.aside("unknown", fields))

    def finish(self) -> Iterable[Piece]:
        """Return the last answer."""
        yield from self._flush()

    # --- items of the conversation ---

    def _item(self, item: Fields) -> Iterable[Piece]:
        kind = text(item, "type")
        if kind == "message" and item.get("role") == "assistant":
            self._parts += [
                TextPart(text=text(as_dict(part), "text"), phase=text(item, "phase"))
                for part in items(item, "content")
                if text(as_dict(part), "text")
            ]
        elif kind == "message":
            yield from self._flush()
            yield self._said(item)
        elif kind == "reasoning":
            thought = _thought(item)
            self._parts += [ThinkingPart(text=thought)] if thought else []
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._parts.append(_call(item))
        elif kind.endswith("_call_output"):
            yield from self._flush()
            yield self._piece(self._result(item))
        elif kind in _UNREADABLE or kind in _SILENT_ITEMS:
            return
        else:
            self._parts.append(self._context.unknown_block(OPAQUE, item))

    def _said(self, item: Fields) -> Piece:
        parts = self._content(items(item, "content"))
        words = text_of(parts)
        if item.get("role") != "user" or words.lstrip().startswith(_CONTEXT):
            return self._piece(self._context.aside("context", item))
        origin = "skill" if words.lstrip().startswith("<skill>") else "typed"
        if origin == "typed":
            self._turns.append(self._last)
        return self._piece(UserMessage(parts=parts, origin=origin))

    def _content(self, content: list[Any]) -> tuple[ContentPart, ...]:
        parts: list[ContentPart] = []
        for value in content:
            part = as_dict(value)
            if part.get("type") == "input_image":
                parts.append(self._context.data_image(text(part, "image_url")) or LOST_IMAGE)
            elif "text" in part:
                parts += plain_parts(text(part, "text"))
            else:
                parts.append(self._context.unknown_part(value))
        return tuple(parts)

    def _result(self, item: Fields) -> ToolResultMessage:
        output, failed = item.get("output"), False
        if isinstance(output, dict):
            details = as_dict(output)
            failed = details.get("success") is False
            known = (details.get(name) for name in ("content", "content_items", "output"))
            output = next((value for value in known if value), bytes(raw_json(details)).decode())
        if isinstance(output, str) and output.startswith('{"output":'):
            output = _unwrap(output)
        parts = plain_parts(output) if isinstance(output, str) else self._content(as_list(output))
        return ToolResultMessage(call_id=text(item, "call_id"), name="", parts=parts, is_error=failed)

    def _flush(self) -> Iterable[Piece]:
        """Return the answer whose items came in a row."""
        parts, usage = tuple(self._parts), self._usage
        self._parts, self._usage = [], None
        if not parts:
            if usage is not None:
                yield self._piece(UsageEntry(usage=usage, purpose="imported", model=self._full_model()))
            return
        stop = "tool_use" if any(isinstance(part, ToolCallPart) for part in parts) else "end_turn"
        yield self._piece(AssistantMessage(parts=parts, model=self._full_model(), usage=usage, stop_reason=stop))

    # --- what is told beside the conversation ---

    def _event(self, event: Fields) -> Iterable[Piece]:
        match event.get("type"):
            case "token_count":
                total = field(event, "info", "total_token_usage")
                if total and total != self._total:  # the same total again is news of rate limits, not of a request
                    self._total = total
                    used = _usage(field(event, "info", "last_token_usage"))
                    self._usage = used if self._usage is None or used is None else self._usage + used
            case "thread_rolled_back":
                yield from self._flush()
                yield from self._roll_back(tokens(event, "num_turns"))
            case "turn_aborted":
                yield from self._flush()
                yield self._piece(NoticeEntry(text="interrupted", kind=EXTENSION))
            case "error" if text(event, "message"):
                yield from self._flush()
                yield self._piece(NoticeEntry(text=text(event, "message"), level="error", kind=EXTENSION))
            case _:
                return

    def _roll_back(self, turns: int) -> Iterable[Piece]:
        """Go back before the last turns, as their user did."""
        if 0 < turns <= len(self._turns):
            parent = self._turns[-turns]
            del self._turns[-turns:]
            self._last = parent
            yield self._piece(NoticeEntry(text=WENT_BACK, kind=EXTENSION), parent)

    def _compacted(self, payload: Fields) -> Iterable[Piece]:
        """Return a compaction. One that only its provider can read leaves the history in the view."""
        yield from self._flush()
        replacement = [as_dict(item) for item in items(payload, "replacement_history")]
        summary = text(payload, "message").strip()
        if not summary:
            if replacement or "message" in payload:
                self._context.report.count("unread_summary")
            return
        said = (plain_text(item.get("content")) for item in replacement if item.get("role") == "user")
        users = tuple(words for words in said if words and summary not in words and not words.startswith(_CONTEXT))
        yield self._piece(CompactionEntry(summary=summary, reason="threshold"), users=users)

    # --- names ---

    def _full_model(self) -> str:
        return f"{self._provider}/{self._model}" if self._model else ""

    def _piece(self, entry: Entry, parent: str | None = None, users: tuple[str, ...] = ()) -> Piece:
        """Return a piece that continues the one before, under a name by which a rollback finds it."""
        self._names += 1
        self._last = f"#{self._names}"
        return Piece(entry=entry, ts=self._ts, names=(self._last,), parent=parent, users=users)


def _thought(item: Fields) -> str:
    told = [text(as_dict(part), "text") for part in (*items(item, "content"), *items(item, "summary"))]
    return "\n\n".join(part for part in told if part)


def _call(item: Fields) -> ToolCallPart:
    call_id = text(item, "call_id") or text(item, "id")
    if item.get("type") == "custom_tool_call":
        given: Any = item["arguments"] if "arguments" in item else {"input": text(item, "input")}
    elif item.get("type") == "local_shell_call":
        given = field(item, "action")
    else:
        given = item.get("arguments")
    name = text(item, "name") or ("local_shell" if item.get("type") == "local_shell_call" else "unknown")
    freeform = item.get("type") == "custom_tool_call" and "arguments" not in item
    return ToolCallPart(id=call_id, name=name, arguments=arguments_text(given), freeform=freeform)


def _unwrap(output: str) -> str:
    """Return the text of an output that was stored as JSON with metadata beside it."""
    try:
        found = as_dict(msgspec.json.decode(output))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return output
    return text(found, "output") or output


def _usage(usage: Fields) -> Usage | None:
    cached = min(tokens(usage, "cached_input_tokens"), tokens(usage, "input_tokens"))
    return usage_or_none(
        Usage(
            input=tokens(usage, "input_tokens") - cached,
            cache_read=cached,
            output=tokens(usage, "output_tokens"),
            reasoning=min(tokens(usage, "reasoning_output_tokens"), tokens(usage, "output_tokens")),
        )
    )


def find(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the rollouts, archived ones included."""
    folder = home_of(environ, "CODEX_HOME", home, ".codex")
    yield from folder.glob("sessions/**/rollout-*.jsonl")
    yield from folder.glob("archived_sessions/**/rollout-*.jsonl")


FORMAT = Format(
    name=NAME,
    label="Codex",
    is_line=is_line,
    describe=describe,
    reader=CodexReader,
    find=find,
    surround=surround,
)
