"""What a session has of compactions: what is asked of one, what waits, and whether an automatic one may run."""

from __future__ import annotations

import asyncio
import contextlib
from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from tenuto.compaction.ways.environment import BoundContext, PreparedSummary
    from tenuto.compaction.ways.validate import Proposal
    from tenuto.protocol.compaction import CompactionStrategy
    from tenuto.protocol.model import ModelFacts
    from tenuto.protocol.operation import CompactionReason, CompactSessionOperation
    from tenuto.protocol.usage import Usage


class CompactionRequest(Struct, frozen=True, kw_only=True):
    """What is asked of one compaction, from whoever wants it down to the plan and the extensions."""

    reason: CompactionReason
    submission_id: str = ""
    focus: str = ""
    """Extra guidance for the summary."""
    will_retry: bool = False
    """Whether the request that was refused is made again afterwards."""
    first_kept: int = 0
    """The seq that the kept tail has to begin with (0: where the plan cuts)."""
    undoing: int = 0
    """The seq of a compaction that counts as undone, and is undone by the same step (0: none)."""
    attempt: int = 0
    """Counts from 0: each keeps half of what the one before kept."""
    observed: int = 0
    """Tokens of a request that the provider took and that filled the window (0: it was refused, or there was none)."""
    successor: ModelFacts | None = None
    """The model that the session changes to afterwards: the result has to fit the window of that one."""

    @classmethod
    def of(cls, operation: CompactSessionOperation) -> CompactionRequest:
        """Return what an operation asks for."""
        return cls(
            reason=operation.reason,
            submission_id=operation.submission_id,
            focus=operation.focus or "",
            will_retry=operation.will_retry,
            first_kept=operation.first_kept,
            undoing=operation.undoing,
        )


class Wish(Struct, frozen=True):
    """A compaction that a hook or an extension, `by` its name, asks for; made at the next boundary of a task."""

    by: str
    focus: str = ""


class Asked(Struct, frozen=True):
    """A compaction that is made at the end of the step. `by` is empty where the model asked for it."""

    focus: str = ""
    by: str = ""


class ProposedCompaction(Struct, frozen=True):
    """A compaction that may be written; `duration` is how long it took to make, in seconds."""

    request: CompactionRequest
    context: BoundContext
    proposal: Proposal
    duration: float


class PendingCompaction(Struct, frozen=True):
    """A compaction that was proposed and waits for the user. `summary` is the part of it that can be edited.

    `held_before` and `held_after` are what the session held of usage without and with the cost of this one.
    """

    proposed: ProposedCompaction
    summary: str
    held_before: Usage
    held_after: Usage


MAX_INEFFECTIVE = 2
GROWTH_AFTER_FAILURE = 1.1
LEAST_GAIN = 0.1
"""Part of a request by which a compaction makes the next one smaller, if it is of any use where nothing else helps."""


class AutomaticCompaction(Struct):
    """Whether an automatic compaction may run: not after two that were of no use, nor too soon after one that failed.

    One whose next *measured* request is not under the limit that it had was of no use; twice in a row ends them until
    the user acts (R-005). After one that failed the next waits until there is more (R-012). Token counts.
    """

    ineffective: int = 0
    done: int = 0
    """How many compactions of any kind this run has had."""
    _is_futile: bool = False
    _before: int = 0
    _limit: int = 0
    _waits_for_measure: bool = False
    _not_under: float = 0.0

    @property
    def is_stopped(self) -> bool:
        """Whether they have been of no use too often."""
        return self.ineffective >= MAX_INEFFECTIVE

    @property
    def waits_for(self) -> int:
        """The size from which on the next one may run after one that failed or was undone (0: any)."""
        return ceil(self._not_under)

    def may_run(self, tokens: int) -> bool:
        """Say whether one may start at this size."""
        return not self.is_stopped and tokens >= self._not_under

    @property
    def may_save(self) -> bool:
        """Whether one may start where the request would not fit the window: stopped or not, unless none helps."""
        return not (self.is_stopped and self._is_futile)

    def note_done(self, before: int, limit: int, *, manual: bool) -> None:
        """A compaction of `before` tokens is on disk; the next measured request tells whether it is under `limit`."""
        self.done += 1
        if manual:
            self.reset()
        self._before, self._limit = before, limit
        self._waits_for_measure = True
        self._not_under = 0.0

    def note_failed(self, tokens: int) -> None:
        """One failed at this size: the next waits for a tenth more."""
        self._not_under = tokens * GROWTH_AFTER_FAILURE

    def note_undone(self, tokens: int, most: int) -> None:
        """The user undid one, to this size: the next waits for a tenth more, at the latest until `most` tokens."""
        self.reset()
        self._not_under = min(tokens * GROWTH_AFTER_FAILURE, most)

    def note_measured(self, tokens: int) -> bool:
        """A provider counted a request; returns whether this was what stops them."""
        if not self._waits_for_measure:
            return False
        self._waits_for_measure = False
        if tokens <= self._limit:
            self.ineffective = 0
            return False
        self.ineffective += 1
        self._is_futile = tokens > (1 - LEAST_GAIN) * self._before
        return self.is_stopped

    def reset(self) -> None:
        """The user acted (compacted, changed the model): begin again."""
        self.ineffective = 0
        self._waits_for_measure = False
        self._not_under = 0.0


class BackgroundSummary(Struct, eq=False):
    """The summary that is written ahead of time, for the next compaction (`core/compacting/preparation.py`)."""

    ready: PreparedSummary | None = None
    task: asyncio.Task[None] | None = None
    """What writes it."""
    not_under: float = 0.0
    """Tokens: after one that failed the next waits until there are so many."""

    @property
    def is_running(self) -> bool:
        """Whether a summary is being written."""
        return self.task is not None and not self.task.done()

    @property
    def is_unused(self) -> bool:
        """Whether there is nothing to watch over: none is ready, none is written, none has failed."""
        return self.ready is None and not self.is_running and not self.not_under

    def cancel(self) -> None:
        """End the writing; what it has cost so far is counted."""
        if self.task is not None:
            self.task.cancel()

    async def stop(self) -> None:
        """End the writing and wait until it has ended."""
        self.cancel()
        if self.task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((self.task,))

    async def wait(self) -> None:
        """Wait for the summary that is being written; whoever is cancelled meanwhile ends the writing as well."""
        if self.task is None:
            return
        try:
            await asyncio.wait((self.task,))
        except asyncio.CancelledError:
            self.cancel()
            raise


MOST_WISHES = 20
"""Of those that nobody has looked at yet."""


class CompactionState(Struct, eq=False):
    """What a session knows of its compactions."""

    strategy: CompactionStrategy | None = None
    """How the view is made smaller: what the Python API named, then what `core/compacting/strategies.py` chose."""
    is_strategy_chosen: bool = False
    strategy_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    automatic: AutomaticCompaction = field(default_factory=AutomaticCompaction)
    background: BackgroundSummary = field(default_factory=BackgroundSummary)
    pending: PendingCompaction | None = None
    """A compaction that was proposed and waits for the user."""
    items_refused: bool = False
    """The provider did not read its own compaction again: it is not asked for another while this process lives."""
    asked: Asked | None = None
    """The compaction that is to be made at the end of the step."""
    wishes: list[Wish] = field(default_factory=list[Wish])
    """What hooks and extensions ask for and nobody has looked at yet."""
    checked_window: int = 0
    """The window that the results in the view were last held against, in tokens (0: not yet in this process)."""

    def wish(self, by: str, focus: str) -> None:
        """Note that somebody asks for a compaction."""
        if len(self.wishes) < MOST_WISHES:
            self.wishes.append(Wish(by, focus))
