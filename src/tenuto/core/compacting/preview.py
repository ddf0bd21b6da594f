"""A compaction that is made, shown, and written only when the user accepts it (DESIGN section 6, "Preview").

What the calls cost counts from the moment they are made; accepting moves it into the entry.
"""

from __future__ import annotations

import msgspec

from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.preview import PlanDescription, describe_plan, editable_summary, with_summary
from tenuto.compaction.ways.validate import CurrentContext, Proposal, evaluate, find_flaw
from tenuto.core.compacting.compact import (
    NothingToCompactError,
    append,
    drop_pending,
    entry_of,
    propose,
    publish_failure,
)
from tenuto.core.compacting.environment import bind_context, current_context
from tenuto.core.compacting.strategies import choose_strategy, name_of
from tenuto.core.errors import CompactionRefusedError, TaskFailedError
from tenuto.core.state.compaction_state import CompactionRequest, PendingCompaction
from tenuto.core.state.live import LiveSession
from tenuto.protocol.compaction import RungError
from tenuto.protocol.event import CompactionProposedEvent, CompactionStartEvent
from tenuto.protocol.operation import CompactSessionOperation, PreviewCompactionOperation
from tenuto.protocol.usage import Usage
from tenuto.session.session import Session


async def preview_compaction(live: LiveSession, operation: PreviewCompactionOperation) -> None:
    """Make a proposal and show it; cancelling or failing leaves nothing behind but what it cost."""
    request = CompactionRequest(
        reason="manual",
        submission_id=operation.submission_id,
        focus=operation.focus or "",
        first_kept=operation.first_kept,
    )
    try:
        proposed = await propose(live, request, await choose_strategy(live))
    except (NothingToCompactError, CompactionRefusedError):
        return
    outcome, current = proposed.proposal.outcome, proposed.context.environment.current
    held = live.session.held_usage
    live.session.hold_usage(outcome.usage or Usage())
    live.compaction.pending = PendingCompaction(proposed, editable_summary(outcome), held, live.session.held_usage)
    live.publish_usage()
    first = outcome.first_kept_index
    kept = [message for message in current.view if first and message.seq >= first]
    live.bus.publish(
        CompactionProposedEvent(
            session_id=live.id,
            submission_id=request.submission_id,
            entry=entry_of(proposed),
            kept_tokens=round(current.meter.estimate_all(kept) * current.size.calibration),
            summary=live.compaction.pending.summary,
        )
    )


def require_pending(live: LiveSession) -> PendingCompaction:
    """Return the proposal that waits. Raises `TaskFailedError` when there is none."""
    if live.compaction.pending is None:
        raise TaskFailedError("no compaction is proposed; /compact --preview makes a proposal")
    return live.compaction.pending


def accept_pending(live: LiveSession, summary: str = "") -> None:
    """Write the proposal that waits, with another summary if one is given.

    Raises `TaskFailedError`, with nothing written: when there is none, when the conversation went on meanwhile (then it
    is dropped), or when the changed proposal does not pass the checks (then it waits on).
    """
    pending, current = require_pending(live), current_context(live)
    proposed = pending.proposed
    seen = proposed.context.environment.current
    if list(current.view) != list(seen.view) or current.model_id != seen.model_id:
        drop_pending(live)
        raise TaskFailedError(
            "the conversation went on since this compaction was proposed, so it was not written; "
            "/compact --preview makes a new proposal"
        )
    proposal = proposed.proposal
    if summary.strip():
        proposal = _revised(proposal, summary, current)
    live.compaction.pending = None
    append(live, msgspec.structs.replace(proposed, proposal=_charged(live.session, pending, proposal)))
    live.session.save_meta()  # the entry has the cost now: killed later, the session must not hold it as well


def _revised(proposal: Proposal, summary: str, current: CurrentContext) -> Proposal:
    """Return a proposal with another summary, checked like every one. Raises `TaskFailedError`."""
    try:
        revised = evaluate(with_summary(proposal.outcome, summary), current)
    except RungError as error:
        raise TaskFailedError(f"not written: {error}") from error
    flaw = find_flaw(revised, current)
    if flaw:
        raise TaskFailedError(f"not written: {flaw}")
    return revised


def _charged(session: Session, pending: PendingCompaction, proposal: Proposal) -> Proposal:
    """Move the cost from what is held into the entry; where it is counted elsewhere already, it stays there."""
    if session.held_usage == pending.held_after:
        session.held_usage = pending.held_before
        return proposal
    outcome = msgspec.structs.replace(proposal.outcome, usage=None)
    return msgspec.structs.replace(proposal, outcome=outcome)


async def describe_compaction(live: LiveSession, request: CompactionRequest) -> PlanDescription:
    """Return what a compaction would do now; no model is asked and nothing is written."""
    context = bind_context(live, request)
    strategy = await choose_strategy(live)
    name = "" if type(strategy) is LadderCompaction else name_of(strategy)
    return describe_plan(context, await context.environment.summarisers(), name)


async def find_gainless(live: LiveSession) -> NothingToCompact | None:
    """Return why a compaction now would save too little, and where it could be made all the same; `None` otherwise.

    What a strategy of somebody else would do nobody knows beforehand.
    """
    if type(await choose_strategy(live)) is not LadderCompaction:
        return None
    plan = bind_context(live, CompactionRequest(reason="manual")).environment.plan(manual=True)
    return plan if isinstance(plan, NothingToCompact) and plan.cut else None


async def explain_needless(live: LiveSession, operation: CompactSessionOperation) -> bool:
    """Say whether a compaction would come to nothing, and tell that as its own end would. No model is asked.

    What a strategy of somebody else would do nobody knows beforehand.
    """
    if operation.undoing or type(await choose_strategy(live)) is not LadderCompaction:
        return False
    plan = await describe_compaction(live, CompactionRequest.of(operation))
    if plan.requests:
        return False
    submission_id = operation.submission_id
    live.bus.publish(CompactionStartEvent(session_id=live.id, submission_id=submission_id, reason=operation.reason))
    reason = f"nothing to compact: {plan.nothing}"
    publish_failure(live, CompactionRequest.of(operation), reason, aborted=False, needless=True)
    return True
