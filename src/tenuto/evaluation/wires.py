"""The three protocols from a model's side: what a request says, and an answer as the bytes of a stream. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from tenuto.protocol.message import StopReason
from tenuto.text.json_access import as_count, as_dict, as_list, decode_object

_UNREAD = frozenset({"type", "role", "id", "call_id", "tool_use_id", "tool_call_id", "signature", "cache_control"})
_RESULT_IDS = {"anthropic": "tool_use_id", "openai": "call_id", "openai-chat": "tool_call_id"}
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_CHAT_STOPS = {"tool_use": "tool_calls", "refusal": "content_filter"}


Wire = Literal["anthropic", "openai", "openai-chat"]
"""The protocols that the scripted model speaks."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call in an answer."""

    id: str
    name: str
    arguments: dict[str, Any]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: a text, then calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    refused: bool = False

    @property
    def stop(self) -> StopReason:
        """Why it ends."""
        if self.refused:
            return "refusal"
        return "tool_use" if self.calls else "end_turn"


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a prompt without what the cache had, of what it had, and of the answer."""

    fresh: int
    cached: int
    output: int

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both."""
        return Usage(self.fresh + other.fresh, self.cached + other.cached, self.output + other.output)


NOTHING = Usage(0, 0, 0)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says. `items` are tools, system text and messages in the order of the prefix cache.

    `texts` are all texts that the model reads of the conversation, in order; `results` the tool results by their call's
    id; `asked` the output limit in tokens.
    """

    items: tuple[str, ...]
    texts: tuple[str, ...]
    results: dict[str, str]
    last_user: str
    has_tools: bool
    asked: int
    asks_compaction: bool = False
    """Whether the provider is to compact by itself, which the scripted one cannot."""


def read_request(kind: Wire, body: bytes) -> Request:
    """Read a request's body."""
    value = decode_object(body)
    if value is None:
        raise ValueError("the body of a request is no JSON object")
    tools = as_list(value.get("tools"))
    system: Any = value.get("system") or value.get("instructions")
    messages = as_list(value.get("messages") or value.get("input"))
    parts = [system] if isinstance(system, str) else as_list(system)
    read = _Reader(_RESULT_IDS[kind])
    for part in (*parts, *messages):
        read.value(part)
    users = [message for message in messages if as_dict(message).get("role") == "user"]
    return Request(
        items=tuple(_canonical(item) for item in (*tools, *parts, *_blocks(messages))),
        texts=tuple(read.texts),
        results=read.results,
        last_user="\n".join(_texts(users[-1])) if users else "",
        has_tools=bool(tools),
        asks_compaction=any("compact" in name for name in value) or _is_trigger(messages),
        asked=max(as_count(value.get(name)) for name in _OUTPUT_LIMITS),
    )


def _is_trigger(messages: Sequence[Any]) -> bool:
    return bool(messages) and "compact" in str(as_dict(messages[-1]).get("type"))


class _Reader:
    """Collects the texts of JSON values."""

    def __init__(self, result_id: str) -> None:
        self.texts: list[str] = []
        self.results: dict[str, str] = {}
        self._result_id = result_id

    def value(self, value: Any) -> None:
        """Take every text in a value, calls' arguments decoded."""
        if isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, list):
            for inner in as_list(value):
                self.value(inner)
        elif isinstance(value, dict):
            self._object(as_dict(value))

    def _object(self, value: dict[str, Any]) -> None:
        result = value.get(self._result_id)
        if isinstance(result, str) and "arguments" not in value:
            self.results[result] = "\n".join(_texts(value.get("content", value.get("output"))))
        for key, inner in value.items():
            if key == "arguments" and isinstance(inner, str):
                self.value(decode_object(inner) or inner)
            elif key not in _UNREAD:
                self.value(inner)


def _texts(value: Any) -> list[str]:
    reader = _Reader("")
    reader.value(value)
    return reader.texts


def _blocks(messages: Sequence[Any]) -> Iterator[Any]:
    """Yield the blocks of messages, each with its role: that is how far caches see."""
    for message in messages:
        content = as_dict(message).get("content")
        if isinstance(content, list):
            for block in as_list(content):
                yield {**as_dict(message), "content": [block]}
        else:
            yield message


def _canonical(value: Any) -> str:
    """Return a value as JSON without cache marks."""
    return json.dumps(_without_marks(value), ensure_ascii=False, separators=(",", ":"))


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in as_dict(value).items() if key != "cache_control"}
    if isinstance(value, list):
        return [_without_marks(inner) for inner in as_list(value)]
    return value


def too_long(kind: Wire, size: int, window: int) -> str:
    """Return what a provider says of a request of `size` tokens over its window, as its error's body."""
    if kind == "anthropic":
        error = {"type": "invalid_request_error", "message": f"prompt is too long: {size} tokens > {window} maximum"}
        return json.dumps({"type": "error", "error": error})
    if kind == "openai":
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    else:
        text = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens."
            " Please reduce the length of the messages."
        )
    return refusal(kind, text, "context_length_exceeded")


def refusal(kind: Wire, text: str, code: str | None = None) -> str:
    """Return the body of a 400 that says `text`."""
    error: dict[str, Any] = {"type": "invalid_request_error", "message": text}
    if kind == "anthropic":
        return json.dumps({"type": "error", "error": error})
    return json.dumps({"error": {**error, "param": None, "code": code}})


def stream(kind: Wire, reply: Reply, usage: Usage, number: int) -> Iterator[bytes]:
    """Yield an answer as its stream; `number` is the request's."""
    match kind:
        case "anthropic":
            yield from _anthropic(reply, usage, number)
        case "openai":
            yield from _responses(reply, usage, number)
        case "openai-chat":
            yield from _chat(reply, usage, number)


def _event(name: str, fields: dict[str, Any]) -> bytes:
    data = json.dumps({"type": name, **fields}, ensure_ascii=False)
    return f"event: {name}\ndata: {data}\n\n".encode()


def _anthropic(reply: Reply, usage: Usage, number: int) -> Iterator[bytes]:
    counted = {"input_tokens": usage.fresh, "cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": 0}
    head: dict[str, Any] = {
        "id": f"msg_{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
    }
    ends = {"stop_reason": None, "stop_sequence": None}
    yield _event("message_start", {"message": {**head, **ends, "usage": {**counted, "output_tokens": 1}}})
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}))
    for call in reply.calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        begun: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((begun, {"type": "input_json_delta", "partial_json": arguments}))
    for index, (begun, delta) in enumerate(blocks):
        yield _event("content_block_start", {"index": index, "content_block": begun})
        yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    delta = {"stop_reason": reply.stop, "stop_sequence": None}
    yield _event("message_delta", {"delta": delta, "usage": {**counted, "output_tokens": usage.output}})
    yield _event("message_stop", {})


def _responses(reply: Reply, usage: Usage, number: int) -> Iterator[bytes]:
    output: list[dict[str, Any]] = []
    if reply.text:
        said: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
        content = {"type": "refusal", "refusal": reply.text} if reply.refused else said
        message = {"id": f"msg_{number:06d}", "type": "message", "role": "assistant", "status": "completed"}
        output.append({**message, "content": [content]})
    for place, call in enumerate(reply.calls):
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        item = {"id": f"fc_{number:06d}{place:02d}", "type": "function_call", "status": "completed"}
        output.append({**item, "call_id": call.id, "name": call.name, "arguments": arguments})
    response = {"id": f"resp_{number:06d}", "object": "response", "model": "scripted", "error": None}
    yield _event("response.created", {"response": {**response, "status": "in_progress", "output": []}})
    for index, item in enumerate(output):
        yield _event("response.output_item.added", {"output_index": index, "item": _begun(item)})
        if item["type"] == "message":
            name = "response.refusal.delta" if reply.refused else "response.output_text.delta"
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            yield _event(name, {**place, "delta": reply.text})
        yield _event("response.output_item.done", {"output_index": index, "item": item})
    counted = {
        "input_tokens": usage.fresh + usage.cached,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "total_tokens": usage.fresh + usage.cached + usage.output,
    }
    whole = {**response, "status": "completed", "output": output, "usage": counted}
    yield _event("response.completed", {"response": whole})


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
    return {**item, **empty, "status": "in_progress"}


def _chat(reply: Reply, usage: Usage, number: int) -> Iterator[bytes]:
    base: dict[str, Any] = {"id": f"chatcmpl-{number:06d}", "object": "chat.completion.chunk", "model": "scripted"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": reply.text})
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
        yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
    yield chunk({}, _CHAT_STOPS.get(reply.stop, "stop"))
    prompt = usage.fresh + usage.cached
    counted = {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
    yield _data({**base, "choices": [], "usage": counted})
    yield b"data: [DONE]\n\n"


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
