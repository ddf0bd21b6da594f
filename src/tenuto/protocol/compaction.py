"""What a compaction strategy is given and returns (seed 004, DESIGN section 6).

A strategy proposes how the model's view becomes smaller; the core checks the proposal and writes it. Strategies of
others are named in settings as `module:ClassName` or passed to the Python API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import CompactionDetails, HistoryEvent, Message, ProviderItems
from tenuto.protocol.model import ModelClient, ModelFacts
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.usage import Usage


class RungError(Exception):
    """One way of making the view smaller came to nothing; `str(error)` says why in one line.

    `notice` is what the user has to be told even when another way succeeds (empty: nothing).
    """

    def __init__(self, reason: str, *, notice: str = "") -> None:
        super().__init__(reason)
        self.notice = notice


class NothingLeftError(RungError):
    """There is nothing that could be made smaller; the text says why."""


class StrategyError(RungError):
    """A strategy cannot be loaded, or does not behave like one; the text says what to change."""


class SessionView(Protocol):
    """A session that can be read and not changed."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def cwd(self) -> Path:
        """The working directory."""
        ...

    def path(self) -> Sequence[HistoryEvent]:
        """Return the entries from the root to the leaf."""
        ...

    def entries(self) -> Iterator[HistoryEvent]:
        """Yield the whole history in file order."""
        ...

    def get_llm_history(self) -> list[Message]:
        """Return what the model is sent now, system prompt first."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionModel:
    """The present model: what is known of it, and the client that talks to it."""

    facts: ModelFacts
    client: ModelClient


@dataclass(frozen=True, slots=True)
class CacheState:
    """What is known of the provider's prefix cache: whether the last request's prefix is likely to be in it still.

    `age` is seconds since the last request that wrote it, `None` when there was none.
    """

    is_warm: bool = False
    age: float | None = None


@dataclass(frozen=True, slots=True)
class CompactionContext:
    """What a strategy works on. Sizes are tokens.

    `history` is the present view, system prompt first; `token_count` its measured size; `reserved_context_size` what
    has to stay free of the window. `cancel` is set when the compaction is cancelled (the task is cancelled as well).
    """

    history: Sequence[Message]
    token_count: int
    max_context_size: int
    reserved_context_size: int
    llm: CompactionModel
    reason: CompactionReason = "manual"
    focus: str = ""
    previous_summary: str = ""
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    cache: CacheState = CacheState()


class CompactionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal in full: `replacement` stands before the entries from `first_kept_index` (a seq) on.

    With `first_kept_index == 0` nothing is replaced and only `edits` apply. `rung` names what made it; `usage` is what
    that cost; `notes` are lines for the user. `from_extension` names the extension that supplied it.
    """

    replacement: tuple[Message, ...] = ()
    first_kept_index: int = 0
    edits: tuple[ViewEdit, ...] = ()
    summary: str = ""
    details: CompactionDetails | None = None
    usage: Usage | None = None
    rung: str = ""
    provider_items: ProviderItems | None = None
    from_extension: str = ""
    notes: tuple[str, ...] = ()


CompactionOutput: TypeAlias = Sequence[Message] | CompactionOutcome | None
"""A plain sequence is the whole new view: its longest common tail with the present one stays, the rest replaces."""


class CompactionStrategy(Protocol):
    """One way of making the view smaller."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutput:
        """Return the proposal, or `None` for leaving everything as it is. Whatever it raises is reported."""
        ...
