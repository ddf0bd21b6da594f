"""OpenAI Responses: the conversation in normal form, the events of an answer, the shape of its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.server.item import Item, canonical, count_images, slices, texts_of, wire_json
from tests.server.openai_compaction import (
    compaction_item,
    input_items,
    is_over_threshold,
    is_triggered,
    without_compacted,
)
from tests.server.options import Options
from tests.server.reply import Call, Reply, StreamError, Tokens
from tests.server.web_search import annotations, search_events, search_items

ERROR_TYPES = {401: "invalid_request_error", 403: "permission_error", 429: "rate_limit_error"}
ENCRYPTED = "gAAAAA-test-"


def items(body: dict[str, Any]) -> list[Item]:
    """Return the conversation in normal form."""
    names: dict[str, str] = {}
    found = [Item("system", text=body["instructions"])] if body.get("instructions") else []
    return found + [_item(item, names) for item in input_items(body)]


def _item(item: dict[str, Any], names: dict[str, str]) -> Item:
    match item.get("type", "message"):
        case "function_call":
            names[item["call_id"]] = item["name"]
            return Item("call", call_id=item["call_id"], name=item["name"], arguments=item["arguments"])
        case "custom_tool_call":
            names[item["call_id"]] = item["name"]
            return Item("call", call_id=item["call_id"], name=item["name"], arguments=item["input"])
        case "function_call_output" | "custom_tool_call_output":
            name = names.get(item["call_id"], "")
            output = item["output"]
            return Item(
                "result", text=texts_of(output), call_id=item["call_id"], name=name, images=count_images(output)
            )
        case "reasoning":
            return Item("thinking", text=texts_of(item.get("summary")))
        case "message":
            role = "system" if item["role"] == "developer" else item["role"]
            return Item(role, text=texts_of(item["content"]), images=count_images(item["content"]))
        case _:
            return Item("system", text=json.dumps(item))


def prefix_items(body: dict[str, Any]) -> list[str]:
    """Return tools, instructions and input items as the prefix cache sees them."""
    found = [canonical(tool) for tool in body.get("tools") or []]
    if body.get("instructions"):
        found.append(canonical(body["instructions"]))
    return found + [canonical(item) for item in input_items(body)]


def rendered_items(body: dict[str, Any]) -> list[str]:
    """Return what of it the model reads."""
    return prefix_items({**body, "input": without_compacted(input_items(body))})


def output_items(reply: Reply, body: dict[str, Any], number: int, options: Options) -> list[dict[str, Any]]:
    """Return the finished output items of an answer."""
    found: list[dict[str, Any]] = []
    if is_triggered(body):
        return [compaction_item(reply.text, body, number, options)] if reply.text else []
    if is_over_threshold(body, options.counter.prompt(rendered_items(body))):
        found.append(compaction_item(f"compacted before answer {number}", body, number, options))
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        secret = f"{ENCRYPTED}{number:06d}"
        found.append({"id": f"rs_{number:06d}", "type": "reasoning", "summary": summary, "encrypted_content": secret})
    found += search_items(reply, body, number)
    if reply.text:
        refused = {"type": "refusal", "refusal": reply.text}
        said = {"type": "output_text", "text": reply.text, "annotations": annotations(reply), "logprobs": []}
        content = [refused if reply.stop_reason == "refusal" else said]
        phase = "commentary" if reply.tool_calls else "final_answer"
        message = {"id": f"msg_{number:06d}", "type": "message", "role": "assistant", "status": "completed"}
        found.append({**message, "phase": phase, "content": content})
    for place, call in enumerate(reply.tool_calls):
        call_id = call.id or f"call_{number:04d}{place:02d}"
        if call.name in custom_tools(body):
            item = {"id": f"ctc_{number:04d}{place:02d}", "type": "custom_tool_call", "status": "completed"}
            found.append({**item, "call_id": call_id, "name": call.name, "input": freeform_text(call)})
            continue
        item = {"id": f"fc_{number:04d}{place:02d}", "type": "function_call", "status": "completed"}
        found.append({**item, "call_id": call_id, "name": call.name, "arguments": call.arguments})
    return found


def custom_tools(body: dict[str, Any]) -> set[str]:
    """Return the names of the tools that take one text."""
    return {tool["name"] for tool in body.get("tools") or [] if tool["type"] == "custom"}


def freeform_text(call: Call) -> str:
    """Return what a call gives to a tool that takes one text: a text as it is, of an object its `input`."""
    return call.args if isinstance(call.args, str) else str(call.args.get("input", ""))


def usage_object(tokens: Tokens) -> dict[str, Any]:
    """Return a usage as this API counts: input with what the cache read."""
    total_input = tokens.input + tokens.cache_read + tokens.cache_write
    details = {"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write}
    return {
        "input_tokens": total_input,
        "input_tokens_details": details,
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": total_input + tokens.output,
    }


def response_object(body: dict[str, Any], number: int, status: str) -> dict[str, Any]:
    """Return the response without output."""
    return {
        "id": f"resp_{number:06d}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": {},
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
    }


class _Numbered:
    """Makes events with their sequence numbers."""

    def __init__(self) -> None:
        self.next = 0

    def event(self, name: str, /, **fields: Any) -> bytes:
        """Return one event of the stream."""
        data = wire_json({"type": name, "sequence_number": self.next, **fields})
        self.next += 1
        return f"event: {name}\ndata: {data}\n\n".encode()


def whole(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> dict[str, Any]:
    """Return the answer as one object; the stream ends with the same."""
    reasons = {"max_tokens": "max_output_tokens", "window_exceeded": "max_output_tokens"}
    reason = reply.reason or reasons.get(reply.stop_reason)
    response = response_object(body, number, "incomplete" if reason else "completed")
    response["incomplete_details"] = {"reason": reason} if reason else None
    response["output"] = output_items(reply, body, number, options)
    response["usage"] = usage_object(tokens)
    return response


def events(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> Iterator[bytes]:
    """Yield the events of an answer."""
    stream = _Numbered()
    yield stream.event("response.created", response=response_object(body, number, "in_progress"))
    yield stream.event("response.in_progress", response=response_object(body, number, "in_progress"))
    for index, item in enumerate(output_items(reply, body, number, options)):
        match item["type"]:
            case "compaction":
                yield from _compaction_events(stream, index, item)
            case "reasoning":
                yield from _reasoning_events(stream, index, item, reply.chunk_size)
            case "message":
                yield from _message_events(stream, index, item, reply.chunk_size)
            case "web_search_call":
                yield from search_events(stream, index, item)
            case "custom_tool_call":
                yield from _freeform_events(stream, index, item, reply.chunk_size)
            case _:
                yield from _call_events(stream, index, item, reply.chunk_size)
    response = whole(reply, body, tokens, number, options)
    yield stream.event(f"response.{response['status']}", response=response)


def _compaction_events(stream: _Numbered, index: int, item: dict[str, Any]) -> Iterator[bytes]:
    yield stream.event("response.output_item.added", output_index=index, item={**item, "encrypted_content": ""})
    yield stream.event("response.compaction.compacting", output_index=index, item_id=item["id"])
    yield stream.event("response.output_item.done", output_index=index, item=item)


def _reasoning_events(stream: _Numbered, index: int, item: dict[str, Any], size: int) -> Iterator[bytes]:
    begun = {**item, "summary": [], "encrypted_content": ""}
    yield stream.event("response.output_item.added", output_index=index, item=begun)
    place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    part = item["summary"][0]
    yield stream.event("response.reasoning_summary_part.added", **place, part={**part, "text": ""})
    for piece in slices(part["text"], size):
        yield stream.event("response.reasoning_summary_text.delta", **place, delta=piece)
    yield stream.event("response.reasoning_summary_text.done", **place, text=part["text"])
    yield stream.event("response.reasoning_summary_part.done", **place, part=part)
    yield stream.event("response.output_item.done", output_index=index, item=item)


def _message_events(stream: _Numbered, index: int, item: dict[str, Any], size: int) -> Iterator[bytes]:
    begun = {**item, "content": [], "status": "in_progress"}
    yield stream.event("response.output_item.added", output_index=index, item=begun)
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    field = "refusal" if part["type"] == "refusal" else "text"
    name = "response.refusal" if field == "refusal" else "response.output_text"
    no_notes = {"annotations": []} if "annotations" in part else {}
    extra = {} if field == "refusal" else {"logprobs": []}
    yield stream.event("response.content_part.added", **place, part={**part, field: "", **no_notes})
    for piece in slices(part[field], size):
        yield stream.event(f"{name}.delta", **place, delta=piece, **extra)
    for number, note in enumerate(part.get("annotations", [])):
        yield stream.event("response.output_text.annotation.added", **place, annotation_index=number, annotation=note)
    yield stream.event(f"{name}.done", **place, **{field: part[field]}, **extra)
    yield stream.event("response.content_part.done", **place, part=part)
    yield stream.event("response.output_item.done", output_index=index, item=item)


def _call_events(stream: _Numbered, index: int, item: dict[str, Any], size: int) -> Iterator[bytes]:
    begun = {**item, "arguments": "", "status": "in_progress"}
    yield stream.event("response.output_item.added", output_index=index, item=begun)
    place = {"item_id": item["id"], "output_index": index}
    for piece in slices(item["arguments"], size):
        yield stream.event("response.function_call_arguments.delta", **place, delta=piece)
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield stream.event("response.function_call_arguments.done", **place, **done)
    yield stream.event("response.output_item.done", output_index=index, item=item)


def _freeform_events(stream: _Numbered, index: int, item: dict[str, Any], size: int) -> Iterator[bytes]:
    begun = {**item, "input": "", "status": "in_progress"}
    yield stream.event("response.output_item.added", output_index=index, item=begun)
    place = {"item_id": item["id"], "output_index": index}
    for piece in slices(item["input"], size):
        yield stream.event("response.custom_tool_call_input.delta", **place, delta=piece)
    yield stream.event("response.custom_tool_call_input.done", **place, input=item["input"])
    yield stream.event("response.output_item.done", output_index=index, item=item)


def stream_error(failure: StreamError, body: dict[str, Any], number: int) -> bytes:
    """Return an error inside a stream, in one of its three shapes."""
    error = failure.error
    if isinstance(error, str):
        error = {"code": error, "message": MESSAGES.get(error, error.replace("_", " "))}
    stream = _Numbered()
    stream.next = failure.after_events
    match failure.shape:
        case "failed":
            response = {**response_object(body, number, "failed"), "error": error}
            return stream.event("response.failed", response=response)
        case "error":
            return stream.event("error", error={"type": "server_error", "param": None, **error})
        case "flat":
            return stream.event("error", param=None, **error)


MESSAGES = {
    "context_length_exceeded": "Your input exceeds the context window of this model. "
    "Please adjust your input and try again.",
    "server_error": "The server had an error processing your request. Sorry about that!",
    "overloaded_error": "Our servers are currently overloaded. Please try again later.",
    "rate_limit_exceeded": "Rate limit reached for test. Please try again in 1.2s.",
}


def error_object(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return the body of an HTTP error."""
    kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
