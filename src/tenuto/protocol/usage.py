"""Tokens: what a model call used, and what fills the context, as data."""

from __future__ import annotations

from typing import Literal

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one call. `input` excludes what was read from or written to the cache.

    `reasoning` is the share of `output` that was reasoning; `unsent_reasoning` the share of that which is not sent
    back with the next request. `cost` is US dollars, `None` when no price is known. `searches` counts the provider's
    web searches; `search_cost` is their share of `cost`, 0 where their price is not known.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    unsent_reasoning: int = 0
    cost: float | None = None
    searches: int = 0
    search_cost: float = 0.0

    @property
    def sent(self) -> int:
        """Tokens of the request itself, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def context_size(self) -> int:
        """Tokens that the next request starts from (DESIGN section 4)."""
        return self.sent + self.output - self.unsent_reasoning

    @property
    def total(self) -> int:
        """Tokens that were read and written."""
        return self.sent + self.output

    def __sub__(self, earlier: Usage) -> Usage:
        """Return what was used since `earlier`, which is a part of this; without a price where none is known now."""
        cost = None if self.cost is None else self.cost - (earlier.cost or 0.0)
        return Usage(
            input=self.input - earlier.input,
            cache_read=self.cache_read - earlier.cache_read,
            cache_write=self.cache_write - earlier.cache_write,
            output=self.output - earlier.output,
            reasoning=self.reasoning - earlier.reasoning,
            unsent_reasoning=self.unsent_reasoning - earlier.unsent_reasoning,
            cost=cost,
            searches=self.searches - earlier.searches,
            search_cost=self.search_cost - earlier.search_cost,
        )

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both; a missing price counts as nothing beside a known one."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            unsent_reasoning=self.unsent_reasoning + other.unsent_reasoning,
            cost=sum(costs) if costs else None,
            searches=self.searches + other.searches,
            search_cost=self.search_cost + other.search_cost,
        )


PartName = Literal[
    "system",
    "instructions",
    "tools",
    "summary",
    "pins",
    "user",
    "answers",
    "thinking",
    "calls",
    "results",
    "notes",
    "queued",
]


class ContextPart(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of content and its share of the request."""

    name: PartName
    tokens: int


class SizePoint(msgspec.Struct, frozen=True, kw_only=True):
    """How large the context was at an entry; `compacted` says that it became smaller there, by that entry."""

    seq: int
    tokens: int
    compacted: bool = False


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """The window by part, the numbers that decide about compaction, and the size over the session.

    `parts` add up to `tokens`, the meter's number. `free` is what is left under the `trigger`, `reserve` what is held
    back above it, for the answer: the larger of output budget and the setting `reserve_tokens`. `known` is false where
    `window` is a default. `next_request`: nothing was sent yet, so that the numbers are those of the first request.
    `facts` are further rows of name and text.
    """

    parts: tuple[ContextPart, ...]
    tokens: int
    estimated: bool
    window: int
    known: bool
    trigger: int
    free: int
    reserve: int
    next_request: bool = False
    history: tuple[SizePoint, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
