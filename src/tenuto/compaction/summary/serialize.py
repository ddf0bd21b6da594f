"""A conversation as plain text for the summariser: something to report on, not something to continue (DESIGN 5).

Pure. Everything is bounded: results and arguments by head and tail, thinking by its head, texts as a whole up to a
limit, images by a placeholder (R-052). Error lines and exact names from what is left out of a result are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tenuto.compaction.images import image_placeholder
from tenuto.compaction.plan.entries import Visible, visible_entry
from tenuto.compaction.summary.summary import LONGEST_NAME, MAX_EXACT_NAMES, exact_names
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, ShellEntry
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    HistoryEvent,
    Message,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ContentPart, TextPart, ThinkingPart, WebSearch, searches_in
from tenuto.session.view.projection import show_entry
from tenuto.text.call_summary import read_arguments
from tenuto.text.estimate import estimate_text
from tenuto.text.writable import keep_within


def convert_to_llm(entries: Iterable[HistoryEvent]) -> list[Message]:
    """Return the messages that entries are to the model; what it does not see (state, notices) is left out."""
    return [message for message in map(show_entry, entries) if message is not None]


def serialize_conversation(messages: Iterable[HistoryEvent]) -> str:
    """Return messages, or entries as they are, as one bounded text: something to report on, not to go on with."""
    return serialize(entry for entry in map(visible_entry, messages) if entry is not None)


SEPARATOR = "\n\n"
_ERROR_WORDS = ("Error:", "error:", "FAILED", "Exception", "panicked", "fatal:")
_ERROR_LINE = 200
_MAX_ERROR_LINES = 3
_TAGS = ("conversation", "previous-summary")
STEP_TIGHTENING = (2, 4, 8, 16, 32)
"""What the bounds of a single step that is too large for a request are divided by, one after the other."""
_NO_ROOM = 200
"""Tokens below which a part of the conversation is not worth a request."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Characters that are kept of each kind of text, and exact names of what is left out of a result."""

    result_head: int = 2_000
    result_tail: int = 500
    thinking: int = 1_000
    text: int = 8_000
    names: int = MAX_EXACT_NAMES

    def tightened(self, divisor: int) -> Bounds:
        """Return bounds that are `divisor` times smaller, for a conversation that is far too large."""
        return Bounds(
            result_head=self.result_head // divisor,
            result_tail=self.result_tail // divisor,
            thinking=self.thinking // divisor,
            text=self.text // divisor,
            names=self.names // divisor,
        )


BOUNDS = Bounds()


def serialize(entries: Iterable[Visible], bounds: Bounds = BOUNDS) -> str:
    """Return the entries as one text."""
    return SEPARATOR.join(serialize_blocks(entries, bounds))


def serialize_blocks(entries: Iterable[Visible], bounds: Bounds = BOUNDS) -> list[str]:
    """Return one text for each entry that has anything to say, in order."""
    blocks = (_serialize_entry(entry, bounds) for entry in entries)
    return [keep_within(block, *_TAGS) for block in blocks if block]


def group_steps(entries: Iterable[Visible]) -> list[list[Visible]]:
    """Return the entries in order, an answer together with the results of its calls."""
    groups: list[list[Visible]] = []
    by_call: dict[str, list[Visible]] = {}
    for entry in entries:
        if isinstance(entry, ToolResultMessage) and entry.call_id in by_call:
            by_call[entry.call_id].append(entry)
            continue
        groups.append([entry])
        if isinstance(entry, AssistantMessage):
            by_call.update((call.id, groups[-1]) for call in entry.tool_calls)
    return groups


def serialize_step(step: Iterable[Visible], room: int, bounds: Bounds = BOUNDS) -> str:
    """Return a step as one text of at most `room` tokens: every entry of it bounded more strictly until it fits."""
    entries = tuple(step)
    text = serialize(entries, bounds)
    for divisor in STEP_TIGHTENING:
        if estimate_text(text) <= room:
            return text
        text = serialize(entries, bounds.tightened(divisor))
    tokens = estimate_text(text)
    return text if tokens <= room else _fit_block(text, tokens, room)


def _serialize_entry(entry: Visible, bounds: Bounds) -> str:
    match entry:
        case UserMessage():
            return _labelled("User", _clip_middle(_content(entry.parts), bounds.text))
        case AssistantMessage():
            return _serialize_assistant(entry, bounds)
        case ToolResultMessage():
            return _serialize_result(entry, bounds)
        case DeveloperMessage():
            return _labelled("Developer", _clip_middle(entry.text, bounds.text))
        case ShellEntry():
            output = _clip_result(entry.output, bounds)
            status = f"\n(exit code {entry.exit_code})" if entry.exit_code else ""
            status = "\n(interrupted)" if entry.interrupted else status
            return _labelled("User ran", f"{entry.command}\n{output}{status}".rstrip())
        case BranchSummaryEntry():
            return _labelled("Branch summary", _clip_middle(entry.summary, bounds.text))
        case ExtensionEntry():
            return _labelled("Developer", _clip_middle(_content(entry.parts), bounds.text))


def _labelled(label: str, text: str) -> str:
    return f"[{label}]: {text}" if text else ""


def _content(parts: Sequence[ContentPart]) -> str:
    texts = [part.text if isinstance(part, TextPart) else image_placeholder(part) for part in parts]
    return "\n".join(text for text in texts if text)


def _serialize_assistant(message: AssistantMessage, bounds: Bounds) -> str:
    thinking = "\n".join(part.text for part in message.parts if isinstance(part, ThinkingPart) and part.text)
    text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart) and part.text)
    calls = "; ".join(f"{call.name}({_arguments(call.arguments, bounds)})" for call in message.tool_calls)
    searches = "\n".join(_searched(search, bounds) for search in searches_in(message.parts))
    sections = (
        _labelled("Searched", searches),
        _labelled("Assistant thinking", _clip_head(thinking, bounds.thinking)),
        _labelled("Assistant", _clip_middle(text, bounds.text)),
        _labelled("Assistant tool calls", calls),
    )
    return SEPARATOR.join(section for section in sections if section)


def searched(search: WebSearch) -> str:
    """Return a web search as it stands in a transcript: what was looked for, and the pages that were found."""
    pages = ", ".join(f"{source.title} <{source.url}>" if source.title else source.url for source in search.sources)
    found = f"failed: {search.error}" if search.error else pages or "nothing that is named"
    return f"{search.query or '(query not known)'} → {found}"


def _searched(search: WebSearch, bounds: Bounds) -> str:
    return _clip_middle(" ".join(searched(search).split()), bounds.result_head)


def _arguments(arguments: str, bounds: Bounds) -> str:
    """Return JSON arguments as `key="value", …`, each value bounded."""
    values = read_arguments(arguments)
    if values is None:
        return _clip_output(arguments, bounds)
    return ", ".join(f"{key}={_argument(value, bounds)}" for key, value in values.items())


def _argument(value: Any, bounds: Bounds) -> str:
    if isinstance(value, str):
        return json.dumps(_clip_output(value, bounds), ensure_ascii=False)
    return _clip_output(json.dumps(value, ensure_ascii=False), bounds)


def _serialize_result(message: ToolResultMessage, bounds: Bounds) -> str:
    text = _clip_result(_content(message.parts), bounds) or "(no output)"
    state = "(interrupted) " if message.interrupted else "(failed) " if message.is_error else ""
    return _labelled("Tool result", state + text)


def _clip_head(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [… {len(text) - limit} characters left out]"


def _clip_middle(text: str, limit: int) -> str:
    return clip(text, limit * 3 // 4, limit - limit * 3 // 4)


def clip(text: str, head: int, tail: int) -> str:
    """Return at most `head` + `tail` characters of `text` and a mark that says how many are missing between."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[len(text) - tail :]}"


def _clip_result(text: str, bounds: Bounds) -> str:
    """Bound an output, keeping exact names and error lines of the part that goes."""
    return _clip_output(text, bounds, bounds.names)


def _clip_output(text: str, bounds: Bounds, most_names: int = 0) -> str:
    """Bound an output or an argument, keeping error lines and up to `most_names` exact names of the part that goes."""
    head, tail = bounds.result_head, bounds.result_tail
    if len(text) <= head + tail:
        return text
    errors = _error_lines(text, head, len(text) - tail)
    kept = "\n".join((text[:head], *errors, text[len(text) - tail :]))
    # A name that is cut in two belongs to what goes.
    going = text[max(0, head - LONGEST_NAME) : len(text) - tail + LONGEST_NAME] if most_names else ""
    names = [name for name in exact_names(going) if name not in kept][:most_names]
    had = f"; it had {', '.join(f'`{name}`' for name in names)}" if names else ""
    left_out = f"[… {len(text) - head - tail} characters left out{had} …]"
    return "\n".join((text[:head], left_out, *errors, text[len(text) - tail :]))


def _error_lines(text: str, start: int, end: int) -> list[str]:
    """Return a few lines between `start` and `end` that name an error, in order."""
    lines: dict[int, str] = {}
    for word in _ERROR_WORDS:
        at = text.find(word, start, end)
        if at < 0:
            continue
        begin = max(start, text.rfind("\n", start, at) + 1, at - _ERROR_LINE)
        stop = text.find("\n", at, end)
        lines.setdefault(begin, text[begin : min(stop if stop >= 0 else end, begin + 2 * _ERROR_LINE)])
    return [lines[begin] for begin in sorted(lines)][:_MAX_ERROR_LINES]


def take_blocks(blocks: Sequence[str], room: int) -> tuple[list[str], int]:
    """Return as many leading blocks as fit `room` tokens, and how many of `blocks` that uses up; at least one.

    A block that is larger than the room by itself is cut in its middle.
    """
    taken: list[str] = []
    used = 0
    for block in blocks:
        tokens = estimate_text(block) + 1
        if taken and used + tokens > room:
            break
        if tokens > room:
            block = _fit_block(block, tokens, room)
        taken.append(block)
        used += tokens
        if used > room:
            break
    return taken, len(taken)


def _fit_block(block: str, tokens: int, room: int) -> str:
    """Cut the middle out of a block until it fits; the density of what stays may differ, so it is measured again."""
    keep = len(block) * max(room, _NO_ROOM) // tokens
    while keep > _NO_ROOM:
        clipped = _clip_middle(block, keep)
        if estimate_text(clipped) <= room:
            return clipped
        keep = keep * 3 // 4
    return _clip_middle(block, keep)
