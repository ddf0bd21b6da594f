"""Encoding a view for Anthropic Messages: items are content blocks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model import wire_json
from tenuto.model.anthropic_compaction import BLOCK_START
from tenuto.model.calls import arguments_object, wire_call_id, wire_name
from tenuto.model.conversation import ImageSource
from tenuto.model.layout import EMPTY_TEXT, Gap
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import ContentPart, ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart

MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
MAX_CALL_ID = 64
CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
OPEN_USER, OPEN_ANSWER = b'{"role":"user","content":[', b'{"role":"assistant","content":['
FIRST_LINE = b'{"type":"text","text":"(The conversation goes on from here.)"}'
LAST_LINE = b'{"type":"text","text":"(Go on.)"}'


class AnthropicEncoder:
    """Content blocks of one provider; opaque blocks of others are left out."""

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def encode_tools(self, tools: Sequence[ToolSchema]) -> bytes:
        """Return the tools as a JSON array; empty bytes when there are none."""
        items = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
        return wire_json.encode(items) if items else b""

    def encode_head(self, texts: Sequence[str]) -> list[bytes]:
        """Return a system block for each text."""
        return [text_block(text) for text in texts if text.strip()]

    def encode_gap(self, gap: Gap, images: ImageSource) -> list[bytes]:
        """Return the blocks of one user message: results first, as the API demands, then what was said, then notes."""
        blocks = [wire_json.encode(self._result(result, images)) for result in gap.results]
        blocks += [wire_json.encode(block) for user in gap.users for block in content_blocks(user.parts, images)]
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
                    if part.text.strip():
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
    return wire_json.encode(fields)


def text_block(text: str) -> bytes:
    """Return a text as a block."""
    return wire_json.encode({"type": "text", "text": text})


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
