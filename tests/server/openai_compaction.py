"""Compaction as OpenAI Responses has it: items that are sealed for one model and account, and what is refused."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from tests.server.item import Refusal
from tests.server.options import Options
from tests.server.reply import Reply, Tokens

SEAL = "gAAAAC-"
ENDPOINT = "/responses/compact"
ENDPOINT_FIELDS = """
model input instructions previous_response_id prompt_cache_key prompt_cache_options prompt_cache_retention service_tier
image
"""


def input_items(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the input as a list; a string is one user message."""
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def is_triggered(body: dict[str, Any]) -> bool:
    """Say whether a request asks for a compaction by its last item."""
    return any(item.get("type") == "compaction_trigger" for item in input_items(body)[-1:])


def without_compacted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the model reads: from the last compaction on, with the instructions that stand before it."""
    last = max((place for place, item in enumerate(items) if item.get("type") == "compaction"), default=0)
    before = [item for item in items[:last] if item.get("role") in ("system", "developer")]
    return [*before, *items[last:]]


def is_over_threshold(body: dict[str, Any], size: int) -> bool:
    """Say whether the server compacts by itself in this request; `size` is what the model reads, in tokens."""
    thresholds = [entry.get("compact_threshold", 0) for entry in body.get("context_management") or []]
    return bool(thresholds) and size > min(thresholds)


def seal_of(model: str, options: Options) -> str:
    """Return how every item of this model and account begins."""
    return SEAL + hashlib.sha256(f"{model} {options.account}".encode()).hexdigest()[:12] + "-"


def compaction_item(text: str, body: dict[str, Any], number: int, options: Options) -> dict[str, Any]:
    """Return the item; its text can be read by nobody but us."""
    hidden = base64.b64encode(text.encode()).decode()
    return {
        "id": f"cmp_{number:06d}",
        "type": "compaction",
        "encrypted_content": seal_of(body["model"], options) + hidden,
    }


def read_item(item: dict[str, Any]) -> str:
    """Return the text in an item, for tests."""
    return base64.b64decode(item["encrypted_content"].rpartition("-")[2]).decode()


def compacted(reply: Reply, body: dict[str, Any], tokens: Tokens, number: int, options: Options) -> dict[str, Any]:
    """Return the answer of the endpoint: all user messages, then the item."""
    from tests.server.responses_wire import usage_object

    users = [item for item in input_items(body) if item.get("role") == "user"]
    kept = [{"type": "message", "id": f"msg_{number:04d}{place:02d}", **item} for place, item in enumerate(users)]
    return {
        "id": f"resp_{number:06d}",
        "object": "response.compaction",
        "created_at": 1_790_000_000,
        "output": [*kept, compaction_item(reply.text, body, number, options)] if reply.text else kept,
        "usage": usage_object(tokens),
    }


def check_item(where: str, item: dict[str, Any], body: dict[str, Any], options: Options) -> None:
    """Refuse an item that was sealed for another model or account, or was changed."""
    secret = item.get("encrypted_content")
    if not isinstance(secret, str):
        message = f"Missing required parameter: '{where}.encrypted_content'."
        raise Refusal(message, code="missing_required_parameter", param=where)
    try:
        read_item(item)
    except ValueError:
        secret = ""
    if not secret.startswith(seal_of(body["model"], options)):
        raise Refusal(
            f"The encrypted content for item {item.get('id')} could not be verified. Reason: Encrypted content could "
            "not be decrypted or parsed.",
            code="invalid_encrypted_content",
        )


def check_trigger(body: dict[str, Any], options: Options) -> None:
    """Refuse a trigger that is not the last item, or has nothing before it."""
    items = input_items(body)
    places = [place for place, item in enumerate(items) if item.get("type") == "compaction_trigger"]
    if not places:
        return
    if "compaction_trigger" in options.refuse:
        raise Refusal("Invalid value: 'compaction_trigger'.", code="invalid_value", param=f"input[{places[0]}]")
    if places != [len(items) - 1]:
        raise Refusal("A compaction_trigger must be the final input item.", code="invalid_value", param="input")
    if len(items) == 1:
        raise Refusal("There is nothing to compact.", code="invalid_value", param="input")


def check_endpoint(body: dict[str, Any], options: Options) -> None:
    """Refuse what the endpoint does not take."""
    if ENDPOINT in options.refuse:
        raise Refusal(f"Invalid URL (POST /v1{ENDPOINT})", status=404)
    for name in body:
        if name not in ENDPOINT_FIELDS.split():
            raise Refusal(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
