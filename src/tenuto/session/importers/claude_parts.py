"""The content blocks of Claude Code as parts: of an answer, of a user's message, of a result. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tenuto.protocol.message import DiffView, ResultView, ToolResultMessage
from tenuto.protocol.part import AssistantPart, ContentPart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.importers.format import Context
from tenuto.session.importers.json_access import (
    LOST_IMAGE,
    Fields,
    arguments_text,
    as_fields,
    as_items,
    field,
    items,
    plain_parts,
    text,
    texts,
    tokens,
    usage_or_none,
)


def patch_views(details: Fields) -> tuple[ResultView, ...]:
    """Return the diff that the details of a result carry, if they carry one."""
    path, hunks = text(details, "filePath"), items(details, "structuredPatch")
    if not path:
        return ()
    if not hunks and details.get("type") == "create" and text(details, "content"):
        lines = [f"+{line}" for line in text(details, "content").removesuffix("\n").split("\n")]
        diff = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *lines]) + "\n"
        return (DiffView(path=path, diff=diff, added=len(lines), created=True),)
    shown: list[str] = []
    for value in hunks:
        hunk = as_fields(value)
        starts = [tokens(hunk, name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        shown.append(f"@@ -{starts[0]},{starts[1]} +{starts[2]},{starts[3]} @@")
        shown += texts(hunk, "lines")
    if not shown:
        return ()
    added = sum(line.startswith("+") for line in shown)
    removed = sum(line.startswith("-") for line in shown)
    return (DiffView(path=path, diff="\n".join(shown) + "\n", added=added, removed=removed),)


_WRAPPED = re.compile(r"\s*<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
OPAQUE = "imported:claude-code"


def answer_parts(content: Any, context: Context) -> Iterator[AssistantPart]:
    """Yield the parts of an answer's blocks; what somebody else encrypted is of no use here and left out."""
    if isinstance(content, str):
        yield from [TextPart(text=content)] if content else []
        return
    for value in as_items(content):
        block = as_fields(value)
        match block.get("type"):
            case "text":
                yield from [TextPart(text=text(block, "text"))] if text(block, "text") else []
            case "thinking":
                yield from [ThinkingPart(text=text(block, "thinking"))] if text(block, "thinking") else []
            case "redacted_thinking":
                continue
            case "tool_use":
                arguments = arguments_text(block.get("input"))
                name = text(block, "name") or "unknown"
                yield ToolCallPart(id=text(block, "id"), name=name, arguments=arguments)
            case _:
                yield context.unknown_block(OPAQUE, value)


def content_parts(content: Any, context: Context) -> tuple[ContentPart, ...]:
    """Return what a user or a tool said: a text, or texts and images."""
    parts: list[ContentPart] = []
    for value in [content] if isinstance(content, str) else as_items(content):
        block = as_fields(value)
        if isinstance(value, str):
            parts += plain_parts(value)
        elif block.get("type") == "text":
            parts += plain_parts(text(block, "text"))
        elif block.get("type") == "image":
            source = field(block, "source")
            image = context.base64_image(text(source, "data"), text(source, "media_type"))
            parts.append(image or LOST_IMAGE)
        else:
            parts.append(context.unknown_part(value))
    return tuple(parts)


def _without_wrapper(part: ContentPart) -> ContentPart:
    """Return what a tool said of its failure without the tag that the program put around it."""
    found = _WRAPPED.fullmatch(part.text) if isinstance(part, TextPart) else None
    return TextPart(text=found[1]) if found is not None else part


def tool_result(block: Fields, details: Fields, context: Context) -> ToolResultMessage:
    """Return a result; `details` is what the program kept of it beside what the model was sent."""
    return ToolResultMessage(
        call_id=text(block, "tool_use_id"),
        name="",
        parts=tuple(map(_without_wrapper, content_parts(block.get("content"), context))),
        is_error=block.get("is_error") is True,
        ui=patch_views(details),
    )


def usage_of(usage: Fields) -> Usage | None:
    """Return the tokens of a call, `None` where there are none."""
    return usage_or_none(
        Usage(
            input=tokens(usage, "input_tokens"),
            cache_read=tokens(usage, "cache_read_input_tokens"),
            cache_write=tokens(usage, "cache_creation_input_tokens"),
            output=tokens(usage, "output_tokens"),
        )
    )
