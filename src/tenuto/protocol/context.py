"""What fills the model's window, as data: the same for every front-end (`/context`). Tokens."""

from __future__ import annotations

from typing import Literal

import msgspec

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
