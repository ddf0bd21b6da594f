"""A compaction that is made, shown, and written only when the user accepts it (DESIGN section 6, "Preview").

What the calls cost counts from the moment they are made; accepting moves it into the entry.
"""

from __future__ import annotations

import asyncio

import msgspec

from tenuto.compaction.errors import RungError
from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.ways.environment import BoundContext, Progress
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.preview import PlanDescription, describe_plan, editable_summary, with_summary
from tenuto.compaction.ways.validate import Proposal, find_flaw, weigh
from tenuto.core.compacting.compact import (
    Compaction,
    CompactionResult,
    NothingToCompactError,
    begin_compaction,
    finish_compaction,
    publish_failure,
    run_compaction,
)
from tenuto.core.compacting.environment import bind_context, present_standing
from tenuto.core.compacting.strategies import choose_strategy, name_of
from tenuto.core.errors import CompactionRefusedError, TaskFailedError
from tenuto.core.state.live import LiveSession
from tenuto.core.state.windows import ModelChange, change_model
from tenuto.protocol.event import CompactionProposedEvent, CompactionStartEvent
from tenuto.protocol.operation import CompactionReason, CompactSessionOperation, PreviewCompactionOperation
from tenuto.protocol.usage import Usage


class PendingCompaction:
    """A proposal that waits. `summary` is the part of it that can be edited."""

    def __init__(self, live: LiveSession, compaction: Compaction, proposal: Proposal) -> None:
        self.proposal = proposal
        self.summary = editable_summary(proposal.outcome)
        self._live = live
        self._compaction = compaction
        self._held_before = live.session.held_usage
        live.session.hold_usage(proposal.outcome.usage or Usage())
        self._held_after = live.session.held_usage
        live.publish_usage()

    def show(self) -> None:
        """Tell the front-ends what is proposed."""
        live, standing = self._live, self._compaction.standing
        first = self.proposal.outcome.first_kept_index
        kept = [message for message in standing.view if first and message.seq >= first]
        live.bus.publish(
            CompactionProposedEvent(
                session_id=live.id,
                submission_id=self._compaction.operation.submission_id,
                entry=self._compaction.to_entry(self.proposal),
                kept_tokens=round(standing.meter.estimate_all(kept) * standing.size.calibration),
                summary=self.summary,
            )
        )

    def drop(self) -> None:
        """Let it go and tell the front-ends; what it cost stays counted."""
        self._live.pending = None
        publish_failure(self._live, self._compaction.operation, "", aborted=True)

    def accept(self, summary: str = "") -> CompactionResult:
        """Write it, with another summary if one is given.

        Raises `TaskFailedError`, with nothing written: when the conversation went on meanwhile (then it is dropped), or
        when the changed proposal does not pass the checks (then it waits on).
        """
        live = self._live
        standing = present_standing(live)
        if list(standing.view) != list(self._compaction.standing.view) or standing.model_id != self._made_for:
            self.drop()
            raise TaskFailedError(
                "the conversation went on since this compaction was proposed, so it was not written; "
                "/compact --preview makes a new proposal"
            )
        proposal = self._revised(summary) if summary.strip() else self.proposal
        live.pending = None
        return finish_compaction(live, self._compaction, self._charged(proposal))

    @property
    def _made_for(self) -> str:
        return self._compaction.standing.model_id

    def _revised(self, summary: str) -> Proposal:
        """Return the proposal with another summary, checked like every one."""
        standing = present_standing(self._live)
        try:
            proposal = weigh(with_summary(self.proposal.outcome, summary), standing)
        except RungError as error:
            raise TaskFailedError(f"not written: {error}") from error
        flaw = find_flaw(proposal, standing)
        if flaw:
            raise TaskFailedError(f"not written: {flaw}")
        return proposal

    def _charged(self, proposal: Proposal) -> Proposal:
        """Move the cost from what is held into the entry; where it is counted elsewhere already, it stays there."""
        session = self._live.session
        if session.held_usage == self._held_after:
            session.held_usage = self._held_before
            return proposal
        outcome = msgspec.structs.replace(proposal.outcome, usage=None)
        return msgspec.structs.replace(proposal, outcome=outcome)


class PreviewTask:
    """Serves one `PreviewCompactionOperation`."""

    def __init__(self, live: LiveSession, operation: PreviewCompactionOperation) -> None:
        self._live = live
        self._operation = CompactSessionOperation(
            session_id=live.id,
            submission_id=operation.submission_id,
            focus=operation.focus,
            first_kept=operation.first_kept,
        )

    def _bind(self, progress: Progress) -> BoundContext:
        operation = self._operation
        return bind_context(
            self._live, operation.reason, progress, focus=operation.focus or "", first_kept=operation.first_kept
        )

    async def run(self) -> None:
        """Make the proposal and show it; cancelling or failing leaves nothing behind but what it cost."""
        live = self._live
        try:
            compaction, proposal = await begin_compaction(
                live, await choose_strategy(live), self._operation, self._bind
            )
        except (NothingToCompactError, CompactionRefusedError):
            return
        pending = PendingCompaction(live, compaction, proposal)
        live.pending = pending
        pending.show()


def require_pending(live: LiveSession) -> PendingCompaction:
    """Return the proposal that waits. Raises `TaskFailedError` when there is none."""
    if not isinstance(live.pending, PendingCompaction):
        raise TaskFailedError("no compaction is proposed; /compact --preview makes a proposal")
    return live.pending


async def describe_compaction(
    live: LiveSession, focus: str = "", *, reason: CompactionReason = "manual", first_kept: int = 0
) -> PlanDescription:
    """Return what a compaction would do now; no model is asked and nothing is written."""
    context = bind_context(live, reason, lambda _stage, _tokens: None, focus=focus, first_kept=first_kept)
    strategy = await choose_strategy(live)
    name = "" if type(strategy) is LadderCompaction else name_of(strategy)
    return describe_plan(context, await context.environment.summarisers(), name)


async def find_gainless(live: LiveSession) -> NothingToCompact | None:
    """Return why a compaction now would save too little, and where it could be made all the same; `None` otherwise.

    What a strategy of somebody else would do nobody knows beforehand.
    """
    if type(await choose_strategy(live)) is not LadderCompaction:
        return None
    plan = bind_context(live, "manual", lambda _stage, _tokens: None).environment.plan(manual=True)
    return plan if isinstance(plan, NothingToCompact) and plan.cut else None


async def tell_needless(live: LiveSession, operation: CompactSessionOperation) -> bool:
    """Say whether a compaction would come to nothing, and tell that as its own end would. No model is asked.

    What a strategy of somebody else would do nobody knows beforehand.
    """
    if operation.undoing or type(await choose_strategy(live)) is not LadderCompaction:
        return False
    plan = await describe_compaction(live, operation.focus or "", first_kept=operation.first_kept)
    if plan.requests:
        return False
    submission_id = operation.submission_id
    live.bus.publish(CompactionStartEvent(session_id=live.id, submission_id=submission_id, reason=operation.reason))
    publish_failure(live, operation, f"nothing to compact: {plan.nothing}", aborted=False, needless=True)
    return True


class ModelSwitchTask:
    """Compacts for a smaller window with the model that still reads the whole, then changes the model."""

    def __init__(self, live: LiveSession, change: ModelChange, submission_id: str) -> None:
        self._live = live
        self._change = change
        self._submission_id = submission_id

    async def run(self) -> None:
        """Compact, then change. Cancelled, the session keeps its model.

        A compaction that comes to nothing has said why, and the change is made: the user asked for it, and before
        the next request the new model gets to make room.
        """
        live, change = self._live, self._change
        try:
            await run_compaction(live, "model_switch", submission_id=self._submission_id, successor=change.facts)
        except asyncio.CancelledError:
            live.notify(f"The model stays {live.facts.id}: the compaction for {change.facts.id} was cancelled.")
            raise
        except TaskFailedError:
            live.notify(
                f"The conversation was not compacted for {change.facts.id}; it may not fit its window.", "warning"
            )
        change_model(live, change)
