"""What an import took along and what it left out, to be told to the user."""

from __future__ import annotations

from typing import Literal

import msgspec

from tenuto.session.log.log import Damage

MAX_LISTED = 20
"""Damaged lines that are listed; all of them are counted."""

Kind = Literal[
    "sidechain", "repeated", "orphan", "interrupted", "context", "unknown", "image", "unread_summary", "lost_parent"
]
PHRASES: dict[Kind, tuple[str, str]] = {
    "sidechain": ("line of a sub-agent left out", "lines of sub-agents left out"),
    "repeated": ("repeated line left out", "repeated lines left out"),
    "orphan": ("result without its call kept out of the view", "results without their calls kept out of the view"),
    "interrupted": ("call without a result marked as interrupted", "calls without results marked as interrupted"),
    "context": (
        "text that the other agent added kept out of the view",
        "texts that the other agent added kept out of the view",
    ),
    "unknown": ("piece of an unknown kind kept as it was", "pieces of unknown kinds kept as they were"),
    "image": ("image that could not be read", "images that could not be read"),
    "unread_summary": (
        "summary that only its provider can read; what it stood for is in the view again",
        "summaries that only their provider can read; what they stood for is in the view again",
    ),
    "lost_parent": ("entry whose place in the tree was lost", "entries whose places in the tree were lost"),
}


class Report(msgspec.Struct, kw_only=True):
    """Counts of one import. `damaged` is how many lines could not be read; `damages` are the first of them."""

    lines: int = 0
    prompts: int = 0
    answers: int = 0
    calls: int = 0
    compactions: int = 0
    branches: int = 0
    damaged: int = 0
    damages: list[Damage] = msgspec.field(default_factory=list[Damage])
    counts: dict[Kind, int] = msgspec.field(default_factory=dict[Kind, int])

    def add_damage(self, damage: Damage) -> None:
        """Count a damaged line."""
        self.damaged += 1
        if len(self.damages) < MAX_LISTED:
            self.damages.append(damage)

    def count(self, kind: Kind) -> None:
        """Count something that is not as it was in the source."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    @property
    def taken(self) -> str:
        """What was taken along, in a few words."""
        parts = [
            _number(self.prompts, "prompt", "prompts"),
            _number(self.answers, "answer", "answers"),
            _number(self.calls, "tool call", "tool calls"),
        ]
        if self.compactions:
            parts.append(_number(self.compactions, "compaction", "compactions"))
        if self.branches:
            parts.append(_number(self.branches, "branch", "branches"))
        return ", ".join(parts)

    @property
    def remarks(self) -> list[str]:
        """What is not as it was in the source, one line each."""
        found: list[str] = []
        if self.damaged:
            listed = "; ".join(str(damage) for damage in self.damages[:3])
            more = "; …" if self.damaged > 3 else ""
            found.append(f"{_number(self.damaged, 'damaged line', 'damaged lines')} skipped: {listed}{more}")
        for kind, (one, many) in PHRASES.items():
            if self.counts.get(kind):
                found.append(_number(self.counts[kind], one, many))
        return found


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
