"""Anthropic Messages: the conversation in normal form, the events of an answer, the shape of its errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.server.anthropic_compaction import cleared, compaction_block, compaction_events
from tests.server.item import Item, canonical, count_images, slices, texts_of, wire_json
from tests.server.options import Options
from tests.server.reply import Reply, StreamError, Tokens
from tests.server.web_search import cited_block, search_blocks, usage_of

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STOPS = {"window_exceeded": "model_context_window_exceeded", "pause": "pause_turn"}


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """Return the content as blocks; a string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def items(body: dict[str, Any]) -> list[Item]:
    """Return the conversation in normal form."""
    names: dict[str, str] = {}
    found = [Item("system", text=block.get("text", "")) for block in blocks_of(body.get("system") or [])]
    for message in body.get("messages", []):
        found += [_item(message["role"], block, names) for block in blocks_of(message["content"])]
    return found


def _item(role: str, block: dict[str, Any], names: dict[str, str]) -> Item:
    match block.get("type"):
        case "tool_use":
            names[block["id"]] = block["name"]
            arguments = json.dumps(block["input"], ensure_ascii=False)
            return Item("call", call_id=block["id"], name=block["name"], arguments=arguments)
        case "tool_result":
            content = block.get("content", "")
            call_id = block["tool_use_id"]
            name, failed = names.get(call_id, ""), bool(block.get("is_error"))
            text, images = texts_of(content), count_images(content)
            return Item("result", text=text, call_id=call_id, name=name, is_error=failed, images=images)
        case "thinking" | "redacted_thinking":
            return Item("thinking", text=block.get("thinking", ""))
        case "compaction":
            return Item(role, text=block.get("content") or "")  # pyright: ignore[reportArgumentType]
        case "image":
            return Item(role, images=1)  # pyright: ignore[reportArgumentType]
        case _:
            return Item(role, text=block.get("text", ""))  # pyright: ignore[reportArgumentType]


def prefix_items(body: dict[str, Any]) -> list[str]:
    """Return tools, system blocks and message blocks as the prefix cache sees them."""
    found = [canonical(tool) for tool in body.get("tools") or []]
    found += [canonical(block) for block in blocks_of(body.get("system") or [])]
    for message in body.get("messages", []):
        found += [message["role"] + canonical(block) for block in blocks_of(message["content"])]
    return found


def rendered_items(body: dict[str, Any]) -> list[str]:
    """Return what of it the model reads."""
    return prefix_items(cleared(body)[0])


def prefix_digests(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """Yield `(where, thinking block, digest of what stands before it, signature of the thinking before it)`.

    Thinking itself is not in the digest: it may be dropped from the start, or all of it. The last item yielded is
    for the answer to come, with an empty block.
    """
    running = hashlib.sha256()
    for tool in body.get("tools") or []:
        running.update(canonical(tool).encode("utf-8", "replace"))
    for block in blocks_of(body.get("system") or []):
        running.update(canonical(block).encode("utf-8", "replace"))
    previous = ""
    for place, message in enumerate(body.get("messages", [])):
        for position, block in enumerate(blocks_of(message["content"])):
            if block.get("type") == "thinking":
                yield f"messages.{place}.content.{position}", block, running.hexdigest()[:24], previous
                previous = hashlib.sha256(block.get("signature", "").encode()).hexdigest()[:12]
            else:
                running.update((message["role"] + canonical(block)).encode("utf-8", "replace"))
    yield "", {}, running.hexdigest()[:24], previous


def sign(model: str, digest: str, previous: str, thinking: str) -> str:
    """Return the signature of a thinking block in its place."""
    said = hashlib.sha256(thinking.encode()).hexdigest()[:12]
    return f"{hashlib.sha256(model.encode()).hexdigest()[:8]}.{digest}.{previous or '-'}.{said}"


def event(name: str, /, **fields: Any) -> bytes:
    """Return one event of the stream."""
    data = wire_json({"type": name, **fields})
    return f"event: {name}\ndata: {data}\n\n".encode()


def usage_object(tokens: Tokens, output: int) -> dict[str, Any]:
    """Return a usage as this API counts: input without what the cache read or wrote."""
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning},
        "service_tier": "standard",
    }


def content_blocks(reply: Reply, body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the finished blocks of an answer; a thinking block is signed for its place."""
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        *_, (_, _, digest, previous) = prefix_digests(body)
        signature = sign(body["model"], digest, previous, reply.thinking)
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    blocks += search_blocks(reply, number)
    if reply.text:
        blocks.append(cited_block(reply))
    for place, call in enumerate(reply.tool_calls):
        call_id = call.id or f"toolu_{number:04d}{place:02d}"
        blocks.append({"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments})
    return blocks


def message_object(body: dict[str, Any], tokens: Tokens, number: int) -> dict[str, Any]:
    """Return the message as it starts."""
    return {
        "id": f"msg_{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage_object(tokens, 1),
    }


def events(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> Iterator[bytes]:
    """Yield the events of an answer."""
    if body.get("compaction"):
        yield from _compaction(reply, body, tokens, number, options)
        return
    yield event("message_start", message=message_object(body, tokens, number))
    for index, block in enumerate(content_blocks(reply, body, number)):
        yield from _block_events(index, block, reply.chunk_size)
    stop = reply.reason or STOPS.get(reply.stop_reason, reply.stop_reason)
    details = {"type": "refusal", "category": "general_harms", "explanation": None} if stop == "refusal" else None
    delta = {"stop_reason": stop, "stop_sequence": None, "stop_details": details}
    usage = {**usage_object(tokens, tokens.output), **usage_of(reply)}
    yield event("message_delta", delta=delta, usage=usage, **_edits(body))
    yield event("message_stop")


def _edits(body: dict[str, Any]) -> dict[str, Any]:
    """Return what the server tells of the edits that it applied, if it was asked for any."""
    if "context_management" not in body:
        return {}
    edit = cleared(body)[1]
    return {"context_management": {"applied_edits": [edit] if edit else []}}


def _compaction(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> Iterator[bytes]:
    """Yield the one block that a compaction is, or nothing but the reason; its cost is named apart from the totals."""
    block = compaction_block(reply, body, options)
    yield event("message_start", message=message_object(body, Tokens(), number))
    yield from compaction_events(event, block)
    reason = reply.reason or STOPS.get(reply.stop_reason, reply.stop_reason)
    delta = {"stop_reason": "compaction" if block else reason, "stop_sequence": None, "stop_details": None}
    yield event("message_delta", delta=delta, usage=_compaction_usage(tokens))
    yield event("message_stop")


def _compaction_usage(tokens: Tokens) -> dict[str, Any]:
    iteration = {"type": "compaction", **usage_object(tokens, tokens.output)}
    return {**usage_object(Tokens(), 0), "iterations": [iteration]}


def _block_events(index: int, block: dict[str, Any], size: int) -> Iterator[bytes]:
    match block["type"]:
        case "thinking":
            yield event(
                "content_block_start", index=index, content_block={"type": "thinking", "thinking": "", "signature": ""}
            )
            for piece in slices(block["thinking"], size):
                yield event("content_block_delta", index=index, delta={"type": "thinking_delta", "thinking": piece})
            signature = {"type": "signature_delta", "signature": block["signature"]}
            yield event("content_block_delta", index=index, delta=signature)
        case "text":
            cited = block.get("citations", [])
            begun = {"type": "text", "text": "", **({"citations": []} if cited else {})}
            yield event("content_block_start", index=index, content_block=begun)
            if index == 0:
                yield event("ping")
            for piece in slices(block["text"], size):
                yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
            for citation in cited:
                delta = {"type": "citations_delta", "citation": citation}
                yield event("content_block_delta", index=index, delta=delta)
        case "web_search_tool_result":
            yield event("content_block_start", index=index, content_block=block)
        case _:
            yield event("content_block_start", index=index, content_block={**block, "input": {}})
            for piece in ["", *slices(block["input"], size)]:
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield event("content_block_delta", index=index, delta=delta)
    yield event("content_block_stop", index=index)


def whole(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> dict[str, Any]:
    """Return the answer as one object (`stream` not set)."""
    if body.get("compaction"):
        block = compaction_block(reply, body, options)
        reason = "compaction" if block else reply.reason or STOPS.get(reply.stop_reason, reply.stop_reason)
        content = [block] if block else []
        usage = _compaction_usage(tokens)
        return {**message_object(body, Tokens(), number), "content": content, "stop_reason": reason, "usage": usage}
    blocks = content_blocks(reply, body, number)
    for block in blocks:
        if block["type"] in ("tool_use", "server_tool_use"):
            block["input"] = json.loads(block["input"] or "{}")
    stop = reply.reason or STOPS.get(reply.stop_reason, reply.stop_reason)
    usage = {**usage_object(tokens, tokens.output), **usage_of(reply)}
    message = {**message_object(body, tokens, number), "content": blocks, "stop_reason": stop, "usage": usage}
    return {**message, **_edits(body)}


def stream_error(failure: StreamError, body: dict[str, Any], number: int) -> bytes:
    """Return an error inside a stream."""
    del body, number
    error = failure.error
    if isinstance(error, str):
        message = "Overloaded" if error == "overloaded_error" else error.replace("_", " ")
        error = {"type": error, "message": message}
    return event("error", error=error)


def error_object(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return the body of an HTTP error."""
    del param
    kind = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    details = {"details": {"error_code": code}} if code else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "req_test"}
