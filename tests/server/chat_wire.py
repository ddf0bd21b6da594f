"""Chat Completions: the conversation in normal form, the chunks of an answer, the shape of its errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.server.item import Item, canonical, count_images, slices, texts_of, wire_json
from tests.server.options import Options
from tests.server.reply import Reply, StreamError, Tokens
from tests.server.responses_wire import MESSAGES, error_object

__all__ = ["error_object", "events", "items", "prefix_items", "stream_error", "whole"]

FINISHES = {"tool_use": "tool_calls", "max_tokens": "length", "window_exceeded": "length", "refusal": "content_filter"}


def items(body: dict[str, Any]) -> list[Item]:
    """Return the conversation in normal form."""
    names: dict[str, str] = {}
    found: list[Item] = []
    for message in body.get("messages", []):
        content, role = message.get("content"), message["role"]
        text, images = texts_of(content), count_images(content)
        if role == "tool":
            call_id = message["tool_call_id"]
            found.append(Item("result", text=text, call_id=call_id, name=names.get(call_id, ""), images=images))
        elif role == "assistant":
            found += _assistant(message, text, names)
        else:
            found.append(Item("system" if role == "developer" else role, text=text, images=images))
    return found


def _assistant(message: dict[str, Any], text: str, names: dict[str, str]) -> list[Item]:
    thinking = message.get("reasoning_content") or message.get("reasoning")
    found = [Item("thinking", text=str(thinking))] if thinking else []
    found += [Item("assistant", text=text)] if text else []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        names[call["id"]] = function["name"]
        found.append(Item("call", call_id=call["id"], name=function["name"], arguments=function["arguments"]))
    return found


def prefix_items(body: dict[str, Any]) -> list[str]:
    """Return tools and messages as the prefix cache sees them."""
    return [canonical(tool) for tool in body.get("tools") or []] + [canonical(m) for m in body.get("messages", [])]


def calls_object(reply: Reply, number: int) -> list[dict[str, Any]]:
    """Return the finished tool calls of an answer."""
    return [
        {
            "id": call.id or f"call_{number:04d}{place:02d}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for place, call in enumerate(reply.tool_calls)
    ]


def usage_object(tokens: Tokens) -> dict[str, Any]:
    """Return a usage as this API counts: prompt with what the cache read."""
    prompt = tokens.input + tokens.cache_read + tokens.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def events(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> Iterator[bytes]:
    """Yield the chunks of an answer, then the end mark."""
    base = {"id": f"chatcmpl-{number:06d}", "object": "chat.completion.chunk", "created": 1_790_000_000}
    base["model"] = body["model"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in slices(reply.thinking, reply.chunk_size):
        yield chunk({options.reasoning_field: piece})
    for piece in slices(reply.text, reply.chunk_size):
        yield chunk({"content": piece})
    for index, call in enumerate(calls_object(reply, number)):
        function = call["function"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for piece in slices(function["arguments"], reply.chunk_size):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, reply.reason or FINISHES.get(reply.stop_reason, "stop"))
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _data({**base, "choices": [], "usage": usage_object(tokens)})
    yield b"data: [DONE]\n\n"


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {wire_json(value)}\n\n".encode()


def whole(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> dict[str, Any]:
    """Return the answer as one object (`stream` not set)."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.thinking:
        message[options.reasoning_field] = reply.thinking
    if reply.tool_calls:
        message["tool_calls"] = calls_object(reply, number)
    finish = reply.reason or FINISHES.get(reply.stop_reason, "stop")
    return {
        "id": f"chatcmpl-{number:06d}",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": usage_object(tokens),
    }


def stream_error(failure: StreamError, body: dict[str, Any], number: int) -> bytes:
    """Return an error inside a stream."""
    del body, number
    error = failure.error
    if isinstance(error, str):
        error = {"message": MESSAGES.get(error, error.replace("_", " ")), "type": error, "code": error}
    return _data({"error": error})
