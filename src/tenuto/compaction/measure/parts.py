"""The window by part: which share of a request is system prompt, tools, summary, answers, results … Pure.

Estimates decide about the shares only: the parts always add up to the meter's number (R-024).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import get_args

import msgspec

from tenuto.compaction.measure.counted import SentThinking, estimate_thinking
from tenuto.compaction.measure.meter import ContextSize
from tenuto.compaction.measure.weight import estimate_message
from tenuto.protocol.context import ContextPart, PartName, SizePoint
from tenuto.protocol.entry import BranchSummaryEntry, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
)
from tenuto.protocol.part import TextPart, text_of
from tenuto.session.view.path import newest_of_kind
from tenuto.session.view.projection import frame_branch_summary
from tenuto.text.estimate import estimate_text

ORDER: tuple[PartName, ...] = get_args(PartName)
MAX_POINTS = 2_000
"""Entries that the curve is made of, at most."""
_BLOCKS: dict[str, PartName] = {
    "pins": "pins",
    "user-messages": "user",
    "approved-plan": "notes",
    "todo": "notes",
    "running-jobs": "notes",
}
_BRANCH_NOTES = frame_branch_summary(BranchSummaryEntry(summary="", from_seq=0)).partition("\n")[0]
"""How notes on a part that was left begin in the view."""
_BLOCK = re.compile(r"^<(pins|user-messages|approved-plan|todo|running-jobs)>$.*?^</\1>$", re.DOTALL | re.MULTILINE)


def divide(view: Sequence[Message], size: ContextSize, *, tools: int, instructions: int = 0) -> tuple[ContextPart, ...]:
    """Return the parts of a request whose size is known; they add up to `size.tokens`.

    `tools` and `instructions` (a part of the system prompt) are plain estimates.
    """
    shares: Counter[PartName] = Counter({"tools": tools})
    for place, message in enumerate(view):
        if place == 0 and isinstance(message, SystemMessage):
            whole = estimate_message(message)
            shares["instructions"] += min(instructions, whole)
            shares["system"] += whole - min(instructions, whole)
        else:
            shares.update(_shares_of(message, size.thinking))
    tokens = _scaled(shares, max(0, size.tokens - size.queued))
    tokens["queued"] = size.queued
    return tuple(ContextPart(name=name, tokens=tokens[name]) for name in ORDER if tokens[name] > 0)


def _shares_of(message: Message, thinking: SentThinking) -> Counter[PartName]:
    """Return the estimated tokens of a message by kind; together they are the estimate of the message."""
    if isinstance(message, SystemMessage):
        return _shares_of_summary(message)
    if isinstance(message, AssistantMessage):
        return _shares_of_answer(message, thinking)
    if isinstance(message, ToolResultMessage):
        name: PartName = "results"
    elif isinstance(message, DeveloperMessage):
        name = "pins" if message.kind.startswith("pin:") else "notes"
    else:
        name = "summary" if text_of(message.parts).startswith(_BRANCH_NOTES) else "user"
    return Counter({name: estimate_message(message)})


def _shares_of_summary(message: SystemMessage) -> Counter[PartName]:
    """Divide what a compaction put before the kept tail; what is in none of its blocks belongs to the summary."""
    shares: Counter[PartName] = Counter()
    behind = message.text.rpartition("</summary>")[2] if "</summary>" in message.text else ""
    for block in _BLOCK.finditer(behind):
        shares[_BLOCKS[block[1]]] += estimate_text(block[0])
    whole = estimate_message(message)
    return _fitted(shares, whole, "summary")


def _shares_of_answer(message: AssistantMessage, thinking: SentThinking) -> Counter[PartName]:
    texts = tuple(part for part in message.parts if isinstance(part, TextPart))
    answers = estimate_message(msgspec.structs.replace(message, parts=texts))
    calls = estimate_message(message) - answers
    thoughts = estimate_thinking(message) if thinking.goes_along(message) else 0
    return Counter({"answers": answers, "calls": calls, "thinking": thoughts})


def _fitted(shares: Counter[PartName], whole: int, rest: PartName) -> Counter[PartName]:
    """Give `rest` what the other shares leave of the whole; they are cut where they are more than it."""
    found = shares.total()
    if found > whole:
        shares = _scaled(shares, whole)
    shares[rest] += max(0, whole - shares.total())
    return shares


def _scaled(shares: Counter[PartName], total: int) -> Counter[PartName]:
    """Return the shares in the same proportions, as whole numbers that add up to `total`."""
    weight = shares.total()
    if weight <= 0:
        return Counter({"notes": total})
    exact: dict[PartName, float] = {name: total * share / weight for name, share in shares.items()}
    scaled: dict[PartName, int] = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(exact, key=lambda name: exact[name] - int(exact[name]), reverse=True)
    for name in by_rest[: total - sum(scaled.values())]:
        scaled[name] += 1
    return Counter(scaled)


def sizes_over_time(path: Sequence[HistoryEvent]) -> tuple[SizePoint, ...]:
    """Return the context's size at every counted answer, and before and after everything that made it smaller.

    Of a very long session it is the later part.
    """
    points: list[SizePoint] = []
    newest = list(islice(newest_of_kind(path, AssistantMessage, CompactionEntry, ViewEditEntry), MAX_POINTS))
    for entry in reversed(newest):
        if isinstance(entry, AssistantMessage):
            if entry.usage is not None and entry.usage.sent:
                points.append(SizePoint(seq=entry.seq, tokens=entry.usage.context_size))
        elif isinstance(entry, CompactionEntry) or entry.rung:
            if entry.tokens_before:
                points.append(SizePoint(seq=entry.seq, tokens=entry.tokens_before))
            points.append(SizePoint(seq=entry.seq, tokens=entry.tokens_after or 0, compacted=True))
    return tuple(points)
