"""What an image is called on the screen: beside the draft, in the queue and in the transcript. Pure."""

from __future__ import annotations

from tenuto.guard.sanitize import sanitize_line
from tenuto.protocol.part import ImagePart
from tenuto.text.figures import format_bytes
from tenuto.tui.render.width import truncate_middle

NAME_CELLS = 40


def image_words(image: ImagePart, number: int, middle: str = "·") -> str:
    """Return an image in one line: `[image 1 shot.png 820x600 · 120 KB]`; `number` counts from 1 in its prompt."""
    name = f" {truncate_middle(sanitize_line(image.name), NAME_CELLS)}" if image.name else ""
    size = f" {image.width}x{image.height}" if image.width else ""
    weight = f" {middle} {format_bytes(image.size)}" if image.size else ""
    return f"[image {number}{name}{size}{weight}]"
