"""Gemini: the conversation in normal form, the chunks of an answer, the shape of its errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.server.item import Item, canonical, slices, wire_json
from tests.server.options import Options
from tests.server.reply import Reply, StreamError, Tokens

FINISHES = {"max_tokens": "MAX_TOKENS", "window_exceeded": "MAX_TOKENS", "refusal": "SAFETY"}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
ERRORS = {
    "overloaded_error": (503, "The model is overloaded. Please try again later."),
    "context_length_exceeded": (
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
}


def inner(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request that a count is of, or the body itself."""
    return body.get("generateContentRequest", body)


def items(body: dict[str, Any]) -> list[Item]:
    """Return the conversation in normal form."""
    body = inner(body)
    found = [Item("system", text=part["text"]) for part in (body.get("systemInstruction") or {}).get("parts", [])]
    for content in body.get("contents", []):
        for part in content["parts"]:
            found += _item(part, content["role"])
    return found


def _item(part: dict[str, Any], role: str) -> list[Item]:
    if call := part.get("functionCall"):
        return [Item("call", call_id=call.get("id", ""), name=call["name"], arguments=canonical(call.get("args", {})))]
    if result := part.get("functionResponse"):
        response = result["response"]
        text = str(response.get("output", response.get("error", "")))
        return [
            Item("result", text=text, call_id=result.get("id", ""), name=result["name"], is_error="error" in response)
        ]
    kind = "assistant" if role == "model" else "user"
    if "inlineData" in part:
        return [Item(kind, images=1)]
    return [Item(kind, text=part["text"])] if part.get("text") else []


def prefix_items(body: dict[str, Any]) -> list[str]:
    """Return system instruction, tools and parts as the prefix cache sees them."""
    body = inner(body)
    parts = [canonical(part) for part in (body.get("systemInstruction") or {}).get("parts", [])]
    parts += [canonical(tool) for tool in body.get("tools") or []]
    return parts + [
        canonical({content["role"]: part}) for content in body.get("contents", []) for part in content["parts"]
    ]


def signature_of(model: str, part: dict[str, Any]) -> str:
    """Return the signature of a part of an answer: it holds for this part and this model."""
    bare = {key: value for key, value in part.items() if key != "thoughtSignature"}
    if "functionCall" in bare:
        bare = {"functionCall": {key: value for key, value in bare["functionCall"].items() if key != "id"}}
    digest = hashlib.sha256(f"{model} {canonical(bare)}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return f"c2ln{digest}"


def usage_object(tokens: Tokens) -> dict[str, Any]:
    """Return a usage as this API counts: prompt with what the cache read, candidates without thoughts."""
    prompt = tokens.input + tokens.cache_read + tokens.cache_write
    said = max(0, tokens.output - tokens.reasoning)
    return {
        "promptTokenCount": prompt,
        **({"cachedContentTokenCount": tokens.cache_read} if tokens.cache_read else {}),
        "candidatesTokenCount": said,
        **({"thoughtsTokenCount": tokens.reasoning} if tokens.reasoning else {}),
        "totalTokenCount": prompt + tokens.output,
    }


def events(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> Iterator[bytes]:
    """Yield the chunks of an answer. A signature stands on the first call, else on an empty text at the end."""
    del options
    model = body["model"]
    base = {"modelVersion": model, "responseId": f"resp-{number:06d}"}

    def chunk(parts: list[dict[str, Any]], **more: Any) -> bytes:
        content = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        return _data({"candidates": [{"content": content, "index": 0, **more}], "usageMetadata": counted, **base})

    counted = {"promptTokenCount": usage_object(tokens)["promptTokenCount"]}
    for piece in slices(reply.thinking, reply.chunk_size):
        yield chunk([{"text": piece, "thought": True}])
    for piece in slices(reply.text, reply.chunk_size):
        yield chunk([{"text": piece}])
    signed = bool(reply.thinking)
    for place, call in enumerate(reply.tool_calls):
        args = call.args if isinstance(call.args, dict) else _arguments(call.arguments)
        part: dict[str, Any] = {
            "functionCall": {"id": call.id or f"fc{number:04d}{place:02d}", "name": call.name, "args": args}
        }
        if place == 0 and (signed or is_signing(model)):
            part["thoughtSignature"] = signature_of(model, part)
        yield chunk([part])
    last: list[dict[str, Any]] = []
    if signed and not reply.tool_calls and reply.text:
        last = [{"text": "", "thoughtSignature": signature_of(model, {"text": ""})}]
    counted = usage_object(tokens)
    yield chunk(last, finishReason=reply.reason or FINISHES.get(reply.stop_reason, "STOP"))


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}


def is_signing(model: str) -> bool:
    """Whether calls of a model have to come back with a signature."""
    return model.startswith("gemini-3")


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {wire_json(value)}\r\n\r\n".encode()


def error_object(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return an error body."""
    del param
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}] if code else []
    error = {"code": status, "message": message, "status": STATUSES.get(status, "UNKNOWN")}
    return {"error": {**error, **({"details": details} if details else {})}}


def stream_error(failure: StreamError, body: dict[str, Any], number: int) -> bytes:
    """Return an error inside a stream."""
    del body, number
    if isinstance(failure.error, dict):
        return _data({"error": failure.error})
    status, message = ERRORS.get(failure.error, (500, failure.error.replace("_", " ")))
    return _data(error_object(status, message))
