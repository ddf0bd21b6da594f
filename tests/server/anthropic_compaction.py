"""Compaction and context editing as Anthropic Messages has them in beta, and what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from tests.server.item import Refusal, canonical
from tests.server.options import Options
from tests.server.reply import Reply

COMPACTION_BETA = "compact-2026-09-04"
EDITING_BETA = "context-management-2025-06-27"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEARED = "[Old tool result content cleared]"
MAX_INSTRUCTIONS = 16_384
STOPS = ("max_tokens", "window_exceeded", "refusal", "tool_use")
EDIT_FIELDS = {"type", "trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs"}


def betas_of(headers: dict[str, str]) -> set[str]:
    """Return the betas that a request names."""
    return {name.strip() for name in headers.get("anthropic-beta", "").split(",") if name.strip()}


def sign_summary(model: str, text: str, options: Options) -> str:
    """Return the signature of a summary; it holds for every model of the account."""
    del model
    return "sum." + hashlib.sha256(f"{options.account} {text}".encode()).hexdigest()[:24]


def compaction_block(reply: Reply, body: dict[str, Any], options: Options) -> dict[str, Any] | None:
    """Return the block that a compaction request is answered with, `None` when no summary came about."""
    if not reply.text or reply.stop in STOPS or reply.tool_calls:
        return None
    signature = sign_summary(body["model"], reply.text, options)
    block = {"type": "compaction", "content": reply.text, "encrypted_content": None}
    return {**block, "signature": signature, "tool_changes": []}


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content as blocks."""
    content = message.get("content")
    return content if isinstance(content, list) else []


def begins_with_block(body: dict[str, Any]) -> bool:
    """Say whether the first block of the conversation is a compaction."""
    first = (body.get("messages") or [{}])[0]
    return [block.get("type") for block in blocks(first)[:1]] == ["compaction"]


def check_compaction(body: dict[str, Any], headers: dict[str, str], options: Options) -> None:
    """Refuse what does not fit a compaction request, or a compaction block that cannot be used."""
    betas = betas_of(headers)
    found = [
        (place, position, block)
        for place, message in enumerate(body["messages"])
        for position, block in enumerate(blocks(message))
        if block.get("type") == "compaction"
    ]
    if found and COMPACTION_BETA not in betas:
        place, position, _ = found[0]
        raise Refusal(
            f"messages.{place}.content.{position}: Input tag 'compaction' found using 'type' does not match any of the "
            "expected tags: 'image', 'text', 'thinking', 'tool_result', 'tool_use'"
        )
    _check_blocks(found, body, options)
    _check_editing(body, betas)
    asked = body.get("compaction")
    if asked is None:
        return
    if COMPACTION_BETA not in betas or "compaction" in options.refuse:
        raise Refusal("compaction: Extra inputs are not permitted")
    _check_request(body, asked)


def _check_blocks(found: list[tuple[int, int, dict[str, Any]]], body: dict[str, Any], options: Options) -> None:
    if len(found) > 1:
        text = "messages: only one `compaction` block may be sent; send only the newest"
        raise Refusal(text, code="compaction_block_ambiguous")
    for place, position, block in found:
        if (place, position) != (0, 0):
            text = (
                "`compaction` block must be sent first, in place of the messages it summarizes; remove those messages"
            )
            raise Refusal(text, code="compaction_block_misplaced")
        if options.account_unavailable:
            raise Refusal("Overloaded", status=529, code="compaction_unavailable")
        signature = str(block.get("signature", ""))
        if not signature.startswith("sum."):
            text = "messages.0.content.0: Invalid `signature` in `compaction` block"
            raise Refusal(text, code="compaction_signature_invalid")
        if signature != sign_summary(body["model"], block.get("content") or "", options):
            text = "messages.0.content.0: the `content` of the `compaction` block does not match its `signature`"
            raise Refusal(text, code="compaction_content_mismatch")
        if block.get("tool_changes") != []:
            text = "messages.0.content.0: the `tool_changes` of the `compaction` block were changed"
            raise Refusal(text, code="compaction_tool_changes_mismatch")


def _check_request(body: dict[str, Any], asked: dict[str, Any]) -> None:
    if asked.get("type") != "summarize" or set(asked) - {"type", "instructions"}:
        raise Refusal("compaction.type: Input should be 'summarize'")
    if len(asked.get("instructions") or "") > MAX_INSTRUCTIONS:
        raise Refusal(f"compaction.instructions: String should have at most {MAX_INSTRUCTIONS} characters")
    for name in ("context_management", "stop_sequences"):
        if body.get(name):
            raise Refusal(f"compaction cannot be combined with {name}")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise Refusal("compaction cannot be combined with a tool_choice of type any or tool")
    if (body.get("output_config") or {}).get("format"):
        raise Refusal("compaction cannot be combined with output_config.format")
    spoken = [message for message in body["messages"] if message.get("role") in ("user", "assistant")]
    if not spoken:
        raise Refusal("messages: nothing to summarize", code="compaction_nothing_to_summarize")
    last = spoken[-1]
    if last["role"] == "assistant" and any(block.get("type") == "tool_use" for block in blocks(last)):
        raise Refusal("the last assistant turn is not finished", code="compaction_incomplete_turn")


def _check_editing(body: dict[str, Any], betas: set[str]) -> None:
    editing = body.get("context_management")
    if editing is None:
        return
    if EDITING_BETA not in betas:
        raise Refusal("context_management: Extra inputs are not permitted")
    for place, edit in enumerate(editing.get("edits", [])):
        if edit.get("type") != CLEAR_TOOL_USES:
            raise Refusal(f"context_management.edits.{place}: Input tag {edit.get('type')!r} does not match")
        unknown = set(edit) - EDIT_FIELDS
        if unknown:
            raise Refusal(f"context_management.edits.{place}.{min(unknown)}: Extra inputs are not permitted")
        for name, kinds in (("trigger", ("input_tokens", "tool_uses")), ("clear_at_least", ("input_tokens",))):
            given = edit.get(name)
            if given and (given.get("type") not in kinds or not isinstance(given.get("value"), int)):
                raise Refusal(f"context_management.edits.{place}.{name}: Input should be a valid dictionary")


def cleared(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the body as the model reads it, and the edit that was applied, if any."""
    edits = (body.get("context_management") or {}).get("edits") or []
    if not edits:
        return body, None
    edit = edits[0]
    size = sum(len(canonical(block)) for message in body["messages"] for block in blocks(message)) // 4
    if size <= edit.get("trigger", {}).get("value", 100_000):
        return body, None
    uses = [block["id"] for message in body["messages"] for block in blocks(message) if block.get("type") == "tool_use"]
    keep = edit.get("keep", {}).get("value", 3)
    old = set(uses[:-keep] if keep else uses)
    count = saved = 0
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        content: list[dict[str, Any]] = []
        for block in blocks(message):
            if block.get("type") == "tool_result" and block.get("tool_use_id") in old:
                count += 1
                saved += max(0, len(canonical(block.get("content"))) - len(CLEARED)) // 4
                block = {**block, "content": CLEARED}
            content.append(block)
        messages.append({**message, "content": content})
    if not count or saved < (edit.get("clear_at_least") or {}).get("value", 0):
        return body, None
    applied = {"type": CLEAR_TOOL_USES, "cleared_tool_uses": count, "cleared_input_tokens": saved}
    return {**body, "messages": messages}, applied


def compaction_events(event: Any, block: dict[str, Any] | None) -> Iterator[bytes]:
    """Yield the block: it arrives whole, without deltas."""
    if block is not None:
        yield event("content_block_start", index=0, content_block=block)
        yield event("ping")
        yield event("content_block_stop", index=0)
