"""Compaction and context editing by Anthropic Messages, both in beta (anchors A1.9).

A compaction is asked for with one field on an otherwise normal request; the answer is one signed block with a summary
that can be read. Later requests send it first, unchanged, in the place of what it covers, each with the same beta
header. `clear_tool_uses` lets the server leave old tool results out of a request that is still sent whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model import wire_json
from tenuto.model.wire_json import as_count, as_dict, as_list, as_text
from tenuto.protocol.message import AssistantMessage, Message
from tenuto.protocol.model import CompactedItems, ModelError, ServerContext, ServerEdit
from tenuto.protocol.part import OpaquePart

COMPACTION = "compaction"
MANAGEMENT = "context_management"
COMPACTION_BETA = "compact-2026-09-04"
EDITING_BETA = "context-management-2025-06-27"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"
MAX_INSTRUCTIONS = 16_384
"""Characters; the API refuses longer ones."""
KEPT_TOOL_USES = 5
BLOCK_START = b'{"type":"compaction"'
"""How a compaction block begins as we store it."""
NO_SUMMARY = {
    "max_tokens": "the summary was cut off at the output limit",
    "window_exceeded": "there was no room left for the summary",
    "refusal": "the provider declined to summarise",
    "tool_use": "the model called a tool instead of summarising",
}


def compacted_items(blocks: Sequence[dict[str, Any]]) -> CompactedItems | None:
    """Return the compaction blocks that hold a summary; `None` without any. The type comes first in each."""
    whole = [block for block in blocks if as_text(block.get("content"))]
    if not whole:
        return None
    raw = tuple(msgspec.Raw(wire_json.encode({"type": COMPACTION, **block})) for block in whole)
    return CompactedItems(items=raw, text=as_text(whole[-1]["content"]))


def explain_absence(stop_reason: str) -> ModelError:
    """Return the error for an answer without a summary."""
    reason = NO_SUMMARY.get(stop_reason, "the provider's answer holds no summary")
    return ModelError("refused" if stop_reason == "refusal" else "invalid", reason)


def compaction_field(instructions: str, focus: str) -> bytes:
    """Return the field that asks for a compaction; instructions that are too long leave the server's own in place."""
    text = f"{instructions}\n\nAdditional focus: {focus}" if instructions and focus else instructions or focus
    fields = {"type": "summarize"}
    if text.strip() and len(text) <= MAX_INSTRUCTIONS:
        fields["instructions"] = text
    return wire_json.encode(fields)


def editing_field(server: ServerContext) -> bytes:
    """Return the field by which the server leaves old tool results out; empty bytes when that is not asked for."""
    if not server.clear_over:
        return b""
    edit = {
        "type": CLEAR_TOOL_USES,
        "trigger": {"type": "input_tokens", "value": server.clear_over},
        "keep": {"type": "tool_uses", "value": KEPT_TOOL_USES},
        "clear_at_least": {"type": "input_tokens", "value": server.clear_at_least},
    }
    return wire_json.encode({"edits": [edit]})


def applied_edit(context_management: dict[str, Any]) -> ServerEdit | None:
    """Return what the server says it left out, `None` when that is nothing."""
    edits = [as_dict(edit) for edit in as_list(context_management.get("applied_edits"))]
    results = sum(as_count(edit.get("cleared_tool_uses")) for edit in edits)
    tokens = sum(as_count(edit.get("cleared_input_tokens")) for edit in edits)
    return ServerEdit(cleared_results=results, cleared_tokens=tokens) if results else None


def begins_with_block(messages: Sequence[Message], provider: str) -> bool:
    """Say whether the conversation begins with a compaction block of this provider."""
    first = next((message for message in messages if isinstance(message, AssistantMessage)), None)
    return first is not None and any(
        isinstance(part, OpaquePart) and part.provider == provider and bytes(part.block).startswith(BLOCK_START)
        for part in first.parts
    )


def join_betas(*betas: str) -> str:
    """Return the value of the beta header, each name once."""
    names = (name.strip() for beta in betas for name in beta.split(","))
    return ",".join(dict.fromkeys(name for name in names if name))
