"""What the SDK hands over, as our data; and our data as the output of a tool."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tenuto.guard.foreign import SERVER_TAG, frame
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import ContentPart, TextPart
from tenuto.text.bounding import shorten
from tenuto.text.writable import to_json
from tenuto.tool.image import MAX_IMAGE_BYTES, image_facts
from tenuto.tool.mcp.naming import tool_names
from tenuto.tool.mcp.remote import (
    Listing,
    RemoteBlock,
    RemoteFile,
    RemoteImage,
    RemotePrompt,
    RemoteResource,
    RemoteResult,
    RemoteTool,
)
from tenuto.tool.output import ToolOutput, clean_text, format_size
from tenuto.tool.run.context import ToolContext

if TYPE_CHECKING:
    from mcp import types

MOST_TOOLS = 1_000
DESCRIPTION_CHARS = 2_000
SCHEMA_BYTES = 20_000
"""The most that one tool may say of itself: it stands in every request."""
_SMALL = 512
_DROPPED = frozenset({"title", "$schema", "examples"})
"""What a schema has for people; it costs tokens in every request."""


def listing_of(
    server: str,
    version: str,
    tools: Sequence[types.Tool],
    prompts: Sequence[types.Prompt],
    resources: Sequence[types.Resource],
) -> Listing:
    """Return what a server has, bounded, the tools under their public names and in the order of these."""
    left_out: list[str] = []
    own = {tool.name: tool for tool in tools[:MOST_TOOLS]}
    made: list[RemoteTool] = []
    for public, name in tool_names(server, own).items():
        tool = own[name]
        parameters = to_json(_slim(tool.input_schema))
        if len(parameters) > SCHEMA_BYTES:
            left_out.append(f"{name} (its schema has {format_size(len(parameters))})")
            continue
        description = shorten(clean_text(tool.description or tool.title or ""), DESCRIPTION_CHARS)
        schema = ToolSchema(name=public, description=description, parameters=msgspec.Raw(parameters))
        hint = tool.annotations is not None and tool.annotations.read_only_hint is True
        made.append(RemoteTool(name=name, schema=schema, says_it_reads=hint))
    if len(tools) > MOST_TOOLS:
        left_out.append(f"{len(tools) - MOST_TOOLS:,} tools beyond {MOST_TOOLS:,}")
    return Listing(
        version=version,
        tools=tuple(sorted(made, key=lambda tool: tool.schema.name)),
        prompts=tuple(map(_prompt, prompts[:_SMALL])),
        resources=tuple(RemoteResource(uri=one.uri, name=one.name) for one in resources[:_SMALL]),
        left_out=tuple(left_out),
    )


def _prompt(prompt: types.Prompt) -> RemotePrompt:
    arguments = prompt.arguments or []
    return RemotePrompt(
        name=prompt.name,
        description=shorten(clean_text(prompt.description or prompt.title or ""), _SMALL),
        arguments=tuple(argument.name for argument in arguments),
        needed=tuple(argument.name for argument in arguments if argument.required),
    )


def _slim(schema: dict[str, object]) -> dict[str, object]:
    """Return a schema of an object without what no model needs; the names of properties are no keywords."""
    slim = {key: value for key, value in schema.items() if key not in _DROPPED}
    properties = slim.get("properties")
    if isinstance(properties, dict):
        slim["properties"] = {
            name: _slim(one) if isinstance(one, dict) else one  # pyright: ignore[reportUnknownArgumentType]
            for name, one in properties.items()  # pyright: ignore[reportUnknownVariableType]
        }
    return {"type": "object", "properties": {}, **slim} if "type" in schema and schema["type"] == "object" else slim


def tool_result(result: types.CallToolResult) -> RemoteResult:
    """Return what came of a call. Structured content is given where no text says the same."""
    blocks = [block for one in result.content for block in _block(one)]
    if result.structured_content is not None and not any(isinstance(block, str) for block in blocks):
        blocks.append(msgspec.json.format(to_json(result.structured_content)).decode())
    return RemoteResult(blocks=tuple(blocks), is_error=result.is_error)


def prompt_result(result: types.GetPromptResult) -> RemoteResult:
    """Return the texts and images of a prompt's messages, in their order."""
    return RemoteResult(blocks=tuple(block for one in result.messages for block in _block(one.content)))


def resource_result(result: types.ReadResourceResult) -> RemoteResult:
    """Return the contents of a resource."""
    return RemoteResult(blocks=tuple(_contents(one) for one in result.contents))


def _block(block: types.ContentBlock) -> Iterable[RemoteBlock]:
    match block.type:
        case "text":
            yield block.text
        case "image":
            yield _binary(block.data, block.mime_type, "")
        case "audio":
            yield _binary(block.data, block.mime_type, "")
        case "resource_link":
            yield f"[resource {block.uri} {block.title or block.name}{_dash(block.description)}]"
        case "resource":
            yield _contents(block.resource)


def _dash(text: str | None) -> str:
    return f": {text}" if text else ""


def _contents(contents: types.TextResourceContents | types.BlobResourceContents) -> RemoteBlock:
    text = getattr(contents, "text", None)
    if isinstance(text, str):
        return text
    return _binary(getattr(contents, "blob", ""), contents.mime_type or "", contents.uri)


def _binary(text: str, media_type: str, name: str) -> RemoteBlock:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return f"[{media_type or 'data'} that is not valid base64]"
    return RemoteImage(data) if image_facts(data) is not None else RemoteFile(data, media_type, name)


# --- as the output of a tool ---


def output_of(result: RemoteResult, context: ToolContext) -> ToolOutput:
    """Return a result as the model gets it: texts in one frame, images and files stored."""
    parts, texts = parts_of(result, context)
    text = frame_result("\n".join(texts)) if texts else "The call returned nothing." if not parts else ""
    whole: tuple[ContentPart, ...] = (*([TextPart(text=text)] if text else []), *parts)
    return ToolOutput(parts=whole, is_error=result.is_error)


def parts_of(result: RemoteResult, context: ToolContext) -> tuple[list[ContentPart], list[str]]:
    """Return the images of a result, stored, and its texts, with a line for each other file."""
    images: list[ContentPart] = []
    texts: list[str] = []
    for block in result.blocks:
        match block:
            case str():
                texts.append(clean_text(block))
            case RemoteImage(data):
                facts = image_facts(data)
                if facts is None or len(data) > MAX_IMAGE_BYTES:
                    texts.append(f"[an image of {format_size(len(data))}, which is too large to be sent]")
                else:
                    images.append(context.store_image(data, facts))
            case RemoteFile(data, media_type, name):
                path = context.store_output(f"{context.call_id}.bin", data)
                texts.append(f"[{media_type or 'data'} of {format_size(len(data))}{_dash(name)}, in {path}]")
    return images, texts


def frame_result(text: str) -> str:
    """Return what a server said as the model gets it: as data."""
    return frame(text, SERVER_TAG)
