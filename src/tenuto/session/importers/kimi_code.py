"""Kimi Code: a journal of records (`wire.jsonl`) in one row; undo and clear are records of their own.

Readers are pure; `find` and `surround` look at files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tenuto.protocol.entry import Entry, NoticeEntry, Origin
from tenuto.protocol.message import AssistantMessage, CompactionEntry, StopReason, ToolResultMessage, UserMessage
from tenuto.protocol.part import AssistantPart, ContentPart, ImagePart, TextPart, ThinkingPart, ToolCallPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.importers.builder import EXTENSION, WENT_BACK, Piece
from tenuto.session.importers.format import Context, Format, Heading, home_of, read_json
from tenuto.session.importers.json_access import (
    Fields,
    arguments_text,
    field,
    items,
    plain_parts,
    plain_text,
    seconds,
    text,
    tokens,
    usage_or_none,
)
from tenuto.text.json_access import as_dict, as_list

OPAQUE = "imported:kimi"


def content_parts(content: Any, context: Context) -> tuple[ContentPart, ...]:
    """Return what a user said or a tool returned."""
    if isinstance(content, str):
        return plain_parts(content)
    found: list[ContentPart] = []
    for value in as_list(content):
        part = as_dict(value)
        match part.get("type"):
            case "text":
                found += plain_parts(text(part, "text"))
            case "think":
                continue
            case "image_url" | "image":
                url = text(field(part, "image_url"), "url") or text(part, "image_url") or text(part, "url")
                found.append(_image(url, context) or TextPart(text=f"[image: {url[:200]}]"))
            case _:
                found.append(context.unknown_part(value))
    return tuple(found)


def _image(url: str, context: Context) -> ImagePart | None:
    if url.startswith("blobref:"):
        digest = url.rpartition(";")[2]
        return context.file_image(f"blobs/{digest}") if digest.isalnum() else None
    return context.data_image(url)


def answer_parts(content: Any, context: Context) -> Iterator[AssistantPart]:
    """Yield what a model wrote and thought; its calls stand elsewhere."""
    if isinstance(content, str):
        yield from [TextPart(text=content)] if content else []
        return
    for value in as_list(content):
        part = as_dict(value)
        match part.get("type"):
            case "text":
                yield from [TextPart(text=text(part, "text"))] if text(part, "text") else []
            case "think":
                yield from [ThinkingPart(text=text(part, "think"))] if text(part, "think") else []
            case _:
                yield context.unknown_block(OPAQUE, value)


def call_part(call: Fields) -> ToolCallPart:
    """Return a call, whose name and arguments may lie in a `function` object."""
    inner = field(call, "function") or call
    return ToolCallPart(
        id=text(call, "id"),
        name=text(inner, "name") or "unknown",
        arguments=arguments_text(inner.get("arguments")),
    )


NAME = "kimi-code"
MAX_USER_CHARACTERS = 60_000
"""How much of the user's own words a compaction carries along, about what the source keeps."""
_ORIGINS: dict[str, Origin] = {
    "user": "typed",
    "skill_activation": "skill",
    "plugin_command": "command",
    "hook_result": "hook",
}
_ASIDE = frozenset({"injection", "cron_missed", "system_trigger"})
_STOPS: dict[str, StopReason] = {
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "length": "max_tokens",
    "truncated": "max_tokens",
    "filtered": "refusal",
}
_PREFIXES = (
    "agent.", "blob.", "config.", "context.", "cron.", "forked", "full_compaction.", "goal.", "interaction.",
    "interruptionReminder.", "llm.", "mcp.", "metadata", "micro_compaction.", "permission.", "plan", "plugin.",
    "profile.", "prompt.", "runtime.", "skill.", "staleGuard.", "subagent.", "swarm_mode.", "task.",
    "token_counting.", "tools.", "tower_mode.", "turn.", "usage.",
)  # fmt: skip


def is_line(fields: Fields) -> bool:
    """Whether an object is a record of a journal of Kimi Code."""
    kind = text(fields, "type")
    if not kind.startswith(_PREFIXES):
        return False
    return "protocol_version" in fields if kind == "metadata" else "." in kind or kind == "forked"


def describe(heading: Heading, fields: Fields) -> None:
    """Add what a record says of the session."""
    kind = text(fields, "type")
    heading.started = heading.started or seconds(fields.get("created_at")) or seconds(fields.get("time"))
    if kind in ("config.update", "profile.bind"):
        heading.cwd = heading.cwd or text(fields, "cwd") or text(field(fields, "environmentDisclosure"), "cwd")
    elif kind == "context.append_message" and not heading.first_text:
        message = field(fields, "message")
        if message.get("role") == "user" and _origin(message) == "user":
            heading.first_text = plain_text(message.get("content"))


def surround(heading: Heading, path: Path) -> None:
    """Add what `state.json` of the session says."""
    in_agents = path.parent.parent.name == "agents"
    folder = path.parent.parent.parent if in_agents else path.parent
    state = read_json(folder / "state.json")
    heading.session_id = folder.name
    heading.cwd = text(state, "cwd") or text(state, "workDir") or text(field(state, "custom"), "cwd")
    heading.title = text(state, "title")
    heading.is_subagent = in_agents and path.parent.name != "main"


def _origin(message: Fields) -> str:
    return text(field(message, "origin"), "kind") or "user"


class KimiCodeReader:
    """Reads one journal. `_turns` are, for each prompt that undo counts, the name of what came before it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answer: AssistantMessage | None = None
        self._results: list[ToolResultMessage] = []
        self._model = ""
        self._names = 0
        self._last = ""
        self._row: list[str] = []
        self._turns: list[tuple[str, int]] = []
        self._users: list[str] = []
        self._ts = 0.0

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the pieces that a record completes."""
        self._ts = seconds(fields.get("time")) or self._ts
        kind = text(fields, "type")
        match kind:
            case "context.append_message":
                yield from self._flush()
                yield from self._message(field(fields, "message"))
            case "context.append_loop_event":
                yield from self._loop_event(field(fields, "event"))
            case "context.apply_compaction":
                yield from self._flush()
                yield self._compaction(fields)
            case "context.undo":
                yield from self._flush()
                yield from self._undo(tokens(fields, "count"))
            case "context.clear":
                yield from self._flush()
                yield self._went_back("")
                self._row, self._turns, self._users = [], [], []
            case "llm.request":
                names = (text(fields, "provider"), text(fields, "model"))
                self._take_model("/".join(name for name in names if name))
            case "config.update" | "profile.bind":
                self._take_model(text(fields, "modelAlias"))
            case "usage.record" if not self._model:
                self._take_model(text(fields, "model"))
            case _ if kind.startswith(_PREFIXES):
                return
            case _:
                yield Piece(entry=self._context.aside("unknown", fields), ts=self._ts)

    def finish(self) -> Iterable[Piece]:
        """Return the last answer."""
        yield from self._flush()

    def _take_model(self, model: str) -> None:
        self._model = model or self._model
        self._context.heading.model = self._model

    # --- messages ---

    def _message(self, message: Fields) -> Iterable[Piece]:
        match message.get("role"):
            case "user":
                yield self._user(message)
            case "assistant":
                calls = tuple(call_part(as_dict(call)) for call in items(message, "toolCalls"))
                parts = (*answer_parts(message.get("content"), self._context), *calls)
                stop: StopReason = "tool_use" if calls else "end_turn"
                yield self._piece(AssistantMessage(parts=parts, model=self._model, stop_reason=stop))
            case "tool":
                parts = content_parts(message.get("content"), self._context)
                failed = message.get("isError") is True
                call_id = text(message, "toolCallId")
                yield self._piece(ToolResultMessage(call_id=call_id, name="", parts=parts, is_error=failed))
            case _:
                yield self._piece(self._context.aside("context", message))

    def _user(self, message: Fields) -> Piece:
        origin = _origin(message)
        parts = content_parts(message.get("content"), self._context)
        words = text_of(parts)
        if origin in _ASIDE:
            return self._piece(self._context.aside("context", message))
        if origin == "compaction_summary":
            return self._piece(CompactionEntry(summary=words, reason="threshold"))
        if origin in ("user", "skill_activation", "plugin_command"):
            self._turns.append((self._last, len(self._row)))
            self._users.append(words)
        return self._piece(UserMessage(parts=parts, origin=_ORIGINS.get(origin, "extension")))

    # --- steps of the loop ---

    def _loop_event(self, event: Fields) -> Iterable[Piece]:
        match event.get("type"):
            case "step.begin":
                yield from self._flush()
                self._answer = AssistantMessage(parts=(), model=self._model)
            case "content.part" if self._answer is not None:
                self._add(answer_parts([event.get("part")], self._context))
            case "tool.call":
                self._answer = self._answer or AssistantMessage(parts=(), model=self._model)
                name, arguments = text(event, "name") or "unknown", arguments_text(event.get("args"))
                self._add([ToolCallPart(id=text(event, "toolCallId"), name=name, arguments=arguments)])
            case "tool.result":
                yield from self._result(event)
            case "step.end":
                yield from self._end_step(event)
            case _:
                return

    def _result(self, event: Fields) -> Iterable[Piece]:
        """Return a result; while its step is open it waits, because the step's end tells what the answer cost."""
        result = field(event, "result")
        entry = ToolResultMessage(
            call_id=text(event, "toolCallId"),
            name="",
            parts=content_parts(result.get("output"), self._context),
            is_error=result.get("isError") is True,
        )
        if self._answer is not None:
            self._results.append(entry)
        else:
            yield self._piece(entry)

    def _add(self, parts: Iterable[AssistantPart]) -> None:
        if self._answer is not None:
            self._answer = msgspec.structs.replace(self._answer, parts=(*self._answer.parts, *parts))

    def _end_step(self, event: Fields) -> Iterable[Piece]:
        """Complete the answer."""
        if self._answer is None:
            return
        reason = text(event, "finishReason")
        stop: StopReason = "interrupted" if reason in ("interrupted", "error") else _STOPS.get(reason, "end_turn")
        self._answer = msgspec.structs.replace(
            self._answer, usage=_usage(field(event, "usage")), stop_reason=stop, response_id=text(event, "messageId")
        )
        yield from self._flush()

    def _flush(self) -> Iterable[Piece]:
        answer, self._answer = self._answer, None
        results, self._results = self._results, []
        if answer is not None and answer.parts:
            if any(isinstance(part, ToolCallPart) for part in answer.parts):
                answer = msgspec.structs.replace(answer, stop_reason="tool_use")
            yield self._piece(answer)
        for result in results:
            yield self._piece(result)

    # --- compaction, undo, names ---

    def _compaction(self, fields: Fields) -> Piece:
        """Return a compaction: the newer ones keep the user's words, the older ones the messages from a place on."""
        summary = plain_text(fields.get("summary")) or text(fields, "contextSummary")
        summary = summary or plain_text(field(fields, "summary").get("content"))
        entry = CompactionEntry(
            summary=summary,
            reason="threshold",
            tokens_before=tokens(fields, "tokensBefore") or None,
            tokens_after=tokens(fields, "tokensAfter") or None,
        )
        count = tokens(fields, "compactedCount") or tokens(fields, "count")
        keeps_tail = "keptUserMessageCount" not in fields and count < len(self._row)
        target = self._row[count] if keeps_tail else ""
        users = () if keeps_tail else _newest(self._users)
        piece = self._piece(entry, target=target, users=users)
        self._row = [piece.names[0], *self._row[count:-1]] if keeps_tail else [piece.names[0]]
        self._turns = []  # its undo does not reach behind a compaction either
        return piece

    def _undo(self, count: int) -> Iterable[Piece]:
        """Go back before the last `count` prompts."""
        if 0 < count <= len(self._turns):
            parent, length = self._turns[-count]
            del self._turns[-count:], self._row[length:], self._users[-count:]
            yield self._went_back(parent)

    def _went_back(self, parent: str) -> Piece:
        piece = self._piece(NoticeEntry(text=WENT_BACK, kind=EXTENSION), parent=parent)
        self._row.pop()
        return piece

    def _piece(self, entry: Entry, target: str = "", users: tuple[str, ...] = (), parent: str | None = None) -> Piece:
        """Return a piece that continues the one before; `_row` are the messages as the source counts them."""
        self._names += 1
        self._last = f"#{self._names}"
        self._row.append(self._last)
        return Piece(entry=entry, ts=self._ts, names=(self._last,), parent=parent, target=target, users=users)


def _newest(users: list[str]) -> tuple[str, ...]:
    """Return the newest texts that fit, in their order."""
    chosen: list[str] = []
    room = MAX_USER_CHARACTERS
    for words in reversed(users):
        room -= len(words)
        if room < 0:
            break
        chosen.append(words)
    return tuple(reversed(chosen))


def _usage(usage: Fields) -> Usage | None:
    return usage_or_none(
        Usage(
            input=tokens(usage, "inputOther"),
            cache_read=tokens(usage, "inputCacheRead"),
            cache_write=tokens(usage, "inputCacheCreation"),
            output=tokens(usage, "output"),
        )
    )


def find(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the journals of main agents."""
    yield from home_of(environ, "KIMI_CODE_HOME", home, ".kimi-code").glob("sessions/*/*/agents/main/wire.jsonl")


FORMAT = Format(
    name=NAME,
    label="Kimi Code",
    is_line=is_line,
    describe=describe,
    reader=KimiCodeReader,
    find=find,
    main_files=("agents/main/wire.jsonl", "wire.jsonl"),
    surround=surround,
)
