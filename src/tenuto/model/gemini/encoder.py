"""Encoding a view for Gemini: contents of parts, thought signatures on the parts that they came with."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model.wire.conversation import EMPTY_TEXT, Gap, ImageSource, Run, arguments_object, wire_name
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.model import ToolSchema, WebSearchUse
from tenuto.protocol.part import ContentPart, ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text import json_access
from tenuto.text.json_access import as_text

MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""Images that Gemini reads. A GIF it refuses, with the whole request."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for calls whose thought is not there: of another model, or behind a compaction."""
FIRST_LINE = b'{"text":"(The conversation goes on from here.)"}'
LAST_LINE = b'{"text":"(Go on.)"}'
OPEN_USER, OPEN_ANSWER = b'{"role":"user","parts":[', b'{"role":"model","parts":['


class GeminiEncoder:
    """Parts of contents. `signs`: the model refuses a call that has no thought signature."""

    def __init__(self, provider: str, *, signs: bool) -> None:
        self._provider = provider
        self._signs = signs

    def encode_tools(self, tools: Sequence[ToolSchema]) -> bytes:
        """Return the tools as a JSON array; empty bytes when there are none."""
        functions = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in tools
        ]
        return json_access.encode([{"functionDeclarations": functions}]) if functions else b""

    def encode_search(self, use: WebSearchUse) -> bytes:
        """Return nothing: Google's search cannot stand beside functions with every model."""
        del use
        return b""

    def encode_head(self, texts: Sequence[str]) -> list[bytes]:
        """Return a part of the system instruction for each text."""
        return [json_access.encode({"text": text}) for text in texts if text.strip()]

    def encode_gap(self, gap: Gap, images: ImageSource) -> list[bytes]:
        """Return the parts of one user content: results first, their images, then what was said, then notes."""
        pictures: list[dict[str, Any]] = []
        parts = [_result(result, images, pictures) for result in gap.results]
        parts += pictures
        parts += [part for user in gap.users for part in content_parts(user.parts, images)]
        parts += [{"text": gap.note_text}] if gap.notes else []
        if not parts and gap.users:
            parts = [{"text": EMPTY_TEXT}]
        return [json_access.encode(part) for part in parts]

    def encode_answer(self, message: AssistantMessage, *, thinking: bool) -> list[bytes]:
        """Return the parts of an answer; a signature goes back on the part that it came with, or on one of its own."""
        parts: list[dict[str, Any]] = []
        signature = ""
        is_first_call = True
        for part in message.parts:
            match part:
                case TextPart():
                    if part.text.strip() or signature:
                        parts.append(_signed({"text": part.text}, signature))
                        signature = ""
                case ToolCallPart():
                    if not signature and is_first_call and self._signs:
                        signature = NO_SIGNATURE
                    parts.append(_signed({"functionCall": _call(part)}, signature))
                    signature, is_first_call = "", False
                case ThinkingPart():
                    if thinking and part.provider == self._provider and bytes(part.block).startswith(b"{"):
                        signature = _signature_in(part.block)
                case OpaquePart():
                    pass
        if signature:
            parts.append(_signed({"text": ""}, signature))
        return [json_access.encode(part) for part in parts]


def _signature_in(block: msgspec.Raw) -> str:
    return as_text(msgspec.json.decode(block, type=dict[str, Any]).get("thoughtSignature"))


def _signed(part: dict[str, Any], signature: str) -> dict[str, Any]:
    return {**part, "thoughtSignature": signature} if signature else part


def _call(part: ToolCallPart) -> dict[str, Any]:
    return {"id": part.id, "name": wire_name(part.name), "args": msgspec.Raw(arguments_object(part.arguments))}


def _result(result: ToolResultMessage, images: ImageSource, pictures: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a result; its images go behind all results, which have to stand together."""
    texts: list[str] = []
    for part in content_parts(result.parts, images):
        if "text" in part:
            texts.append(part["text"])
        else:
            texts.append("[the image follows]")
            pictures.append(part)
    said = "\n\n".join(texts) or EMPTY_TEXT
    response = {"error" if result.is_error else "output": said}
    return {"functionResponse": {"id": result.call_id, "name": wire_name(result.name), "response": response}}


def content_parts(parts: Sequence[ContentPart], images: ImageSource) -> list[dict[str, Any]]:
    """Return texts and images as parts; empty texts are left out."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            if part.text.strip():
                found.append({"text": part.text})
        else:
            found.append(_image(part, images))
    return found


def _image(part: ImagePart, images: ImageSource) -> dict[str, Any]:
    data = images.load(part) if part.media_type in MEDIA_TYPES else None
    if not data:
        return {"text": images.missing_text(part)}
    return {"inlineData": {"mimeType": part.media_type, "data": base64.b64encode(data).decode()}}


def join_contents(runs: Sequence[Run]) -> list[bytes]:
    """Return the pieces of the array of contents: user and model by turns, the user first and last."""
    runs = [run for run in runs if run[1]]
    if not runs or runs[0][0]:
        runs = [(False, FIRST_LINE), *runs]
    if runs[-1][0]:
        runs = [*runs, (False, LAST_LINE)]
    pieces: list[bytes] = [b"["]
    before: bool | None = None
    for is_answer, body in runs:
        if is_answer == before:
            pieces += (b",", body)
            continue
        if before is not None:
            pieces.append(b"]},")
        pieces += (OPEN_ANSWER if is_answer else OPEN_USER, body)
        before = is_answer
    pieces.append(b"]}]")
    return pieces
