"""Decoding a Chat Completions stream, with the habits of many servers (anchors A3.1, A3.2)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tenuto.model.wire.conversation import CallDraft, finish_call
from tenuto.model.wire.stream import Answer, ServerEvent, UnreadableEventError, tokens_at_cut
from tenuto.protocol.message import StopReason
from tenuto.protocol.model import ModelError, StreamPart, TextDelta, ThinkingDelta, ToolCallDelta
from tenuto.protocol.part import NO_BLOCK, AssistantPart, TextPart, ThinkingPart
from tenuto.protocol.usage import Usage
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text
from tenuto.text.late import late

OPEN, CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Sorts streamed text into thinking and answer.

    Only an answer that *begins* with the tag has thinking in it; a later `<think>` is text (an answer may be about
    it). What could be the start of a tag is held back until that is decided.
    """

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"

    def feed(self, text: str) -> tuple[str, str]:
        """Return the thinking and the answer text that are certain after `text`."""
        if self._state == "answer":
            return "", text
        self._held += text
        if self._state == "start":
            begun = self._held.lstrip()
            if OPEN.startswith(begun) and begun != OPEN:
                return "", ""
            if not begun.startswith(OPEN):
                self._state = "answer"
                answer, self._held = self._held, ""
                return "", answer
            self._state, self._held = "thinking", begun.removeprefix(OPEN)
        if self._state == "thinking":
            return self._think()
        return self._after()

    def flush(self) -> tuple[str, str]:
        """Return what is still held back when the stream has ended."""
        held, self._held = self._held, ""
        if self._state == "thinking":
            return held, ""
        return "", "" if self._state == "after" else held

    def _think(self) -> tuple[str, str]:
        place = self._held.find(CLOSE)
        if place < 0:
            keep = _tag_start(self._held)
            thinking, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
            return thinking, ""
        thinking, self._held = self._held[:place], self._held[place + len(CLOSE) :]
        self._state = "after"
        return thinking, self._after()[1]

    def _after(self) -> tuple[str, str]:
        """Leave out the blank lines between the thinking and the answer."""
        answer, self._held = self._held.lstrip("\r\n"), ""
        if answer:
            self._state = "answer"
        return "", answer


def _tag_start(text: str) -> int:
    """Return how many characters at the end may be the beginning of the closing tag."""
    for length in range(min(len(text), len(CLOSE) - 1), 0, -1):
        if text.endswith(CLOSE[:length]):
            return length
    return 0


STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "end_turn": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "sensitive": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "model_context_window_exceeded": "window_exceeded",
}
_ORPHAN_CLOSE = late(r"\A(?P<thinking>.*?)^[ \t]*</think>[ \t]*\n+", re.DOTALL | re.MULTILINE)


class ChatDecoder:
    """Collects one answer. `taken` are the call ids that the conversation already has."""

    def __init__(self, provider: str, taken: set[str]) -> None:
        self._provider = provider
        self._taken = taken
        self._id = ""
        self._splitter = ThinkSplitter()
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._calls: list[CallDraft] = []
        self._call_at: dict[int, int] = {}
        self._finish_reason = ""
        self._usage: dict[str, Any] = {}
        self._done = False

    @property
    def ended(self) -> bool:
        """Whether the end mark came after something was said."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether a finish reason came; some servers send no end mark after it."""
        return bool(self._finish_reason) or self._done

    def feed(self, event: ServerEvent) -> list[StreamPart]:
        """Take one chunk and return what it adds. Raises `ModelError`."""
        data = event.data.strip()
        if data == b"[DONE]":
            return self._end()
        chunk = json_access.decode_object(data)
        if chunk is None:
            raise UnreadableEventError(self._provider, event)
        if chunk.get("error") or event.name == "error":
            self._fail(chunk)
        self._id = self._id or as_text(chunk.get("id"))
        usage = as_dict(chunk.get("usage")) or as_dict(as_dict(chunk.get("x_groq")).get("usage"))
        if usage:
            self._usage = usage
        parts: list[StreamPart] = []
        for value in as_list(chunk.get("choices"))[:1]:
            choice = as_dict(value)
            if choice.get("error"):
                self._fail(choice)
            usage = as_dict(choice.get("usage"))
            if usage:
                self._usage = usage
            parts += self._take_delta(as_dict(choice.get("delta")) or as_dict(choice.get("message")))
            reason = as_text(choice.get("finish_reason"))
            if reason:
                self._finish_reason = reason
        return parts

    def finish(self) -> Answer:
        """Return the whole answer. Raises `ModelError` when the server ended it with an error."""
        if self._finish_reason in {"error", "network_error"}:
            raise ModelError("server", f"{self._provider} ended the answer with an error")
        stop_reason = STOP_REASONS.get(self._finish_reason, "other" if self._finish_reason else "end_turn")
        if self._calls and stop_reason in {"end_turn", "other"}:
            stop_reason = "tool_use"
        elif not self._calls and stop_reason == "tool_use":
            stop_reason = "end_turn"
        usage = self._normal_usage()
        return Answer(self._parts(tokens_at_cut(stop_reason, usage)), stop_reason, usage, self._id)

    def _end(self) -> list[StreamPart]:
        self._done = self.complete or bool(self._text or self._calls)
        return self._split("", last=True)

    def _fail(self, value: dict[str, Any]) -> None:
        from tenuto.model.errors import classify_object

        raise classify_object(self._provider, value)

    def _take_delta(self, delta: dict[str, Any]) -> list[StreamPart]:
        parts: list[StreamPart] = []
        thinking = self._take_reasoning(delta)
        if thinking:
            self._thinking.append(thinking)
            parts.append(ThinkingDelta(thinking))
        content = delta.get("content")
        if isinstance(content, list):
            content = "".join(as_text(as_dict(item).get("text")) for item in as_list(content))
        text = as_text(content) + as_text(delta.get("refusal"))
        if text:
            parts += self._split(text)
        for value in as_list(delta.get("tool_calls")):
            parts.append(self._take_call(as_dict(value)))
        return parts

    def _split(self, text: str, *, last: bool = False) -> list[StreamPart]:
        """Sort text into answer and `<think>`."""
        thinking, answer = self._splitter.flush() if last else self._splitter.feed(text)
        parts: list[StreamPart] = []
        if thinking:
            self._thinking.append(thinking)
            parts.append(ThinkingDelta(thinking))
        if answer:
            self._text.append(answer)
            parts.append(TextDelta(answer))
        return parts

    def _take_reasoning(self, delta: dict[str, Any]) -> str:
        details = as_list(delta.get("reasoning_details"))
        for value in details:
            merge_detail(self._details, as_dict(value))
        for name in ("reasoning_content", "reasoning"):
            text = as_text(delta.get(name))
            if text:
                self._reasoning_field = self._reasoning_field or name
                return text
        return "".join(as_text(as_dict(value).get("text")) for value in details)

    def _take_call(self, value: dict[str, Any]) -> ToolCallDelta:
        function = as_dict(value.get("function"))
        call_id, name = as_text(value.get("id")), as_text(function.get("name"))
        arguments = function.get("arguments")
        fragment = json_access.encode(arguments).decode() if isinstance(arguments, dict) else as_text(arguments)
        place = self._place_of(value.get("index"), call_id, name)
        draft = self._calls[place]
        draft.id = draft.id or call_id
        draft.name = draft.name or name
        if fragment:
            draft.fragments.append(fragment)
        return ToolCallDelta(place, draft.name, fragment)

    def _place_of(self, index: Any, call_id: str, name: str) -> int:
        """Return which call a fragment belongs to; servers leave out or repeat the index."""
        known = self._call_at.get(index) if isinstance(index, int) else (len(self._calls) - 1 if self._calls else None)
        if known is not None:
            draft = self._calls[known]
            other_id = bool(call_id and draft.id and call_id != draft.id)
            begins_again = bool(name and not call_id and draft.name and draft.fragments)
            if not other_id and not begins_again:
                return known
        self._calls.append(CallDraft())
        if isinstance(index, int):
            self._call_at[index] = len(self._calls) - 1
        return len(self._calls) - 1

    def _parts(self, cut_at: int | None) -> tuple[AssistantPart, ...]:
        self._split("", last=True)
        text, thinking = "".join(self._text), "".join(self._thinking)
        orphan = None if thinking or "<think>" in text else _ORPHAN_CLOSE.match(text)
        if orphan:
            thinking, text = orphan["thinking"].strip(), text[orphan.end() :]
        parts: list[AssistantPart] = []
        block = self._thinking_block(thinking)
        if thinking or block:
            raw = msgspec.Raw(block) if block else NO_BLOCK
            parts.append(ThinkingPart(text=thinking.strip("\n"), provider=self._provider, block=raw))
        if text and not text.isspace():  # `strip` would copy an answer of megabytes
            parts.append(TextPart(text=text))
        last = len(self._calls) - 1
        for place, draft in enumerate(self._calls):
            parts.append(finish_call(draft, self._taken, cut_at=cut_at if place == last else None))
        return tuple(parts)

    def _thinking_block(self, thinking: str) -> bytes:
        """Return the fields of the message that carry the reasoning back; empty when the server wants none.

        OpenRouter wants its details unchanged. `reasoning_content` goes back only with tool calls: the models that
        refuse it have no tools, the newer ones need it inside a tool loop (anchors A3.2).
        """
        if self._details:
            return json_access.encode({"reasoning_details": self._details})
        if thinking and self._reasoning_field == "reasoning_content" and self._calls:
            return json_access.encode({"reasoning_content": thinking})
        return b""

    def _normal_usage(self) -> Usage | None:
        usage = self._usage
        if not usage:
            return None
        details = as_dict(usage.get("prompt_tokens_details"))
        cached = as_count(details.get("cached_tokens")) or as_count(usage.get("prompt_cache_hit_tokens"))
        cached = cached or as_count(usage.get("cached_tokens"))
        written = as_count(details.get("cache_write_tokens"))
        output = as_count(usage.get("completion_tokens"))
        reasoning = as_count(as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens"))
        sent_back = bool(self._thinking_block("".join(self._thinking)))
        return Usage(
            input=max(0, as_count(usage.get("prompt_tokens")) - cached - written),
            cache_read=cached,
            cache_write=written,
            output=output,
            reasoning=min(reasoning, output),
            unsent_reasoning=0 if sent_back else min(reasoning, output),
        )


def merge_detail(details: list[dict[str, Any]], new: dict[str, Any]) -> None:
    """Add a fragment of OpenRouter's `reasoning_details`: texts grow, everything else is the newest."""
    last = details[-1] if details else None
    same = last is not None and (last.get("type"), last.get("index")) == (new.get("type"), new.get("index"))
    if last is None or not same:
        details.append(dict(new))
        return
    for key, value in new.items():
        if key in {"text", "summary", "data"} and isinstance(value, str):
            last[key] = as_text(last.get(key)) + value
        elif value is not None:
            last[key] = value
