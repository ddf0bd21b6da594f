"""Compaction by OpenAI Responses: its items, and how they are asked for (anchors A2.4).

Three ways: a `compaction_trigger` as the last item of a normal request; `/responses/compact`, an address of its own;
`context_management`, by which the server compacts in the middle of a normal request. What comes back is encrypted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model import wire_json
from tenuto.model.wire_json import as_dict, as_list
from tenuto.protocol.model import CompactedItems, ModelError, ServerContext

COMPACTION = "compaction"
MANAGEMENT = "context_management"
TRIGGER_TYPE = "compaction_trigger"
TRIGGER = b'{"type":"compaction_trigger"}'
ENDPOINT = "/responses/compact"
MIN_THRESHOLD = 1_000
"""Tokens; the API takes no smaller threshold."""


def compacted_items(items: Sequence[dict[str, Any]], *, has_user_messages: bool = False) -> CompactedItems:
    """Return items of an output as what is sent back unchanged. Nothing of them can be read."""
    raw = tuple(msgspec.Raw(wire_json.encode(item)) for item in items)
    return CompactedItems(items=raw, has_user_messages=has_user_messages)


def read_endpoint_output(response: dict[str, Any]) -> CompactedItems:
    """Return the items of an answer of `/responses/compact`: the user messages, then what stands for the rest.

    Raises `ModelError` when there is no compaction among them.
    """
    output = [as_dict(item) for item in as_list(response.get("output"))]
    count = sum(item.get("type") == COMPACTION for item in output)
    if count != 1:
        raise _not_one(count)
    return compacted_items(output, has_user_messages=len(output) > 1)


def the_one(found: CompactedItems | None) -> CompactedItems:
    """Return what an answer holds. Raises `ModelError` unless it is exactly one compaction."""
    if found is None or len(found.items) != 1:
        raise _not_one(len(found.items) if found is not None else 0)
    return found


def _not_one(count: int) -> ModelError:
    found = f"{count} compactions" if count else "no compaction"
    return ModelError("invalid", f"the provider's answer holds {found} where one was asked for")


def context_management(server: ServerContext) -> bytes:
    """Return the field by which the server compacts by itself; empty bytes when that is not asked for."""
    if not server.compact_over:
        return b""
    threshold = max(MIN_THRESHOLD, server.compact_over)
    return wire_json.encode([{"type": COMPACTION, "compact_threshold": threshold}])
