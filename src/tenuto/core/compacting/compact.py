"""The one compaction procedure, for the operation, the running task and the Python API (DESIGN sections 5 and 6).

A strategy proposes, the gate checks, and one line is written. Nothing is appended before everything is ready, so a
cancelled compaction leaves the log as it was; nothing is awaited between the check and the line, so one that is on
disk is complete (R-016, R-046, R-047).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from tenuto.compaction.errors import NothingLeftError, RungError, StrategyError
from tenuto.compaction.measure.budget import aim_for
from tenuto.compaction.summary.serialize import SEPARATOR, serialize_blocks
from tenuto.compaction.ways.environment import BoundContext, Progress
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.validate import Proposal, Standing, find_flaw, is_valid_cut, weigh
from tenuto.core.compacting.environment import bind_context
from tenuto.core.compacting.hooks import Hooked, ask_before_compaction, tell_compacted, tell_failed
from tenuto.core.compacting.strategies import choose_strategy, name_of
from tenuto.core.compacting.undo import append_undo
from tenuto.core.errors import CompactionRefusedError, TaskFailedError, describe_failure
from tenuto.core.state.live import LiveSession
from tenuto.core.state.prompt import refreshed_system_entry
from tenuto.core.state.windows import describe_sizes
from tenuto.core.transcript.replay import compaction_end
from tenuto.protocol.compaction import CompactionOutcome, CompactionStrategy
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionProgressEvent, CompactionStartEvent
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import CompactionReason, CompactSessionOperation
from tenuto.protocol.usage import Usage
from tenuto.session.view.path import find_on
from tenuto.session.view.projection import cancelled_by_undo, compaction_of_edits

FIRST_ROUND_TOLD = 5


def tell_rounds(live: LiveSession, entry: CompactionEntry) -> None:
    """Say from the fifth summary on what many of them cost; once while the session is open."""
    if live.rounds_told or not entry.first_kept_index:
        return
    path = live.session.path()
    undone = sum(isinstance(find_on(path, seq), CompactionEntry) for seq in cancelled_by_undo(path))
    rounds = live.session.state.compactions - undone
    if rounds < FIRST_ROUND_TOLD:
        return
    live.rounds_told = True
    live.notify(
        f"This session has been summarised {rounds} times, and each summary of a summary is a little less exact. For "
        "another task /new starts afresh and /fork goes on in a copy; /recall WORDS finds what was said word for word, "
        "and so does the model."
    )


def check_log(live: LiveSession) -> None:
    """Give every open call a result, and try again to write what is not on disk; the user is told of what is not."""
    live.session.close_open_calls()
    live.session.retry_save()
    live.watch_saving()


RUNG = "strategy"


def outcome_of(messages: Sequence[Message], standing: Standing, rung: str = RUNG) -> CompactionOutcome | None:
    """Return the outcome that leads to these messages, `None` when they are the view as it is.

    Raises `StrategyError` when they stand in another order than in the history.
    """
    proposed = list(messages)
    view = list(standing.view)
    if view and isinstance(view[0], SystemMessage):
        # The system prompt always stays; a strategy may return it or leave it out.
        proposed = proposed[1:] if proposed and proposed[0] == view[0] else proposed
        view = view[1:]
    _check_order(proposed)
    if proposed == view:
        return None
    start = _kept_from(proposed, view, standing)
    kept = next((message.seq for message in proposed[start:] if message.seq), standing.path[-1].seq + 1)
    return CompactionOutcome(
        replacement=tuple(msgspec.structs.replace(message, seq=0, ts=0.0) for message in proposed[:start]),
        first_kept_index=kept,
        summary=_readable(proposed[:start]),
        rung=rung,
    )


def _check_order(messages: Sequence[Message]) -> None:
    newest = 0
    for message in messages:
        if message.seq and message.seq <= newest:
            raise StrategyError(f"entry {message.seq} stands behind entry {newest}: the order of events has to stay")
        newest = max(newest, message.seq)


def _kept_from(proposed: Sequence[Message], view: Sequence[Message], standing: Standing) -> int:
    """Return the index in `proposed` of the longest common tail that begins where the conversation can be cut."""
    common = 0
    most = min(len(proposed), len(view))
    while common < most and proposed[-1 - common] == view[-1 - common]:
        common += 1
    for index in range(len(proposed) - common, len(proposed)):
        if proposed[index].seq and is_valid_cut(proposed[index].seq, standing):
            return index
    return len(proposed)


def _readable(messages: Sequence[Message]) -> str:
    """Return the replaced part as text: for the user, for search, and for the next summary."""
    texts = [message.text for message in messages if isinstance(message, SystemMessage)]
    shown = [
        message
        for message in messages
        if isinstance(message, UserMessage | AssistantMessage | ToolResultMessage | DeveloperMessage)
    ]
    return "\n\n".join([*texts, SEPARATOR.join(serialize_blocks(shown))]).strip()


Bind = Callable[[Progress], BoundContext]
"""Returns the context of a compaction that tells its progress to the given function."""
PREPARING = "finishing the summary that was begun beside the work"
TO_A_LIMIT: frozenset[CompactionReason] = frozenset({"threshold", "model_switch"})
"""Reasons with which the context has to come under a trigger."""


class NothingToCompactError(TaskFailedError):
    """There is nothing that a compaction could make smaller; the text says why."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction did; it is on disk. `entry` tells of mere edits of the view in the same form."""

    entry: CompactionEntry


class Compaction:
    """One compaction of one session, from the strategy's proposal to the line."""

    def __init__(
        self, live: LiveSession, hooked: Hooked, strategy: CompactionStrategy, operation: CompactSessionOperation
    ) -> None:
        self.operation = operation
        self._live = live
        self._hooked = hooked
        self._context = hooked.context
        self._strategy = strategy
        self._duration = 0.0

    @property
    def standing(self) -> Standing:
        """The context that it works on."""
        return self._context.environment.standing

    async def propose(self) -> Proposal:
        """Return what is to be written.

        Raises `NothingToCompactError`, `TaskFailedError` or `CancelledError`; nothing is appended either way.
        """
        started = time.monotonic()
        try:
            return self._take_supplied() or await self._propose()
        except BaseException:
            self._live.session.hold_usage(self._context.environment.spending.usage)
            raise
        finally:
            self._duration = time.monotonic() - started

    def _take_supplied(self) -> Proposal | None:
        """Return what an extension supplied, if it may be written."""
        outcome = self._hooked.take(self._live)
        return weigh(outcome, self.standing) if outcome is not None else None

    async def _propose(self) -> Proposal:
        """Return what is to be written. A strategy of somebody else that fails is named, and the ladder takes over."""
        try:
            return await self._ask(self._strategy)
        except NothingLeftError as error:
            raise NothingToCompactError(f"nothing to compact: {error}{self._sizes()}") from error
        except RungError as error:
            if type(self._strategy) is LadderCompaction:
                raise TaskFailedError(f"{error}{self._sizes()}") from error
            self._live.notify(
                f"The compaction strategy {name_of(self._strategy)} could not be used ({error}); "
                "the built-in one is used.",
                "warning",
                keep=True,
            )
            self._strategy = LadderCompaction()
            return await self._propose()

    async def _ask(self, strategy: CompactionStrategy) -> Proposal:
        """Return the strategy's proposal, checked. Raises `RungError`."""
        standing = self.standing
        output = await strategy.compact(self._context)
        if output is None or isinstance(output, CompactionOutcome):
            outcome = output
        else:
            outcome = outcome_of(output, standing, name_of(strategy))
        if outcome is None and self._context.reason == "overflow" and type(strategy) is not LadderCompaction:
            return await self._ask(LadderCompaction())  # the request cannot be made as it is
        if outcome is None:
            raise NothingLeftError("the strategy leaves everything as it is")
        spent = self._context.environment.spending.usage
        if outcome.usage is None and spent != Usage():
            outcome = msgspec.structs.replace(outcome, usage=spent)
        proposal = weigh(outcome, standing)
        flaw = find_flaw(proposal, standing)
        if flaw:
            raise RungError(flaw)
        return proposal

    def to_entry(self, proposal: Proposal, system_seq: int = 0) -> CompactionEntry:
        """Return the entry that a proposal becomes; mere edits of the view in the same form."""
        if not proposal.outcome.first_kept_index:
            return compaction_of_edits(self._edits(proposal))
        context = self._context
        return proposal.to_entry(context.reason, focus=context.focus, duration=self._duration, system_seq=system_seq)

    def write(self, proposal: Proposal) -> CompactionEntry:
        """Append what was proposed: from here on the compaction counts as done."""
        live = self._live
        if self.operation.undoing:
            append_undo(live, self.operation.undoing)
        if proposal.outcome.first_kept_index:
            system = refreshed_system_entry(live)
            system_seq = live.session.append(system).seq if system is not None else 0
            stored = live.session.append(self.to_entry(proposal, system_seq))
        else:
            stored = compaction_of_edits(live.session.append(self._edits(proposal)))
        return stored

    def _edits(self, proposal: Proposal) -> ViewEditEntry:
        return ViewEditEntry(
            edits=proposal.outcome.edits,
            reason=self._context.reason,
            rung=proposal.outcome.rung,
            tokens_before=proposal.tokens_before,
            tokens_after=proposal.tokens_after,
            rough=proposal.rough,
            trigger=proposal.trigger,
            duration=self._duration,
        )

    def _sizes(self) -> str:
        """Return what fills the window, for an automatic compaction that cannot help; nobody asked (R-005)."""
        size, trigger = self._live.measure(), self._live.budget().trigger
        is_said = size.fixed + size.queued >= trigger  # the plan's own reason has the sizes of the fixed parts
        return "" if self._context.reason != "threshold" or is_said else f" ({describe_sizes(self._live)})"


async def run_compaction(
    live: LiveSession,
    reason: CompactionReason,
    *,
    submission_id: str = "",
    focus: str = "",
    will_retry: bool = False,
    attempt: int = 0,
    first_kept: int = 0,
    undoing: int = 0,
    observed: int = 0,
    successor: ModelFacts | None = None,
    strategy: CompactionStrategy | None = None,
) -> CompactionResult:
    """Compact the session's view and tell the front-ends. Raises what `Compaction.propose` raises, after the end event.

    `attempt`, `observed` and `successor` are as in `bind_context`. A strategy other than the ladder is asked once more
    when the context is over its trigger still (DESIGN section 6).
    """
    strategy = strategy or await choose_strategy(live)
    operation = CompactSessionOperation(
        session_id=live.id,
        submission_id=submission_id,
        reason=reason,
        focus=focus,
        will_retry=will_retry,
        first_kept=first_kept,
        undoing=undoing,
    )
    bind = partial(
        bind_context,
        live,
        reason,
        focus=focus,
        attempt=attempt,
        observed=observed,
        successor=successor,
        first_kept=first_kept,
        undoing=undoing,
    )
    result = await _compact_once(live, strategy, operation, bind)
    size = live.measure()
    limit = aim_for(live.budget(successor), size.fixed + size.queued).trigger
    is_over = reason in TO_A_LIMIT and size.tokens > limit
    if not is_over or type(strategy) is LadderCompaction:
        return result
    try:
        return await _compact_once(live, strategy, operation, bind)
    except TaskFailedError:
        return result  # the first one counts, and its end event has said that it was not enough


async def _compact_once(
    live: LiveSession, strategy: CompactionStrategy, operation: CompactSessionOperation, bind: Bind
) -> CompactionResult:
    compaction, proposal = await begin_compaction(live, strategy, operation, bind)
    return finish_compaction(live, compaction, proposal)


async def begin_compaction(
    live: LiveSession, strategy: CompactionStrategy, operation: CompactSessionOperation, bind: Bind
) -> tuple[Compaction, Proposal]:
    """Publish the start and return what may be written. When it raises, the end has been published."""
    submission_id, reason = operation.submission_id, operation.reason
    if live.pending is not None:
        live.pending.drop()

    def progress(stage: str, tokens: int) -> None:
        live.bus.publish(
            CompactionProgressEvent(session_id=live.id, submission_id=submission_id, stage=stage, summary_tokens=tokens)
        )

    live.bus.publish(CompactionStartEvent(session_id=live.id, submission_id=submission_id, reason=reason))
    try:
        check_log(live)
        await live.meter.texts.read(live.session.path())
        await _settle_preparation(live, reason, progress)
        hooked = await ask_before_compaction(live, bind(progress), operation, strategy)
        compaction = Compaction(live, hooked, strategy, operation)
        return compaction, await compaction.propose()
    except asyncio.CancelledError:
        publish_failure(live, operation, "", aborted=True)
        raise
    except BaseException as error:  # a start has its end whatever went wrong; the task manager takes the error
        live.automatic.note_failed(live.measure().tokens)
        if isinstance(error, CompactionRefusedError):
            live.notify(f"Not compacted: {error}.", "warning")
        publish_failure(
            live,
            operation,
            describe_failure(error),
            aborted=isinstance(error, CompactionRefusedError),
            needless=isinstance(error, NothingToCompactError),
        )
        raise


async def _settle_preparation(live: LiveSession, reason: CompactionReason, progress: Progress) -> None:
    """Wait for a summary that is being written for this compaction; for another one it is not the right one."""
    if live.preparation is None:
        return
    if reason != "threshold":
        await live.preparation.stop()
    elif live.preparation.is_running:
        progress(PREPARING, 0)
        await live.preparation.wait()
    live.preparation.check()


def finish_compaction(live: LiveSession, compaction: Compaction, proposal: Proposal) -> CompactionResult:
    """Write what was proposed and tell everybody. When it raises, the end has been published."""
    operation = compaction.operation
    try:
        entry = compaction.write(proposal)
    except BaseException as error:
        publish_failure(live, operation, describe_failure(error), aborted=False)
        raise
    live.prepared = None  # it was used, or stands for what is gone from the view now
    if entry.rung != "hide":  # of a hiding alone the next request does not tell whether it was of use
        live.automatic.note_done(proposal.tokens_before, proposal.trigger, manual=operation.reason == "manual")
    live.bus.publish(compaction_end(live.id, entry, operation.submission_id, will_retry=operation.will_retry))
    for note in proposal.outcome.notes:
        live.notify(note, "warning", keep=True)
    live.publish_usage()
    tell_rounds(live, entry)
    tell_compacted(live, entry, operation)
    return CompactionResult(entry)


def publish_failure(
    live: LiveSession, operation: CompactSessionOperation, error: str, *, aborted: bool, needless: bool = False
) -> None:
    """Tell the front-ends and the extensions of a compaction that came to nothing."""
    live.bus.publish(
        CompactionEndEvent(
            session_id=live.id,
            submission_id=operation.submission_id,
            reason=operation.reason,
            aborted=aborted,
            needless=needless,
            error=error or None,
            tokens_before=live.measure().tokens,
        )
    )
    tell_failed(live, operation, error, aborted=aborted)


class CompactionTask:
    """Serves one `CompactSessionOperation`."""

    def __init__(self, live: LiveSession, operation: CompactSessionOperation) -> None:
        self._live = live
        self._operation = operation

    async def run(self) -> None:
        """Compact. That there is nothing to compact, or that an extension is against it, is no failure."""
        operation = self._operation
        try:
            await run_compaction(
                self._live,
                operation.reason,
                submission_id=operation.submission_id,
                focus=operation.focus or "",
                will_retry=operation.will_retry,
                first_kept=operation.first_kept,
                undoing=operation.undoing,
            )
        except (NothingToCompactError, CompactionRefusedError):
            return
