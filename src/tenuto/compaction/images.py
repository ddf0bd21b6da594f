"""Images that have to leave the view because a request has too many bytes (R-053, R-054). Pure.

Tokens say nothing of it: an image is cheap to read and long to send. The oldest go first, each message by one edit of
the view that keeps its text; the history and the files of the images stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import HistoryEvent, Message, ToolResultMessage, UserMessage
from tenuto.protocol.part import ContentPart, ImagePart, TextPart, text_of

_BASE64_GROUP = 3
UNKNOWN_SIZE = 500_000
"""Bytes that an image is taken for whose size was not written down."""
MAX_CARRIED_IMAGE_BYTES = 4_000_000
"""Images of a message that a compaction sends again beside its summary; they cannot be left out later."""


def image_placeholder(part: ImagePart) -> str:
    """Return what stands for an image where none can be sent."""
    return f"[image{': ' + part.name if part.name else ''}]"


def encoded_size(image: ImagePart) -> int:
    """Return the bytes that an image takes in a request (base64)."""
    return -(-(image.size or UNKNOWN_SIZE) // _BASE64_GROUP) * 4


def image_bytes(messages: Sequence[Message]) -> int:
    """Return the bytes that all images of the messages take in a request."""
    return sum(encoded_size(image) for message in messages for image in images_of(message))


def images_of(message: HistoryEvent) -> list[ImagePart]:
    """Return the images of a message."""
    if not isinstance(message, UserMessage | ToolResultMessage):
        return []
    return [part for part in message.parts if isinstance(part, ImagePart)]


def left_out_text(count: int) -> str:
    """Return what stands for images that are left out."""
    what, them = ("An image was", "it") if count == 1 else (f"{count} images were", "them")
    return (
        f"[{what} left out here: the provider takes no request with {them}. Read the file if you need to see {them}.]"
    )


def drop_oldest_images(
    view: Sequence[Message],
    most_bytes: int,
    *,
    original: Callable[[int], HistoryEvent | None] = lambda _seq: None,
    in_effect: Mapping[int, ViewEdit] | None = None,
) -> tuple[ViewEdit, ...]:
    """Return the edits after which the view's images take at most `most_bytes`; empty when nothing can go.

    `original` finds the entry of a seq. `in_effect` are the edits in effect by target: what they do to a message's text
    goes on. Images in messages that are no entries of the log stay.
    """
    excess = image_bytes(view) - most_bytes
    edits: list[ViewEdit] = []
    for message in view:
        if excess <= 0:
            break
        images = images_of(message) if message.seq else []
        kept = len(images)
        while kept and excess > 0:
            excess -= encoded_size(images[-kept])
            kept -= 1
        if kept < len(images):
            whole = original(message.seq) or message
            before = (in_effect or {}).get(message.seq) or _whole_text(whole)
            text = left_out_text(len(images_of(whole)) - kept)
            edits.append(msgspec.structs.replace(before, image_text=text, keep_images=kept))
    return tuple(edits)


def _whole_text(message: HistoryEvent) -> ViewEdit:
    """Return an edit that leaves a message's text as it is."""
    length = len(text_of(message.parts)) if isinstance(message, UserMessage | ToolResultMessage) else 0
    return ViewEdit(target=message.seq, kind="truncated", keep_head=length)


def carry_images(edit: ViewEdit, whole: Message, shown: Message) -> ViewEdit:
    """Return a later edit of a message that goes on leaving out the images that an earlier one left out."""
    images, kept = images_of(whole), len(images_of(shown))
    if edit.kind != "truncated" or edit.image_text or kept >= len(images):
        return edit
    return msgspec.structs.replace(edit, image_text=left_out_text(len(images) - kept), keep_images=kept)


def bound_images(parts: tuple[ContentPart, ...], most_bytes: int = MAX_CARRIED_IMAGE_BYTES) -> tuple[ContentPart, ...]:
    """Return the parts with the oldest images replaced by a text until the others take at most `most_bytes`."""
    excess = sum(encoded_size(part) for part in parts if isinstance(part, ImagePart)) - most_bytes
    bounded: list[ContentPart] = []
    for part in parts:
        if isinstance(part, ImagePart) and excess > 0:
            excess -= encoded_size(part)
            bounded.append(TextPart(text=left_out_text(1)))
        else:
            bounded.append(part)
    return tuple(bounded)
