"""Prompts as clients send them: texts, images, links to files, and the content of files and of what else they have."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from tenuto.core.agent.attachments import ImageTooLargeError, NotAnImageError, keep_image
from tenuto.core.state.live import LiveSession
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.text.figures import format_bytes
from tenuto.tool.image import MAX_IMAGE_BYTES

PromptBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
_LINES = re.compile(r"L?(\d+)(?:[-:]L?(\d+))?\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class ContentError(ValueError):
    """A prompt that cannot be taken as it is; the message says why."""


def read_prompt(blocks: Sequence[PromptBlock], live: LiveSession) -> tuple[ContentPart, ...]:
    """Return what a prompt says. Links to files become mentions, which the guard judges. Raises `ContentError`.

    Images are kept in the session, and so are embedded files that are neither text nor image.
    """
    written: list[str] = []
    embedded: list[str] = []
    images: list[ImagePart] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                written.append(block.text)
            case ImageContentBlock():
                images.append(_image(block.data, block.uri or "", live))
            case ResourceContentBlock():
                written.append(name_resource(block.uri, block.name, live.session.cwd))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as resource):
                _take_blob(resource, live, images, embedded)
            case EmbeddedResourceContentBlock(resource=resource):
                embedded.append(frame_resource(resource.uri, getattr(resource, "text", ""), live.session.cwd))
            case _:
                raise ContentError("sound cannot be sent; write what it says")
    text = "\n\n".join(filter(None, ("".join(written).strip(), *embedded)))
    parts: tuple[ContentPart, ...] = (*((TextPart(text=text),) if text else ()), *images)
    if not parts:
        raise ContentError("the prompt is empty")
    return parts


def name_resource(uri: str, name: str, cwd: Path) -> str:
    """Return how a link stands in a prompt: a file as a mention, with its lines if it has any, all else as a link."""
    path = file_path(uri)
    if path is None:
        return f"[{name or uri}]({uri})"
    shown = shown_path(path, cwd)
    lines = _LINES.match(urlsplit(uri).fragment)
    place = f":{lines[1]}-{lines[2] or lines[1]}" if lines is not None else ""
    return f'@"{shown}"{place}' if re.search(r"\s", shown) else f"@{shown}{place}"


def frame_resource(uri: str, text: str, cwd: Path) -> str:
    """Return embedded content between tags that say what it is; it is data and no request."""
    path = file_path(uri)
    name = shown_path(path, cwd) if path is not None else uri
    return f'<resource name="{name.replace(chr(34), "%22")}">\n{text.rstrip()}\n</resource>'


def file_path(uri: str) -> str | None:
    """Return the path of a file URL, `None` for every other address."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return unquote(parts.path)
    return uri if uri.startswith("/") else None


def shown_path(path: str, cwd: Path) -> str:
    """Return a path as users read it: relative inside the directory of the session."""
    try:
        return str(Path(path).relative_to(cwd))
    except ValueError:
        return path


def _take_blob(resource: BlobResourceContents, live: LiveSession, images: list[ImagePart], embedded: list[str]) -> None:
    kind = resource.mime_type or mimetypes.guess_type(resource.uri)[0] or ""
    if kind.startswith("image/"):
        images.append(_image(resource.blob, resource.uri, live))
        return
    data = _decode(resource.blob)
    name = _UNSAFE.sub("_", os.path.basename(file_path(resource.uri) or resource.uri))[-80:] or "file"  # noqa: PTH119
    try:
        kept = live.tool_context.store_output(f"sent-{name}", data)
    except OSError as error:
        raise ContentError(f"{name} cannot be kept: {error.strerror or error}") from error
    embedded.append(frame_resource(resource.uri, f"{format_bytes(len(data))}; `read` shows {kept}", live.session.cwd))


def _image(data: str, uri: str, live: LiveSession) -> ImagePart:
    name = os.path.basename(file_path(uri) or "")  # noqa: PTH119 - a text, and not on this disk perhaps
    try:
        return keep_image(live.session.store, _decode(data), name)
    except NotAnImageError:
        raise ContentError(f"{name or 'an image'} is no PNG, JPEG, GIF or WebP image") from None
    except ImageTooLargeError:
        raise ContentError(
            f"{name or 'an image'} is too large: at most {format_bytes(MAX_IMAGE_BYTES)} can be sent"
        ) from None
    except OSError as error:
        raise ContentError(f"{name or 'an image'} cannot be kept: {error.strerror or error}") from error


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ContentError(f"what is embedded is not base64: {error}") from None
