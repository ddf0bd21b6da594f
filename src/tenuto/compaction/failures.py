"""What a failed result says of its failure, in few words: the lines that name the error. Pure."""

from __future__ import annotations

from tenuto.compaction.serialize import clip
from tenuto.compaction.wording import is_error_line
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of

MAX_LINES = 3
MAX_LINE = 400
"""Characters of one line, and of the end of a result in which no line names an error."""


def error_text(result: ToolResultMessage, longest: int = MAX_LINE) -> str:
    """Return the last lines of a failed result that name the error; its end where none does.

    No line has more than `longest` characters. Empty for a result that did not fail, or that the user stopped.
    """
    if not result.is_error or result.interrupted:
        return ""
    text = text_of(result.parts).strip()
    named = [line.strip() for line in text.splitlines() if is_error_line(line)]
    if not named:
        return clip(text, longest // 4, longest)
    return "\n".join(one_line(line, longest) for line in named[-MAX_LINES:])


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters, and a mark where it was longer."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}…"
