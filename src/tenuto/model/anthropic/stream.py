"""Decoding an Anthropic Messages stream (anchors A1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tenuto.model.anthropic.encoder import COMPACTION, applied_edit, compacted_items
from tenuto.model.anthropic.web_search import CALL, RESULT, drop_unanswered, read_call, read_result, text_part
from tenuto.model.wire.conversation import CallDraft, finish_call
from tenuto.model.wire.stream import Answer, ServerEvent, UnreadableEventError, tokens_at_cut
from tenuto.protocol.message import StopReason
from tenuto.protocol.model import ModelError, SearchDelta, StreamPart, TextDelta, ThinkingDelta, ToolCallDelta
from tenuto.protocol.part import AssistantPart, OpaquePart, ThinkingPart, WebSearch
from tenuto.protocol.usage import Usage
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text

STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "max_tokens": "max_tokens",
    "tool_use": "tool_use",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "window_exceeded",
}
NO_QUERIES: Mapping[str, str] = {}
_DELTA_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "compaction_delta": "content"}


@dataclass(slots=True)
class Block:
    """A content block while it is streamed; `fields` is the provider's own object."""

    fields: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    json: list[str] = field(default_factory=list)
    text_field: str = ""
    call: int = -1

    def close(self) -> dict[str, Any]:
        """Return the finished block."""
        finished = dict(self.fields)
        if self.text_field:
            finished[self.text_field] = as_text(finished.get(self.text_field)) + "".join(self.texts)
        if self.json:
            finished["input"] = json_access.decode_object("".join(self.json)) or {}
        return finished


class AnthropicDecoder:
    """Collects one answer. `taken` are the call ids that the conversation already has.

    `queries` are the web searches, by id, that the answer before began and that this one brings the results of.
    """

    def __init__(self, provider: str, taken: set[str], queries: Mapping[str, str] = NO_QUERIES) -> None:
        self._provider = provider
        self._taken = taken
        self._earlier = queries
        self._queries: dict[str, str] = {}
        self._id = ""
        self._blocks: dict[int, Block] = {}
        self._calls = 0
        self._usage: dict[str, Any] = {}
        self._context_management: dict[str, Any] = {}
        self._stop_reason = ""
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether `message_stop` arrived."""
        return self._ended

    @property
    def complete(self) -> bool:
        """The same: without `message_stop` an answer is broken."""
        return self._ended

    def feed(self, event: ServerEvent) -> list[StreamPart]:
        """Take one event and return what it adds. Raises `ModelError`."""
        data = json_access.decode_object(event.data)
        if data is None:
            raise UnreadableEventError(self._provider, event)
        match data.get("type") or event.name:
            case "content_block_delta":
                return self._take_delta(data)
            case "content_block_start":
                return self._start_block(data)
            case "content_block_stop":
                return self._end_block(data)
            case "message_start":
                message = as_dict(data.get("message"))
                self._id = as_text(message.get("id"))
                self._take_usage(message)
            case "message_delta":
                self._stop_reason = as_text(as_dict(data.get("delta")).get("stop_reason")) or self._stop_reason
                self._take_usage(data)
                self._context_management = as_dict(data.get("context_management")) or self._context_management
            case "message_stop":
                self._ended = True
            case "error":
                from tenuto.model.errors import classify_object

                raise classify_object(self._provider, data)
            case _:
                pass
        return []

    def finish(self) -> Answer:
        """Return the whole answer. Raises `ModelError` when it has no stop reason: then it was cut off."""
        if not self._stop_reason:
            raise ModelError("broken_stream", "the answer ended without a stop reason")
        stop_reason = STOP_REASONS.get(self._stop_reason, "other")
        usage = self._normal_usage()
        cut_at = tokens_at_cut(stop_reason, usage)
        last = max(self._blocks, default=-1)
        parts: list[AssistantPart] = []
        compacted: list[dict[str, Any]] = []
        for index, block in sorted(self._blocks.items()):
            if block.fields.get("type") == COMPACTION:
                compacted.append(block.close())
                continue
            part = self._part(block, cut_at if index == last else None)
            if part is not None:
                parts.append(part)
        return Answer(
            drop_unanswered(parts, stop_reason),
            stop_reason,
            usage,
            self._id,
            edit=applied_edit(self._context_management),
            compacted=compacted_items(compacted),
        )

    def _start_block(self, data: dict[str, Any]) -> list[StreamPart]:
        fields = as_dict(data.get("content_block"))
        block = self._blocks[as_count(data.get("index"))] = Block(fields)
        match fields.get("type"):
            case "tool_use":
                block.call = self._calls
                self._calls += 1
                return [ToolCallDelta(block.call, as_text(fields.get("name")))]
            case "text" if fields.get("text"):
                return [TextDelta(as_text(fields["text"]))]
            case "thinking" if fields.get("thinking"):
                return [ThinkingDelta(as_text(fields["thinking"]))]
            case "web_search_tool_result":
                return [SearchDelta(self._result(fields))]
            case _:
                return []

    def _end_block(self, data: dict[str, Any]) -> list[StreamPart]:
        """A search begins when its whole query is there."""
        block = self._blocks.get(as_count(data.get("index")))
        if block is None or block.fields.get("type") != CALL:
            return []
        search = read_call(block.close())
        if search is None:
            return []
        self._queries[search.id] = search.query
        return [SearchDelta(search)]

    def _result(self, fields: dict[str, Any]) -> WebSearch:
        search_id = as_text(fields.get("tool_use_id"))
        query = self._queries.get(search_id)
        if query is not None:
            return read_result(fields, query, carried=False)
        return read_result(fields, self._earlier.get(search_id, ""), carried=True)

    def _take_delta(self, data: dict[str, Any]) -> list[StreamPart]:
        block = self._blocks.get(as_count(data.get("index")))
        if block is None:
            raise ModelError("broken_stream", f"{self._provider} sent a piece of a block that never began")
        delta = as_dict(data.get("delta"))
        kind = as_text(delta.get("type"))
        if kind == "input_json_delta":
            fragment = as_text(delta.get("partial_json"))
            block.json.append(fragment)
            return [ToolCallDelta(block.call, as_text(block.fields.get("name")), fragment)] if block.call >= 0 else []
        if kind in _DELTA_FIELDS:
            block.text_field = _DELTA_FIELDS[kind]
            text = as_text(delta.get(block.text_field))
            block.texts.append(text)
            if delta.get("encrypted_content"):
                block.fields["encrypted_content"] = delta["encrypted_content"]
            if kind == "text_delta":
                return [TextDelta(text)]
            return [ThinkingDelta(text)] if kind == "thinking_delta" else []
        if kind == "citations_delta":
            block.fields["citations"] = [*as_list(block.fields.get("citations")), as_dict(delta.get("citation"))]
        else:
            # A signature, and whatever comes later, is whole: the newest stands.
            block.fields.update({key: value for key, value in delta.items() if key != "type"})
        return []

    def _take_usage(self, data: dict[str, Any]) -> None:
        """Usage is cumulative: what is named replaces what was there."""
        named = {key: value for key, value in as_dict(data.get("usage")).items() if value is not None}
        self._usage.update(named)

    def _part(self, block: Block, cut_at: int | None) -> AssistantPart | None:
        fields = block.close()
        match fields.get("type"):
            case "text":
                return text_part(fields, self._provider)
            case "thinking" | "redacted_thinking":
                raw = msgspec.Raw(json_access.encode(fields))
                return ThinkingPart(text=as_text(fields.get("thinking")), provider=self._provider, block=raw)
            case "tool_use":
                written = "".join(block.json)
                if not block.json and block.fields.get("input"):
                    written = json_access.encode(block.fields["input"]).decode()
                draft = CallDraft(as_text(fields.get("id")), as_text(fields.get("name")), [written])
                return finish_call(draft, self._taken, cut_at=cut_at)
            case kind:
                search = read_call(fields) if kind == CALL else self._result(fields) if kind == RESULT else None
                raw = msgspec.Raw(json_access.encode(fields))
                return OpaquePart(provider=self._provider, block=raw, search=search)

    def _normal_usage(self) -> Usage | None:
        """Return the usage; what the server's own compaction cost is named apart from the totals and belongs to it."""
        if not self._usage:
            return None
        usage = _normal(self._usage)
        for value in as_list(self._usage.get("iterations")):
            iteration = as_dict(value)
            if iteration.get("type") == COMPACTION:
                usage += _normal(iteration)
        return usage


def _normal(usage: dict[str, Any]) -> Usage:
    output = as_count(usage.get("output_tokens"))
    thinking = as_count(as_dict(usage.get("output_tokens_details")).get("thinking_tokens"))
    return Usage(
        input=as_count(usage.get("input_tokens")),
        cache_read=as_count(usage.get("cache_read_input_tokens")),
        cache_write=as_count(usage.get("cache_creation_input_tokens")),
        output=output,
        reasoning=min(thinking, output),
        searches=as_count(as_dict(usage.get("server_tool_use")).get("web_search_requests")),
    )
