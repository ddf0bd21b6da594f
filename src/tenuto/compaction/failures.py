"""What a failed result says of its failure, in few words: the lines that name the error. Pure."""

from __future__ import annotations

import re

from tenuto.compaction.wording import is_error_line, is_opaque
from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of

MAX_LINES = 3
MAX_LINE = 400
"""Characters of one line."""
_ADDED = re.compile(r"\[.*\]")
_ENDED = re.compile(
    r"\[?(?:(?:command|process) (?:exited|finished|failed) with )?(?:exit )?(?:code|status):? \d+(?:\.|\]| · .*\])?",
    re.IGNORECASE,
)
"""What says only that a command failed."""
_FRAME = re.compile(r"at .+:\d+\)?|(?:>\s*)?\d+ ?\|.*|[\s~^+|─━=-]+")
"""A frame of a stack, a line of code that is shown beside its number, a pointer or a rule."""


def error_text(result: ToolResultMessage, longest: int = MAX_LINE) -> str:
    """Return the last lines of a failed result that name the error, with the last ones of all where these are few.

    No line has more than `longest` characters. Empty for a result that did not fail, that the user stopped, or that has
    no words.
    """
    if not result.is_error or result.interrupted:
        return ""
    output = sanitize_for_terminal(text_of(result.parts))
    lines = [line for line in map(str.strip, output.splitlines()) if line and not is_opaque(line)]
    lines = [line for line in lines if not _ENDED.fullmatch(line)]
    lines = [line for line in lines if not _FRAME.fullmatch(line)] or lines
    named = [place for place, line in enumerate(lines) if is_error_line(line)][-MAX_LINES:]
    # What a tool adds behind an output stands in brackets.
    others = [place for place, line in enumerate(lines) if place not in named and not _ADDED.fullmatch(line)]
    shown = sorted(named + others[max(0, len(others) - MAX_LINES + len(named)) :])
    return "\n".join(one_line(lines[place], longest) for place in shown)


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters, and a mark where it was longer."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}…"
