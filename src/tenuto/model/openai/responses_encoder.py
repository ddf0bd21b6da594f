"""Encoding a view for OpenAI Responses: items are input items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model.openai.chat_encoder import data_url
from tenuto.model.openai.web_search import TOOL
from tenuto.model.wire.conversation import (
    EMPTY_TEXT,
    Gap,
    ImageSource,
    arguments_object,
    freeform_input,
    wire_call_id,
    wire_name,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.model import CompactedItems, ModelError, ServerContext, ToolSchema, WebSearchUse
from tenuto.protocol.part import ContentPart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text import json_access
from tenuto.text.json_access import as_dict, as_list

MAX_CALL_ID = 64
FUNCTION_CALL, FREEFORM_CALL = "function_call", "custom_tool_call"


class ResponsesEncoder:
    """Input items of one provider; reasoning and opaque items of others are left out.

    `freeform`: its server knows tools and calls that take one text; elsewhere they are functions.
    """

    def __init__(self, provider: str, *, freeform: bool = False) -> None:
        self._provider = provider
        self._freeform = freeform

    def encode_tools(self, tools: Sequence[ToolSchema]) -> bytes:
        """Return the tools as a JSON array; empty bytes when there are none."""
        items = [_freeform_tool(tool) if tool.grammar and self._freeform else _function(tool) for tool in tools]
        return json_access.encode(items) if items else b""

    def encode_search(self, use: WebSearchUse) -> bytes:
        """Return the provider's web search as an item of the tools, also where it is off: `tool_choice` says that."""
        return TOOL if use else b""

    def encode_head(self, texts: Sequence[str]) -> list[bytes]:
        """Return the system prompt as a JSON text (it goes into `instructions`), then a developer item a text."""
        first = [json_access.encode(text) for text in texts[:1]]
        return first + [encode_message("developer", [input_text(text)]) for text in texts[1:]]

    def encode_gap(self, gap: Gap, images: ImageSource) -> list[bytes]:
        """Return outputs, then a message for each user message; notes go with the last of them."""
        note, items = gap.note_text, list[bytes]()
        for place, result in enumerate(gap.results):
            extra = note if not gap.users and place == len(gap.results) - 1 else ""
            kind = FREEFORM_CALL if self._freeform and result.call_id in gap.freeform else FUNCTION_CALL
            items.append(_encode_output(kind, result, extra, images))
        for place, user in enumerate(gap.users):
            extra = note if place == len(gap.users) - 1 else ""
            items.append(_encode_user(user, extra, images))
        if note and not gap.results and not gap.users:
            items.append(encode_message("user", [input_text(note)]))
        return items

    def encode_answer(self, message: AssistantMessage, *, thinking: bool) -> list[bytes]:
        """Return the items of an answer in their order.

        Ids of messages and calls are left out: an item with an id must follow the reasoning that it came with, and
        reasoning may have to stay behind. A reasoning item must have an item after it.
        """
        items: list[bytes] = []
        held: list[bytes] = []
        for part in message.parts:
            if isinstance(part, ThinkingPart):
                if thinking and part.provider == self._provider and bytes(part.block):
                    held.append(bytes(part.block))
                continue
            if isinstance(part, OpaquePart) and part.search is not None and not thinking:
                continue  # a search has an id, and must follow the reasoning that it came with
            item = self._encode_part(part)
            if item:
                items += [*held, item]
                held = []
        return items

    def _encode_part(self, part: TextPart | ToolCallPart | OpaquePart) -> bytes:
        match part:
            case TextPart():
                fields = {"role": "assistant", "content": part.text}
                if part.phase:
                    fields["phase"] = part.phase
                return json_access.encode(fields) if part.text.strip() else b""
            case ToolCallPart():
                is_freeform = self._freeform and part.freeform
                given = freeform_input(part.arguments) if is_freeform else arguments_object(part.arguments).decode()
                fields = {
                    "type": FREEFORM_CALL if is_freeform else FUNCTION_CALL,
                    "call_id": wire_call_id(part.id, MAX_CALL_ID),
                    "name": wire_name(part.name),
                    "input" if is_freeform else "arguments": given,
                }
                return json_access.encode(fields)
            case OpaquePart():
                return bytes(part.block) if part.provider == self._provider else b""


def _function(tool: ToolSchema) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _freeform_tool(tool: ToolSchema) -> dict[str, Any]:
    form = {"type": "grammar", "syntax": "lark", "definition": tool.grammar}
    return {"type": "custom", "name": tool.name, "description": tool.description, "format": form}


def _encode_output(kind: str, result: ToolResultMessage, note: str, images: ImageSource) -> bytes:
    content = content_items(result.parts, images)
    content += [input_text(note)] if note else []
    output: Any = content
    if all(item["type"] == "input_text" for item in content):
        output = "\n\n".join(item["text"] for item in content) or EMPTY_TEXT
    call_id = wire_call_id(result.call_id, MAX_CALL_ID)
    return json_access.encode({"type": f"{kind}_output", "call_id": call_id, "output": output})


def _encode_user(user: UserMessage, note: str, images: ImageSource) -> bytes:
    content = content_items(user.parts, images) or [input_text(EMPTY_TEXT)]
    content += [input_text(note)] if note else []
    return encode_message("user", content)


def encode_message(role: str, content: list[dict[str, Any]]) -> bytes:
    """Return a message item."""
    return json_access.encode({"type": "message", "role": role, "content": content})


def input_text(text: str) -> dict[str, Any]:
    """Return a text as input content."""
    return {"type": "input_text", "text": text}


def content_items(parts: Sequence[ContentPart], images: ImageSource) -> list[dict[str, Any]]:
    """Return texts and images as input content; blank texts are left out."""
    items: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            if part.text.strip():
                items.append(input_text(part.text))
            continue
        data = images.load(part)
        if data is None:
            items.append(input_text(images.missing_text(part)))
        else:
            items.append({"type": "input_image", "image_url": data_url(part.media_type, data), "detail": "auto"})
    return items


COMPACTION = "compaction"
MANAGEMENT = "context_management"
TRIGGER_TYPE = "compaction_trigger"
TRIGGER = b'{"type":"compaction_trigger"}'
ENDPOINT = "/responses/compact"
MIN_THRESHOLD = 1_000
"""Tokens; the API takes no smaller threshold."""


def compacted_items(items: Sequence[dict[str, Any]], *, has_user_messages: bool = False) -> CompactedItems:
    """Return items of an output as what is sent back unchanged. Nothing of them can be read."""
    raw = tuple(msgspec.Raw(json_access.encode(item)) for item in items)
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
    return json_access.encode([{"type": COMPACTION, "compact_threshold": threshold}])
