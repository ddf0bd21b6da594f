"""The content parts that both programs of Kimi write. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenuto.protocol.part import AssistantPart, ContentPart, ImagePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.session.importers.format import Context
from tenuto.session.importers.json_access import (
    Fields,
    arguments_text,
    as_fields,
    as_items,
    field,
    plain_parts,
    text,
)

OPAQUE = "imported:kimi"


def content_parts(content: Any, context: Context) -> tuple[ContentPart, ...]:
    """Return what a user said or a tool returned."""
    if isinstance(content, str):
        return plain_parts(content)
    found: list[ContentPart] = []
    for value in as_items(content):
        part = as_fields(value)
        match part.get("type"):
            case "text":
                found += plain_parts(text(part, "text"))
            case "think":
                continue
            case "image_url" | "image":
                url = text(field(part, "image_url"), "url") or text(part, "image_url") or text(part, "url")
                found.append(_image(url, context) or TextPart(text=f"[image: {url[:200]}]"))
            case _:
                found.append(context.unknown_part(value))
    return tuple(found)


def _image(url: str, context: Context) -> ImagePart | None:
    if url.startswith("blobref:"):
        digest = url.rpartition(";")[2]
        return context.file_image(f"blobs/{digest}") if digest.isalnum() else None
    return context.data_image(url)


def answer_parts(content: Any, context: Context) -> Iterator[AssistantPart]:
    """Yield what a model wrote and thought; its calls stand elsewhere."""
    if isinstance(content, str):
        yield from [TextPart(text=content)] if content else []
        return
    for value in as_items(content):
        part = as_fields(value)
        match part.get("type"):
            case "text":
                yield from [TextPart(text=text(part, "text"))] if text(part, "text") else []
            case "think":
                yield from [ThinkingPart(text=text(part, "think"))] if text(part, "think") else []
            case _:
                yield context.unknown_block(OPAQUE, value)


def call_part(call: Fields) -> ToolCallPart:
    """Return a call, whose name and arguments may lie in a `function` object."""
    inner = field(call, "function") or call
    return ToolCallPart(
        id=text(call, "id"),
        name=text(inner, "name") or "unknown",
        arguments=arguments_text(inner.get("arguments")),
    )
