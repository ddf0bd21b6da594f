"""Decoding a Gemini stream: parts come whole, thoughts and text in pieces; a finish reason ends it."""

from __future__ import annotations

from typing import Any

import msgspec

from tenuto.model.wire.conversation import CallDraft, finish_call
from tenuto.model.wire.stream import Answer, ServerEvent, UnreadableEventError
from tenuto.protocol.message import StopReason
from tenuto.protocol.model import ModelError, StreamPart, TextDelta, ThinkingDelta, ToolCallDelta
from tenuto.protocol.part import NO_BLOCK, AssistantPart, TextPart, ThinkingPart
from tenuto.protocol.usage import Usage
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text

STOP_REASONS: dict[str, StopReason] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"), "refusal"
    ),
}
BROKEN = {
    "MALFORMED_FUNCTION_CALL": "a call that cannot be read",
    "MALFORMED_RESPONSE": "an answer that cannot be read",
    "UNEXPECTED_TOOL_CALL": "a call although there is no tool",
    "TOO_MANY_TOOL_CALLS": "too many calls",
    "MISSING_THOUGHT_SIGNATURE": "a thought without its signature",
}
"""The server says itself that nothing can be done with the answer: the request is made again."""


class GeminiDecoder:
    """Collects one answer. `taken` are the call ids that the conversation already has."""

    def __init__(self, provider: str, taken: set[str]) -> None:
        self._provider = provider
        self._taken = taken
        self._id = ""
        self._parts: list[AssistantPart] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls = 0
        self._reason = ""
        self._blocked = ""
        self._usage: dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        """Never: the protocol has no end mark, and numbers may come behind the finish reason."""
        return False

    @property
    def complete(self) -> bool:
        """Whether a finish reason came, or the prompt was blocked."""
        return bool(self._reason or self._blocked)

    def feed(self, event: ServerEvent) -> list[StreamPart]:
        """Take one chunk and return what it adds. Raises `ModelError`."""
        chunk = json_access.decode_object(event.data)
        if chunk is None:
            raise UnreadableEventError(self._provider, event)
        if chunk.get("error"):
            from tenuto.model.errors import classify_object

            raise classify_object(self._provider, chunk)
        self._id = self._id or as_text(chunk.get("responseId"))
        self._usage = as_dict(chunk.get("usageMetadata")) or self._usage
        self._blocked = self._blocked or as_text(as_dict(chunk.get("promptFeedback")).get("blockReason"))
        parts: list[StreamPart] = []
        for value in as_list(chunk.get("candidates"))[:1]:
            candidate = as_dict(value)
            for part in as_list(as_dict(candidate.get("content")).get("parts")):
                parts += self._take(as_dict(part))
            self._reason = as_text(candidate.get("finishReason")) or self._reason
        return parts

    def finish(self) -> Answer:
        """Return the whole answer. Raises `ModelError` where the server says that it is none."""
        if self._reason in BROKEN:
            raise ModelError("broken_stream", f"{self._provider} ended with {BROKEN[self._reason]} ({self._reason})")
        self._close_text()
        self._close_thinking()
        stop: StopReason = STOP_REASONS.get(self._reason, "other") if self._reason else "refusal"
        if self._calls and stop in {"end_turn", "other"}:
            stop = "tool_use"
        return Answer(tuple(self._parts), stop, self._normal_usage(), self._id)

    def _take(self, part: dict[str, Any]) -> list[StreamPart]:
        signature = as_text(part.get("thoughtSignature"))
        call = as_dict(part.get("functionCall"))
        text = as_text(part.get("text"))
        if call:
            self._close_text()
            self._close_thinking(signature)
            return [self._take_call(call)]
        if part.get("thought"):
            self._close_text()
            self._thinking.append(text)
            if signature:
                self._close_thinking(signature)
            return [ThinkingDelta(text)] if text else []
        if signature:
            # A signed part is not joined with others: it goes back as it came.
            self._close_text()
            self._close_thinking(signature)
            if text:
                self._parts.append(TextPart(text=text))
        elif text:
            self._close_thinking()
            self._text.append(text)
        return [TextDelta(text)] if text else []

    def _take_call(self, call: dict[str, Any]) -> ToolCallDelta:
        name, arguments = as_text(call.get("name")), json_access.encode(as_dict(call.get("args"))).decode()
        draft = CallDraft(as_text(call.get("id")), name, [arguments])
        self._parts.append(finish_call(draft, self._taken))
        self._calls += 1
        return ToolCallDelta(self._calls - 1, name, arguments)

    def _close_text(self) -> None:
        text, self._text = "".join(self._text), []
        if text:
            self._parts.append(TextPart(text=text))

    def _close_thinking(self, signature: str = "") -> None:
        """Keep the thought so far, with the signature of the part behind it."""
        text, self._thinking = "".join(self._thinking), []
        if text.strip() or signature:
            block = msgspec.Raw(json_access.encode({"thoughtSignature": signature})) if signature else NO_BLOCK
            self._parts.append(ThinkingPart(text=text.strip("\n"), provider=self._provider, block=block))

    def _normal_usage(self) -> Usage | None:
        usage = self._usage
        if not usage:
            return None
        cached = as_count(usage.get("cachedContentTokenCount"))
        thoughts = as_count(usage.get("thoughtsTokenCount"))
        sent = as_count(usage.get("promptTokenCount")) + as_count(usage.get("toolUsePromptTokenCount"))
        return Usage(
            input=max(0, sent - cached),
            cache_read=cached,
            output=as_count(usage.get("candidatesTokenCount")) + thoughts,
            reasoning=thoughts,
            unsent_reasoning=thoughts,
        )
