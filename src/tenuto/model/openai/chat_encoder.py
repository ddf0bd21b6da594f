"""Encoding a view for Chat Completions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model.wire.conversation import EMPTY_TEXT, Gap, ImageSource, arguments_object, wire_name
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.model import ToolSchema, WebSearchUse
from tenuto.protocol.part import ContentPart, ImagePart, TextPart, ThinkingPart, ToolCallPart, text_of
from tenuto.text import json_access
from tenuto.text.late import late

_MISTRAL_ID = late(r"[A-Za-z0-9]{9}")
OPENAI_ID_CHARACTERS = 40


def openai_call_id(call_id: str) -> str:
    """Return an id of at most 40 characters, which is what OpenAI takes."""
    if len(call_id) <= OPENAI_ID_CHARACTERS:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def mistral_call_id(call_id: str) -> str:
    """Return an id of exactly nine letters and digits, which is what Mistral takes."""
    if _MISTRAL_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]


class ChatEncoder:
    """Messages in the form of Chat Completions. Every system text goes into the one first message: many servers'
    templates take no second one.
    """

    def __init__(self, host: str) -> None:
        self._call_id = mistral_call_id if host.endswith("mistral.ai") else openai_call_id

    def encode_tools(self, tools: Sequence[ToolSchema]) -> bytes:
        """Return the tools as a JSON array; empty bytes when there are none."""
        functions = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
        ]
        return json_access.encode([{"type": "function", "function": item} for item in functions]) if tools else b""

    def encode_search(self, use: WebSearchUse) -> bytes:
        """Return nothing: the protocol documents no web search as a tool."""
        del use
        return b""

    def encode_head(self, texts: Sequence[str]) -> list[bytes]:
        """Return the system message."""
        return [json_access.encode({"role": "system", "content": "\n\n".join(texts)})] if texts else []

    def encode_gap(self, gap: Gap, images: ImageSource) -> list[bytes]:
        """Return the tool messages, then one user message with everything that was said."""
        note = gap.note_text
        items: list[bytes] = []
        pictures: list[dict[str, Any]] = []
        for place, result in enumerate(gap.results):
            extra = note if not gap.users and place == len(gap.results) - 1 else ""
            items.append(self._encode_result(result, extra, images, pictures))
        content = [block for user in gap.users for block in content_blocks(user.parts, images)]
        if content and note:
            content.append({"type": "text", "text": note})
        elif note and not gap.results:
            content = [{"type": "text", "text": note}]
        elif gap.users and not content:
            content = [{"type": "text", "text": EMPTY_TEXT}]
        content = pictures + content
        if content:
            items.append(json_access.encode({"role": "user", "content": plain_if_text(content)}))
        return items

    def _encode_result(
        self, result: ToolResultMessage, note: str, images: ImageSource, pictures: list[dict[str, Any]]
    ) -> bytes:
        """Return a tool message; its images go into the user message after it, where every server takes them."""
        texts: list[str] = []
        for block in content_blocks(result.parts, images):
            if block["type"] == "text":
                texts.append(block["text"])
            else:
                texts.append("[the image follows]")
                pictures.append(block)
        texts += [note] if note else []
        content = "\n\n".join(texts) or EMPTY_TEXT
        return json_access.encode({"role": "tool", "tool_call_id": self._call_id(result.call_id), "content": content})

    def encode_answer(self, message: AssistantMessage, *, thinking: bool) -> list[bytes]:
        """Return the assistant message; nothing for an answer that has nothing to send."""
        text = text_of(message.parts)
        calls = [self._encode_call(call) for call in message.tool_calls]
        if not text.strip() and not calls:
            return []
        fields: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
        if thinking:
            for part in message.parts:
                if isinstance(part, ThinkingPart) and bytes(part.block).startswith(b"{"):
                    fields.update(msgspec.json.decode(part.block, type=dict[str, msgspec.Raw]))
        if calls:
            fields["tool_calls"] = calls
        return [json_access.encode(fields)]

    def _encode_call(self, part: ToolCallPart) -> dict[str, Any]:
        function = {"name": wire_name(part.name), "arguments": arguments_object(part.arguments).decode()}
        return {"id": self._call_id(part.id), "type": "function", "function": function}


def content_blocks(parts: Sequence[ContentPart], images: ImageSource) -> list[dict[str, Any]]:
    """Return texts and images as content parts; empty texts are left out."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            if part.text.strip():
                blocks.append({"type": "text", "text": part.text})
        else:
            blocks.append(image_block(part, images))
    return blocks


def image_block(part: ImagePart, images: ImageSource) -> dict[str, Any]:
    """Return an image as a data URL, or the text that stands in for it."""
    data = images.load(part)
    if data is None:
        return {"type": "text", "text": images.missing_text(part)}
    return {"type": "image_url", "image_url": {"url": data_url(part.media_type, data)}}


def data_url(media_type: str, data: bytes) -> str:
    """Return bytes as a `data:` URL."""
    import base64  # for images alone

    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def plain_if_text(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return content of texts alone as one string, which every server understands."""
    if all(block["type"] == "text" for block in content):
        return "\n\n".join(block["text"] for block in content)
    return content


def with_role(role: str, head: Sequence[bytes], bodies: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Return system message and conversation where the system prompt has another role; an empty one changes nothing.

    As a user's message it stands in front of the first, in the same message: templates want the roles to alternate.
    """
    if role in ("", "system") or not head:
        return head, bodies
    system = msgspec.json.decode(head[0], type=dict[str, Any])
    if role == "user" and bodies and bodies[0].startswith(b'{"role":"user"'):
        first = msgspec.json.decode(bodies[0], type=dict[str, Any])
        content = [*_as_blocks(system["content"]), *_as_blocks(first["content"])]
        return [], [json_access.encode({"role": "user", "content": plain_if_text(content)}), *bodies[1:]]
    return [json_access.encode({"role": role, "content": system["content"]})], bodies


def _as_blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
