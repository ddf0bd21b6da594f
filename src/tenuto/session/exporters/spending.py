"""Token use of a session: the requests in the order in which they were made, and the sums."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry, UsageEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent
from tenuto.protocol.usage import Usage
from tenuto.session.view_edits import compaction_of_edits

SUMMARIES = "summaries"
UNNAMED = "(model not named)"


class Request(msgspec.Struct, frozen=True):
    """One answered request. Sizes are tokens, `ts` is seconds since the epoch."""

    seq: int
    ts: float
    cached: int
    fresh: int
    output: int

    @property
    def sent(self) -> int:
        """Size of the request."""
        return self.cached + self.fresh


class Timeline(msgspec.Struct, frozen=True):
    """All requests, and each compaction with the number of requests before it."""

    requests: tuple[Request, ...]
    compactions: tuple[tuple[int, CompactionEntry], ...]


class Share(msgspec.Struct, frozen=True):
    """What one model, or one purpose, used in `calls` calls."""

    name: str
    calls: int
    usage: Usage


def read_timeline(entries: Iterable[HistoryEvent]) -> Timeline:
    """Return what the whole log says about sizes, in file order, which is the order of time."""
    requests: list[Request] = []
    compactions: list[tuple[int, CompactionEntry]] = []
    for entry in entries:
        if isinstance(entry, AssistantMessage) and entry.usage is not None and entry.usage.sent > 0:
            usage = entry.usage
            requests.append(
                Request(entry.seq, entry.ts, max(usage.cache_read, 0), usage.sent - usage.cache_read, usage.output)
            )
        elif isinstance(entry, CompactionEntry):
            compactions.append((len(requests), entry))
        elif isinstance(entry, ViewEditEntry) and entry.rung:
            compactions.append((len(requests), compaction_of_edits(entry)))
    return Timeline(tuple(requests), tuple(compactions))


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
