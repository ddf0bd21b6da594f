"""Token use of a session: what each model and each purpose used."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry, UsageEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent
from tenuto.protocol.usage import Usage

SUMMARIES = "summaries"
UNNAMED = "(model not named)"


class Share(msgspec.Struct, frozen=True):
    """What one model, or one purpose, used in `calls` calls."""

    name: str
    calls: int
    usage: Usage


def read_shares(entries: Iterable[HistoryEvent]) -> list[Share]:
    """Return what each model used, what summaries and unfinished calls used, and with more than one the sum."""
    sums: dict[str, Share] = {}
    for entry in entries:
        match entry:
            case AssistantMessage():
                name = entry.model or UNNAMED
            case CompactionEntry() | BranchSummaryEntry():
                name = SUMMARIES
            case UsageEntry():
                name = entry.purpose or entry.model or "other"
            case _:
                continue
        if entry.usage is not None:
            share = sums.get(name, Share(name, 0, Usage()))
            sums[name] = Share(name, share.calls + 1, share.usage + entry.usage)
    shares = list(sums.values())
    if len(shares) > 1:
        shares.append(Share("all", sum(share.calls for share in shares), add_up(shares)))
    return shares


def add_up(shares: Iterable[Share]) -> Usage:
    """Return the sum of shares."""
    total = Usage()
    for share in shares:
        total += share.usage
    return total
