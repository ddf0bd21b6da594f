"""Shortening a result that stands in the kept tail, as an edit of the view; the history stays whole (DESIGN 5)."""

from __future__ import annotations

import msgspec

from tenuto.compaction.meter import IMAGE_TOKENS, MESSAGE_OVERHEAD
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import ImagePart, text_of
from tenuto.text.estimate import estimate_text

MIN_KEEP_CHARS = 2_000
"""A shortened result always keeps this many characters."""
MIN_KEEP_TOKENS = MIN_KEEP_CHARS // 4
HEAD_SHARE = 0.75


class Truncation(msgspec.Struct, frozen=True):
    """An edit and the estimated tokens of the whole message once it is applied."""

    edit: ViewEdit
    tokens: int


def truncate_result(message: ToolResultMessage, limit: int) -> Truncation | None:
    """Return the edit that brings the text of a result to about `limit` tokens; `None` if it is short enough.

    Head and tail stay, the end because that is where commands put their errors.
    """
    text = text_of(message.parts)
    tokens = estimate_text(text)
    if tokens <= limit or len(text) <= MIN_KEEP_CHARS:
        return None
    keep = max(MIN_KEEP_CHARS, len(text) * limit // tokens)
    if keep >= len(text):
        return None
    head = int(keep * HEAD_SHARE)
    tail = keep - head
    edit = ViewEdit(
        target=message.seq, kind="truncated", text=_notice(message, len(text), keep), keep_head=head, keep_tail=tail
    )
    rest = MESSAGE_OVERHEAD + sum(IMAGE_TOKENS for part in message.parts if isinstance(part, ImagePart))
    shown = estimate_text(text[:head]) + estimate_text(edit.text) + estimate_text(text[-tail:])
    return Truncation(edit, rest + shown)


def _notice(message: ToolResultMessage, size: int, keep: int) -> str:
    where = f"; all of it is in {message.output_path}" if message.output_path else "; run the call again for the rest"
    return f"\n[{size - keep} of {size} characters were left out here when the conversation was compacted{where}]\n"
