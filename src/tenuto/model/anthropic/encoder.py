"""Encoding a view for Anthropic Messages: items are content blocks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model.anthropic.web_search import search_tool
from tenuto.model.wire.conversation import EMPTY_TEXT, Gap, ImageSource, arguments_object, wire_call_id, wire_name
from tenuto.protocol.message import AssistantMessage, Message, ToolResultMessage, UserMessage
from tenuto.protocol.model import (
    CompactedItems,
    ModelError,
    ModelRequest,
    ServerContext,
    ServerEdit,
    ToolSchema,
    WebSearchUse,
)
from tenuto.protocol.part import NO_BLOCK, ContentPart, ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text

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
    raw = tuple(msgspec.Raw(json_access.encode({"type": COMPACTION, **block})) for block in whole)
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
    return json_access.encode(fields)


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
    return json_access.encode({"edits": [edit]})


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


def can_think(request: ModelRequest, provider: str) -> bool:
    """Whether thinking within a budget may be asked for: the turn is new, or it began with thinking that goes along.

    A text of the user that goes into one message with results of tools begins no turn.
    """
    first: AssistantMessage | None = None
    has_spoken = False
    for message in reversed(request.messages):
        match message:
            case UserMessage():
                has_spoken = True
            case AssistantMessage():
                if has_spoken:
                    break
                first = message
            case ToolResultMessage():
                has_spoken = False
            case _:
                pass
    if first is None:
        return True
    match first.parts[:1]:
        case (ThinkingPart() as part,):
            return request.thinking and part.provider == provider and bool(bytes(part.block))
        case _:
            return False


def join_betas(*betas: str) -> str:
    """Return the value of the beta header, each name once."""
    names = (name.strip() for beta in betas for name in beta.split(","))
    return ",".join(dict.fromkeys(name for name in names if name))


MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
MAX_CALL_ID = 64
CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
OPEN_USER, OPEN_ANSWER = b'{"role":"user","content":[', b'{"role":"assistant","content":['
FIRST_LINE = b'{"type":"text","text":"(The conversation goes on from here.)"}'
LAST_LINE = b'{"type":"text","text":"(Go on.)"}'


class AnthropicEncoder:
    """Content blocks of one provider; opaque blocks of others are left out."""

    def __init__(self, provider: str, *, is_vendors_own: bool = False) -> None:
        self._provider = provider
        self._is_vendors_own = is_vendors_own

    def encode_tools(self, tools: Sequence[ToolSchema]) -> bytes:
        """Return the tools as a JSON array; empty bytes when there are none."""
        items = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
        return json_access.encode(items) if items else b""

    def encode_search(self, use: WebSearchUse) -> bytes:
        """Return the provider's web search as an item of the tools. Off is left out: nothing else switches it off."""
        return search_tool(is_vendors_own=self._is_vendors_own) if use == "on" else b""

    def encode_head(self, texts: Sequence[str]) -> list[bytes]:
        """Return a system block for each text."""
        return [text_block(text) for text in texts if text.strip()]

    def encode_gap(self, gap: Gap, images: ImageSource) -> list[bytes]:
        """Return the blocks of one user message: results first, as the API demands, then what was said, then notes."""
        blocks = [json_access.encode(self._result(result, images)) for result in gap.results]
        blocks += [json_access.encode(block) for user in gap.users for block in content_blocks(user.parts, images)]
        blocks += [text_block(gap.note_text)] if gap.notes else []
        return blocks or ([text_block(EMPTY_TEXT)] if gap.users else [])

    def _result(self, result: ToolResultMessage, images: ImageSource) -> dict[str, Any]:
        content: Any = content_blocks(result.parts, images) or EMPTY_TEXT
        if len(content) == 1 and content[0]["type"] == "text":
            content = content[0]["text"]
        call_id = wire_call_id(result.call_id, MAX_CALL_ID)
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return {**block, "is_error": True} if result.is_error else block

    def encode_answer(self, message: AssistantMessage, *, thinking: bool) -> list[bytes]:
        """Return the blocks of an answer in their order; signed blocks go back byte for byte."""
        blocks: list[bytes] = []
        for part in message.parts:
            match part:
                case TextPart():
                    if part.block is not NO_BLOCK and part.provider == self._provider and bytes(part.block):
                        blocks.append(bytes(part.block))
                    elif part.text.strip():
                        blocks.append(text_block(part.text))
                case ThinkingPart():
                    if thinking and part.provider == self._provider and bytes(part.block):
                        blocks.append(bytes(part.block))
                case ToolCallPart():
                    blocks.append(encode_call(part))
                case OpaquePart():
                    if part.provider == self._provider:
                        blocks.append(bytes(part.block))
        return blocks


def encode_call(part: ToolCallPart) -> bytes:
    """Return a call as a `tool_use` block."""
    fields = {
        "type": "tool_use",
        "id": wire_call_id(part.id, MAX_CALL_ID),
        "name": wire_name(part.name),
        "input": msgspec.Raw(arguments_object(part.arguments)),
    }
    return json_access.encode(fields)


def text_block(text: str) -> bytes:
    """Return a text as a block."""
    return json_access.encode({"type": "text", "text": text})


def content_blocks(parts: Sequence[ContentPart], images: ImageSource) -> list[dict[str, Any]]:
    """Return texts and images as blocks; blank texts, which the API refuses, are left out."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ImagePart):
            blocks.append(_image_block(part, images))
        elif part.text.strip():
            blocks.append({"type": "text", "text": part.text})
    return blocks


def _image_block(part: ImagePart, images: ImageSource) -> dict[str, Any]:
    data = images.load(part) if part.media_type in MEDIA_TYPES else None
    if not data:
        return {"type": "text", "text": images.missing_text(part)}
    source = {"type": "base64", "media_type": part.media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def ask_on(runs: Sequence[tuple[bool, bytes]]) -> list[tuple[bool, bytes]]:
    """Return the runs so that an answer can follow: after an answer a fixed line of the user's stands in."""
    return [*runs, (False, LAST_LINE)] if runs and runs[-1][0] else list(runs)


def join_messages(runs: Sequence[tuple[bool, bytes]], marks: int) -> list[bytes]:
    """Return the pieces of the messages as a JSON array, with cache marks at the end of the last `marks` gaps.

    Roles alternate, and the first message is the user's: where the view has it otherwise a fixed line stands in.
    A compaction block comes first of all, whatever its role.
    """
    runs = list(runs)
    if not runs or (runs[0][0] and not runs[0][1].startswith(BLOCK_START)):
        runs.insert(0, (False, FIRST_LINE))
    bodies = [body for _, body in runs]
    for place in mark_places(runs, marks):
        bodies[place] = bodies[place][:-1] + CACHE_MARK
    pieces: list[bytes] = []
    role: bool | None = None
    for (is_answer, _), body in zip(runs, bodies, strict=True):
        if is_answer is role:
            pieces.append(b",")
        else:
            pieces += (b"[" if role is None else b"]},", OPEN_ANSWER if is_answer else OPEN_USER)
            role = is_answer
        pieces.append(body)
    pieces.append(b"]}]")
    return pieces


def mark_places(runs: Sequence[tuple[bool, bytes]], marks: int) -> list[int]:
    """Return the places of the last runs of the last `marks` user messages, the newest first."""
    places: list[int] = []
    for place in range(len(runs) - 1, -1, -1):
        ends_message = place == len(runs) - 1 or runs[place + 1][0]
        if not runs[place][0] and ends_message:
            places.append(place)
            if len(places) >= marks:
                break
    return places
