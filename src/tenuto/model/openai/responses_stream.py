"""Decoding an OpenAI Responses stream (anchors A2.3, A2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model.openai.responses_encoder import COMPACTION, FREEFORM_CALL, FUNCTION_CALL, compacted_items
from tenuto.model.openai.web_search import CALL, cited, count_searches, read_call
from tenuto.model.wire.conversation import CallDraft, finish_call, finish_freeform
from tenuto.model.wire.stream import Answer, ServerEvent, UnreadableEventError, tokens_at_cut
from tenuto.protocol.message import StopReason
from tenuto.protocol.model import SearchDelta, StreamPart, TextDelta, ThinkingDelta, ToolCallDelta
from tenuto.protocol.part import AssistantPart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text

INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "steered": "interrupted",
}

DELTAS: dict[str, type[TextDelta | ThinkingDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ThinkingDelta,
    "response.reasoning_text.delta": ThinkingDelta,
}


class ResponsesDecoder:
    """Collects one answer. `taken` are the call ids that the conversation already has.

    Items are taken from `response.output_item.done`: only there reasoning is complete with its encrypted content.
    """

    def __init__(self, provider: str, taken: set[str]) -> None:
        self._provider = provider
        self._taken = taken
        self._items: dict[int, dict[str, Any]] = {}
        self._call_at: dict[int, int] = {}
        self._call_names: dict[int, str] = {}
        self._response: dict[str, Any] = {}
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether `response.completed` or `response.incomplete` arrived."""
        return self._ended

    @property
    def complete(self) -> bool:
        """The same: without its terminal event an answer is broken."""
        return self._ended

    def feed(self, event: ServerEvent) -> list[StreamPart]:
        """Take one event and return what it adds. Raises `ModelError`."""
        if event.data.strip() == b"[DONE]":
            return []
        data = json_access.decode_object(event.data)
        if data is None:
            raise UnreadableEventError(self._provider, event)
        kind = as_text(data.get("type")) or event.name
        if kind in DELTAS:
            return [DELTAS[kind](as_text(data.get("delta")))]
        match kind:
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                return self._take_arguments(data)
            case "response.reasoning_summary_part.added" if as_count(data.get("summary_index")):
                return [ThinkingDelta("\n\n")]
            case "response.output_item.added":
                return self._begin_item(data)
            case "response.output_item.done":
                item = self._items[as_count(data.get("output_index"))] = as_dict(data.get("item"))
                return [SearchDelta(read_call(item))] if item.get("type") == CALL else []
            case "response.completed" | "response.incomplete" | "response.done":
                self._response = as_dict(data.get("response"))
                self._ended = True
            case "response.failed":
                self._fail(as_dict(data.get("response")).get("error") or data)
            case "error" | "":
                self._fail(data.get("error") or data)
            case _:
                pass
        return []

    def finish(self) -> Answer:
        """Return the whole answer. Raises `ModelError` for a response that failed."""
        response = self._response
        status = as_text(response.get("status"))
        if status in {"failed", "cancelled"}:
            self._fail(response.get("error") or {"message": f"the response was {status}"})
        items = [item for _, item in sorted(self._items.items())]
        items = items or [as_dict(item) for item in as_list(response.get("output"))]
        stop_reason: StopReason = "end_turn"
        if status == "incomplete":
            reason = as_text(as_dict(response.get("incomplete_details")).get("reason"))
            # Whatever ended it, the server says that it is not whole.
            stop_reason = INCOMPLETE.get(reason, "max_tokens")
        parts: list[AssistantPart] = []
        compacted = [item for item in items if item.get("type") == COMPACTION]
        items = [item for item in items if item.get("type") != COMPACTION]
        refused = False
        cut_at = tokens_at_cut(stop_reason, normal_usage(as_dict(response.get("usage"))))
        for place, item in enumerate(items):
            refused |= self._take_item(item, parts, cut_at if place == len(items) - 1 else None)
        if stop_reason == "end_turn" and any(isinstance(part, ToolCallPart) for part in parts):
            stop_reason = "tool_use"
        elif stop_reason == "end_turn" and refused:
            stop_reason = "refusal"
        elif stop_reason == "end_turn" and compacted and not parts:
            stop_reason = "pause"
        return Answer(
            tuple(parts),
            stop_reason,
            normal_usage(as_dict(response.get("usage")), parts),
            as_text(response.get("id")),
            compacted=compacted_items(compacted) if compacted else None,
        )

    def _fail(self, error: Any) -> None:
        from tenuto.model.errors import classify_object

        raise classify_object(self._provider, error)

    def _begin_item(self, data: dict[str, Any]) -> list[StreamPart]:
        item = as_dict(data.get("item"))
        if item.get("type") == CALL:
            return [SearchDelta(read_call(item, done=False))]
        if item.get("type") not in {FUNCTION_CALL, FREEFORM_CALL}:
            return []
        index = as_count(data.get("output_index"))
        call = self._call_at.setdefault(index, len(self._call_at))
        self._call_names[index] = as_text(item.get("name"))
        return [ToolCallDelta(call, self._call_names[index])]

    def _take_arguments(self, data: dict[str, Any]) -> list[StreamPart]:
        index = as_count(data.get("output_index"))
        call = self._call_at.setdefault(index, len(self._call_at))
        return [ToolCallDelta(call, self._call_names.get(index, ""), as_text(data.get("delta")))]

    def _take_item(self, item: dict[str, Any], parts: list[AssistantPart], cut_at: int | None) -> bool:
        """Add the parts of a finished item; whether it is a refusal."""
        match item.get("type"):
            case "message":
                return self._take_message(item, parts)
            case "reasoning":
                parts.append(self._reasoning(item))
            case "function_call":
                parts.append(finish_call(_draft(item, "arguments"), self._taken, cut_at=cut_at))
            case "custom_tool_call":
                parts.append(finish_freeform(_draft(item, "input"), self._taken, cut_at=cut_at))
            case "web_search_call":
                raw = msgspec.Raw(json_access.encode(item))
                parts.append(OpaquePart(provider=self._provider, block=raw, search=read_call(item)))
            case str():
                parts.append(OpaquePart(provider=self._provider, block=msgspec.Raw(json_access.encode(item))))
            case _:
                pass
        return False

    def _take_message(self, item: dict[str, Any], parts: list[AssistantPart]) -> bool:
        content = [as_dict(value) for value in as_list(item.get("content"))]
        text = "".join(as_text(part.get("text")) or as_text(part.get("refusal")) for part in content)
        if text:
            parts.append(TextPart(text=text, phase=as_text(item.get("phase")), sources=cited(content)))
        return any(part.get("type") == "refusal" for part in content)

    def _reasoning(self, item: dict[str, Any]) -> ThinkingPart:
        """Return a reasoning item; without encrypted content it is readable and not sent back (`store` is false)."""
        texts = [as_text(as_dict(value).get("text")) for value in as_list(item.get("summary"))]
        texts = texts or [as_text(as_dict(value).get("text")) for value in as_list(item.get("content"))]
        block = b""
        if item.get("encrypted_content"):
            kept = ("id", "type", "summary", "content", "encrypted_content")
            block = json_access.encode({key: item[key] for key in kept if item.get(key) is not None})
        text = "\n\n".join(text for text in texts if text)
        return ThinkingPart(text=text, provider=self._provider, block=msgspec.Raw(block))


def _draft(item: dict[str, Any], given: str) -> CallDraft:
    return CallDraft(as_text(item.get("call_id")), as_text(item.get("name")), [as_text(item.get(given))])


def normal_usage(usage: dict[str, Any], parts: Sequence[AssistantPart] = ()) -> Usage | None:
    """Return a usage object in normal form, `None` for an empty one; `parts` is the answer that it belongs to."""
    if not usage:
        return None
    details = as_dict(usage.get("input_tokens_details"))
    read, written = as_count(details.get("cached_tokens")), as_count(details.get("cache_write_tokens"))
    output = as_count(usage.get("output_tokens"))
    reasoning = min(output, as_count(as_dict(usage.get("output_tokens_details")).get("reasoning_tokens")))
    sent_back = any(isinstance(part, ThinkingPart) and bytes(part.block) for part in parts)
    return Usage(
        input=max(0, as_count(usage.get("input_tokens")) - read - written),
        cache_read=read,
        cache_write=written,
        output=output,
        reasoning=reasoning,
        unsent_reasoning=0 if sent_back else reasoning,
        searches=count_searches(parts),
    )
