"""One compaction: prepare, summarise, append (DESIGN sections 5 and 6).

`run_compaction` is the one way, for the operation, the running task and a change of the model; a preview stops before
the last step (`preview.py`). A strategy proposes, the gate checks, and one line is written. Nothing is appended before
everything is ready, so a cancelled compaction leaves the log as it was; nothing is awaited between the check and the
line, so one that is on disk is complete (R-016, R-046, R-047).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from tenuto.compaction.measure.budget import aim_for
from tenuto.compaction.plan.entries import active_compaction
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.ways.environment import BoundContext, Progress
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.remote import remote_outcome
from tenuto.compaction.ways.strategies import take_supplied
from tenuto.compaction.ways.validate import Proposal, evaluate, find_flaw
from tenuto.core.compacting.environment import bind_context
from tenuto.core.compacting.hooks import ask_before_compaction, notify_compacted, notify_compaction_failed
from tenuto.core.compacting.preparation import drop_outdated
from tenuto.core.compacting.strategies import choose_strategy, name_of, outcome_of
from tenuto.core.compacting.undo import append_undo
from tenuto.core.errors import CompactionRefusedError, TaskFailedError, describe_failure
from tenuto.core.state.compaction_state import CompactionRequest, ProposedCompaction
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.core.state.prompt import refreshed_system_entry
from tenuto.core.state.windows import ModelChange, change_model, describe_sizes
from tenuto.core.transcript import compaction_end
from tenuto.protocol.compaction import CompactionOutcome, CompactionStrategy, NothingLeftError, RungError
from tenuto.protocol.entry import UndoEntry, ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionProgressEvent, CompactionStartEvent
from tenuto.protocol.hooks import SuppliedCompaction
from tenuto.protocol.message import AssistantMessage, CompactionEntry
from tenuto.protocol.model import CompactedItems, ModelError, ModelRequest
from tenuto.protocol.operation import CompactionReason, CompactSessionOperation
from tenuto.protocol.usage import Usage
from tenuto.session.view.projection import cancelled_by_undo, compaction_of_edits
from tenuto.session.view.tree import find_on


def adopt_compaction(
    live: LiveSession, submission_id: str, answer: AssistantMessage, compacted: CompactedItems
) -> None:
    """Write down what the server compacted while it answered: everything before this answer.

    Where that cannot be written the history goes on being sent whole, which the server takes as well.
    """
    context = bind_context(live, CompactionRequest(reason="threshold"))
    plan = context.environment.plan(first_kept=answer.seq)
    if not isinstance(plan, CompactionPlan):
        return
    proposal = evaluate(remote_outcome(context.environment, plan, compacted), context.environment.current)
    sent = round(plan.size.estimate * plan.size.calibration)  # the server may have counted the smaller context already
    proposal = msgspec.structs.replace(proposal, tokens_before=max(sent, proposal.tokens_before))
    stored = live.session.append(proposal.to_entry("threshold"))
    live.compaction.automatic.note_done(proposal.tokens_before, proposal.trigger, manual=False)
    live.bus.publish(compaction_end(live.id, stored, submission_id))
    live.publish_usage()


def refuses_items(live: LiveSession, error: ModelError, request: ModelRequest) -> bool:
    """Say whether a request was refused because of a provider's compaction in it.

    A refusal of encrypted content may mean reasoning as well: that is left out first, and what is refused without it
    is the compaction.
    """
    compaction = active_compaction(live.session.path(), live.facts.id)
    if compaction is None or compaction.provider_items is None:
        return False
    if error.kind == "bad_thinking":
        return not request.thinking
    return error.kind in {"invalid", "not_found"} and "compact" in error.text.lower()


async def give_up_items(live: LiveSession, submission_id: str, error: ModelError) -> None:
    """Go on from the history, compacted here if it is too long for the window. Raises `ModelError`, what was refused.

    The provider is not asked for another compaction in this process, so that it cannot go round in circles.
    """
    live.compaction.items_refused = True
    while True:
        compaction = active_compaction(live.session.path(), live.facts.id)
        if compaction is None or compaction.provider_items is None:
            break
        live.session.append(UndoEntry(target=compaction.seq))
    live.notify(
        f"{live.facts.provider} did not read its own compaction again ({error}). The session goes on from the history.",
        "warning",
        keep=True,
    )
    live.publish_usage()
    if live.measure().tokens <= live.budget().trigger or not live.settings.compaction.enabled:
        return

    try:
        await run_compaction(live, CompactionRequest(reason="threshold", submission_id=submission_id, will_retry=True))
    except TaskFailedError as failure:
        if live.measure().tokens >= live.budget().window:
            raise error from failure


FIRST_ROUND_TOLD = 5
PREPARING = "finishing the summary that was begun beside the work"
TO_A_LIMIT: frozenset[CompactionReason] = frozenset({"threshold", "model_switch"})
"""Reasons with which the context has to come under a trigger."""


class NothingToCompactError(TaskFailedError):
    """There is nothing that a compaction could make smaller; the text says why."""


@dataclass(frozen=True, slots=True)
class PreparedCompaction:
    """What a summary is made from. `supplied` are compactions that extensions bring along, the last one first."""

    request: CompactionRequest
    strategy: CompactionStrategy
    context: BoundContext
    supplied: Sequence[tuple[str, SuppliedCompaction]]


async def run_compaction(
    live: LiveSession, request: CompactionRequest, strategy: CompactionStrategy | None = None
) -> CompactionEntry:
    """Compact the session's view and tell the front-ends; return the entry that is on disk.

    Mere edits of the view are told in the form of an entry too. Raises `NothingToCompactError`, `TaskFailedError` or
    `CancelledError`, after the end event and with nothing appended. A strategy other than the ladder is asked once more
    when the context is over its trigger still (DESIGN section 6).
    """
    strategy = strategy or await choose_strategy(live)
    entry = append(live, await propose(live, request, strategy))
    if type(strategy) is LadderCompaction or not _is_over_limit(live, request):
        return entry
    try:
        return append(live, await propose(live, request, strategy))
    except TaskFailedError:
        return entry  # the first one counts, and its end event has said that it was not enough


def _is_over_limit(live: LiveSession, request: CompactionRequest) -> bool:
    size = live.measure()
    limit = aim_for(live.budget(request.successor), size.fixed + size.queued).trigger
    return request.reason in TO_A_LIMIT and size.tokens > limit


async def propose(live: LiveSession, request: CompactionRequest, strategy: CompactionStrategy) -> ProposedCompaction:
    """Publish the start and return what may be written. When it raises, the end has been published."""
    drop_pending(live)
    started = CompactionStartEvent(session_id=live.id, submission_id=request.submission_id, reason=request.reason)
    live.bus.publish(started)
    try:
        return await summarise(live, await prepare(live, request, strategy))
    except asyncio.CancelledError:
        publish_failure(live, request, "", aborted=True)
        raise
    except BaseException as error:  # a start has its end whatever went wrong; the task manager takes the error
        live.compaction.automatic.note_failed(live.measure().tokens)
        is_refused = isinstance(error, CompactionRefusedError)
        if is_refused:
            live.notify(f"Not compacted: {error}.", "warning")
        is_needless = isinstance(error, NothingToCompactError)
        publish_failure(live, request, describe_failure(error), aborted=is_refused, needless=is_needless)
        raise


# --- prepare ---


async def prepare(live: LiveSession, request: CompactionRequest, strategy: CompactionStrategy) -> PreparedCompaction:
    """Bring the log into order and ask the extensions. Raises `CompactionRefusedError` where one is against it."""

    def progress(stage: str, tokens: int, text: str = "", /) -> None:
        live.bus.publish(
            CompactionProgressEvent(
                session_id=live.id,
                submission_id=request.submission_id,
                stage=stage,
                summary_tokens=tokens,
                text=text or UNSET,
            )
        )

    _check_log(live)
    await live.meter.texts.read(live.session.path())
    await _settle_preparation(live, request, progress)
    context = bind_context(live, request, progress)
    context, supplied = await ask_before_compaction(live, context, request, strategy)
    return PreparedCompaction(request, strategy, context, supplied)


def _check_log(live: LiveSession) -> None:
    """Give every open call a result, and try again to write what is not on disk; the user is told of what is not."""
    live.session.close_open_calls()
    live.session.retry_save()
    live.watch_saving()


async def _settle_preparation(live: LiveSession, request: CompactionRequest, progress: Progress) -> None:
    """Wait for a summary that is being written for this compaction; for another one it is not the right one."""
    background = live.compaction.background
    if request.reason != "threshold":
        await background.stop()
    elif background.is_running:
        progress(PREPARING, 0)
        await background.wait()
    drop_outdated(live)


# --- summarise ---


async def summarise(live: LiveSession, prepared: PreparedCompaction) -> ProposedCompaction:
    """Return what is to be written: an extension's compaction that may be, else what the strategy proposes.

    What it cost is held when it fails. Raises `NothingToCompactError`, `TaskFailedError` or `CancelledError`.
    """
    context, started = prepared.context, time.monotonic()
    try:
        outcome = _take_supplied(live, prepared)
        if outcome is not None:
            proposal = evaluate(outcome, context.environment.current)
        else:
            proposal = await _ask_strategy(live, context, prepared.strategy)
    except BaseException:
        live.session.hold_usage(context.environment.spending.usage)
        raise
    return ProposedCompaction(prepared.request, context, proposal, time.monotonic() - started)


def _take_supplied(live: LiveSession, prepared: PreparedCompaction) -> CompactionOutcome | None:
    """Return the first supplied compaction that may be written; the others are named to the user."""
    for extension, supplied in prepared.supplied:
        try:
            return take_supplied(prepared.context, supplied, extension)
        except RungError as error:
            text = f"The compaction of the extension {extension} cannot be used: {error}."
            live.notify(text, "warning", keep=True)
    return None


async def _ask_strategy(live: LiveSession, context: BoundContext, strategy: CompactionStrategy) -> Proposal:
    """Return the proposal of a strategy. One of somebody else that fails is named, and the ladder takes over."""
    try:
        return await _checked_proposal(context, strategy)
    except NothingLeftError as error:
        raise NothingToCompactError(f"nothing to compact: {error}{_sizes(live, context)}") from error
    except RungError as error:
        if type(strategy) is LadderCompaction:
            raise TaskFailedError(f"{error}{_sizes(live, context)}") from error
        live.notify(
            f"The compaction strategy {name_of(strategy)} could not be used ({error}); the built-in one is used.",
            "warning",
            keep=True,
        )
        return await _ask_strategy(live, context, LadderCompaction())


async def _checked_proposal(context: BoundContext, strategy: CompactionStrategy) -> Proposal:
    """Return what the strategy proposes, if it may be written. Raises `RungError`."""
    current = context.environment.current
    output = await strategy.compact(context)
    if output is None or isinstance(output, CompactionOutcome):
        outcome = output
    else:
        outcome = outcome_of(output, current, name_of(strategy))
    is_full = context.reason == "threshold" and current.budget.has_no_room(current.size.tokens)
    if outcome is None and (is_full or context.reason == "overflow") and type(strategy) is not LadderCompaction:
        return await _checked_proposal(context, LadderCompaction())  # the request cannot be made as it is
    if outcome is None:
        raise NothingLeftError("the strategy leaves everything as it is")
    spent = context.environment.spending.usage
    if outcome.usage is None and spent != Usage():
        outcome = msgspec.structs.replace(outcome, usage=spent)
    proposal = evaluate(outcome, current)
    flaw = find_flaw(proposal, current)
    if flaw:
        raise RungError(flaw)
    return proposal


def _sizes(live: LiveSession, context: BoundContext) -> str:
    """Return what fills the window, for an automatic compaction that cannot help; nobody asked (R-005)."""
    size, trigger = live.measure(), live.budget().trigger
    is_said = size.fixed + size.queued >= trigger  # the plan's own reason has the sizes of the fixed parts
    return "" if context.reason != "threshold" or is_said else f" ({describe_sizes(live)})"


# --- append ---


def append(live: LiveSession, proposed: ProposedCompaction) -> CompactionEntry:
    """Write what was proposed and tell everybody. When it raises, the end has been published."""
    request, proposal = proposed.request, proposed.proposal
    try:
        entry = _write(live, proposed)
    except BaseException as error:
        publish_failure(live, request, describe_failure(error), aborted=False)
        raise
    live.compaction.background.ready = None  # it was used, or stands for what is gone from the view now
    if entry.rung != "hide":  # of a hiding alone the next request does not tell whether it was of use
        live.compaction.automatic.note_done(proposal.tokens_before, proposal.trigger, manual=request.reason == "manual")
    live.bus.publish(compaction_end(live.id, entry, request.submission_id, will_retry=request.will_retry))
    for note in proposal.outcome.notes:
        live.notify(note, "warning", keep=True)
    live.publish_usage()
    _warn_of_rounds(live, entry)
    notify_compacted(live, entry, request)
    return entry


def _write(live: LiveSession, proposed: ProposedCompaction) -> CompactionEntry:
    """Append what was proposed: from here on the compaction counts as done."""
    if proposed.request.undoing:
        append_undo(live, proposed.request.undoing)
    if not proposed.proposal.outcome.first_kept_index:
        return compaction_of_edits(live.session.append(_edits_of(proposed)))
    system = refreshed_system_entry(live)
    system_seq = live.session.append(system).seq if system is not None else 0
    return live.session.append(entry_of(proposed, system_seq))


def entry_of(proposed: ProposedCompaction, system_seq: int = 0) -> CompactionEntry:
    """Return the entry that a proposal becomes; mere edits of the view in the same form.

    `system_seq` is the seq of the system prompt that came with it (0: none).
    """
    proposal, context = proposed.proposal, proposed.context
    if not proposal.outcome.first_kept_index:
        return compaction_of_edits(_edits_of(proposed))
    return proposal.to_entry(context.reason, focus=context.focus, duration=proposed.duration, system_seq=system_seq)


def _edits_of(proposed: ProposedCompaction) -> ViewEditEntry:
    proposal = proposed.proposal
    return ViewEditEntry(
        edits=proposal.outcome.edits,
        reason=proposed.context.reason,
        rung=proposal.outcome.rung,
        tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after,
        rough=proposal.rough,
        trigger=proposal.trigger,
        duration=proposed.duration,
    )


def _warn_of_rounds(services: SessionServices, entry: CompactionEntry) -> None:
    """Say from the fifth summary on what many of them cost; once while the session is open."""
    if not entry.first_kept_index:
        return
    path = services.session.path()
    undone = sum(isinstance(find_on(path, seq), CompactionEntry) for seq in cancelled_by_undo(path))
    rounds = services.session.state.compactions - undone
    if rounds < FIRST_ROUND_TOLD:
        return
    services.notify_once(
        "rounds",
        f"This session has been summarised {rounds} times, and each summary of a summary is a little less exact. For "
        "another task /new starts afresh and /fork goes on in a copy; /recall WORDS finds what was said word for word, "
        "and so does the model.",
    )


def drop_pending(live: LiveSession) -> None:
    """Let go of a proposal that waits, if there is one, and tell the front-ends; what it cost stays counted."""
    pending, live.compaction.pending = live.compaction.pending, None
    if pending is not None:
        publish_failure(live, pending.proposed.request, "", aborted=True)


def publish_failure(
    live: LiveSession, request: CompactionRequest, error: str, *, aborted: bool, needless: bool = False
) -> None:
    """Tell the front-ends and the extensions of a compaction that came to nothing."""
    live.bus.publish(
        CompactionEndEvent(
            session_id=live.id,
            submission_id=request.submission_id,
            reason=request.reason,
            aborted=aborted,
            needless=needless,
            error=error or None,
            tokens_before=live.measure().tokens,
        )
    )
    notify_compaction_failed(live, request, error, aborted=aborted)


# --- tasks ---


async def serve_compaction(live: LiveSession, operation: CompactSessionOperation) -> None:
    """Serve an operation. That there is nothing to compact, or that an extension is against it, is no failure."""
    try:
        await run_compaction(live, CompactionRequest.of(operation))
    except (NothingToCompactError, CompactionRefusedError):
        return


async def switch_model(live: LiveSession, change: ModelChange, submission_id: str) -> None:
    """Compact for a smaller window with the model that still reads the whole, then change the model.

    Cancelled, the session keeps its model. A compaction that comes to nothing has said why, and the change is made: the
    user asked for it, and before the next request the new model gets to make room.
    """
    request = CompactionRequest(reason="model_switch", submission_id=submission_id, successor=change.facts)
    try:
        await run_compaction(live, request)
    except asyncio.CancelledError:
        live.notify(f"The model stays {live.facts.id}: the compaction for {change.facts.id} was cancelled.")
        raise
    except TaskFailedError:
        live.notify(f"The conversation was not compacted for {change.facts.id}; it may not fit its window.", "warning")
    change_model(live, change)
