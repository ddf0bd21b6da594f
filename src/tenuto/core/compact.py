"""The one compaction procedure, for the operation, the running task and the Python API (DESIGN sections 5 and 6).

Plan, ask for a summary, fall back to the digest that needs no model, check, and write one line. Nothing is appended
before everything is ready, so a cancelled compaction leaves the log as it was; nothing is awaited between the check
and the line, so one that is on disk is complete (R-016, R-046, R-047).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from tenuto.compaction.plan import CompactionPlan, NothingToCompact, plan_compaction
from tenuto.compaction.prompts import Prompts, prompts_from
from tenuto.compaction.proposal import Proposal, find_flaw, propose_digest, propose_summary
from tenuto.compaction.summarise import Summariser, SummaryContext, SummaryError
from tenuto.compaction.view import Surroundings
from tenuto.config.instructions import read_instructions
from tenuto.core.errors import TaskFailedError, describe_failure
from tenuto.core.gaps import describe_job
from tenuto.core.live import LiveSession
from tenuto.core.pin_notes import fitting_pins
from tenuto.core.replay import compaction_end
from tenuto.core.sizes import describe_sizes
from tenuto.core.summarisers import find_summarisers
from tenuto.core.system import refreshed_system_entry
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionProgressEvent, CompactionStartEvent
from tenuto.protocol.message import CompactionEntry, NoticeEntry
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import CompactionReason, CompactSessionOperation
from tenuto.protocol.usage import Usage

KEEP_SHARES = (1, 2, 8)
"""What the digest's tail is divided by, one attempt after the other: keep, half, next to nothing."""


OVERFLOW_DIVISOR = 3
"""Of a refused request at most this part stays word for word."""


class NothingToCompactError(TaskFailedError):
    """There is nothing that a compaction could make smaller; the text says why."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction did. `entry` is on disk."""

    entry: CompactionEntry


class Compaction:
    """One compaction of one session, from plan to line. `attempt` counts from 0; each keeps half of the one before."""

    def __init__(
        self, live: LiveSession, submission_id: str, reason: CompactionReason, focus: str, attempt: int
    ) -> None:
        self._live = live
        self._submission_id = submission_id
        self._reason: CompactionReason = reason
        self._focus = focus
        self._keep = self._tail_to_keep(attempt)
        self._prompts: Prompts = prompts_from(live.settings.compaction.prompts)
        self._failure = ""
        self._usage = Usage()

    async def run(self) -> CompactionResult:
        """Compact, or raise `NothingToCompactError`, `TaskFailedError` or `CancelledError` with nothing appended."""
        started = time.monotonic()
        plan = self._plan(self._keep)
        if isinstance(plan, NothingToCompact):
            return self._edit_instead(plan, started)
        proposal = await self._summarise(plan) or self._digest()
        return CompactionResult(self._write(proposal, time.monotonic() - started))

    def _tail_to_keep(self, attempt: int) -> int | None:
        """Return how much of the end stays, `None` for the usual.

        After an overflow, a silent one too (R-022), the real window or the real size is not what we believe it to be.
        """
        live = self._live
        size, budget = live.measure(), live.budget()
        is_silent = self._reason == "threshold" and size.tokens >= budget.window
        if self._reason != "overflow" and not is_silent:
            return None
        return min(budget.keep_recent, min(size.tokens, size.estimate) // OVERFLOW_DIVISOR) >> attempt

    def _plan(self, keep_tokens: int | None = None) -> CompactionPlan | NothingToCompact:
        live = self._live
        return plan_compaction(
            live.session.path(),
            live.session.get_llm_history(),
            size=live.measure(),
            budget=live.budget(),
            meter=live.meter,
            model_id=live.facts.id,
            manual=self._reason == "manual",
            keep_tokens=keep_tokens,
            tracker=live.session.state.files,
        )

    async def _summarise(self, plan: CompactionPlan) -> Proposal | None:
        """Return the proposal of the first model whose summary can be used; `None`, with the reason noted, if none."""
        for facts in await find_summarisers(self._live):
            proposal = await self._ask(facts, plan)
            if proposal is not None:
                return proposal
        return None

    async def _ask(self, facts: ModelFacts, plan: CompactionPlan) -> Proposal | None:
        """Ask one model; what it cost is added up, whatever comes of it."""
        live = self._live
        context = SummaryContext(
            facts=facts,
            budget=live.budget(facts),
            prompts=self._prompts,
            focus=self._focus,
            constraints=self._constraints(),
            calibration=plan.size.calibration,
        )
        summariser = Summariser(live.models.client(facts.provider), context, self._progress)
        try:
            summary = await summariser.summarise(plan)
        except asyncio.CancelledError:
            live.session.hold_usage(self._usage + summariser.usage)
            raise
        except SummaryError as error:
            self._usage += summariser.usage
            self._failure = str(error)
            return None
        self._usage += summariser.usage
        proposal = propose_summary(plan, summary, self._surroundings(), self._prompts, self._usage)
        self._failure = find_flaw(proposal, plan) or self._over_trigger(proposal)
        return None if self._failure else proposal

    def _over_trigger(self, proposal: Proposal) -> str:
        """An automatic compaction has to bring the next request under the trigger (R-004)."""
        size, budget = self._live.measure(), self._live.budget()
        limit = budget.trigger if size.fixed + size.queued < budget.trigger else budget.window
        if self._reason == "manual" or proposal.tokens_after <= limit:
            return ""
        return f"the context would still be over its limit ({proposal.tokens_after:,} of {limit:,} tokens)"

    def _digest(self) -> Proposal:
        """Return the proposal that needs no model, with as much of the tail as fits (R-003)."""
        flaw = self._failure
        best: Proposal | None = None
        for divisor in KEEP_SHARES:
            plan = self._plan((self._keep or self._live.budget().keep_recent) // divisor)
            if isinstance(plan, NothingToCompact):
                flaw = plan.reason
                continue
            proposal = propose_digest(plan, self._surroundings(), self._prompts, self._usage)
            flaw = find_flaw(proposal, plan)
            if flaw:
                continue
            best = proposal
            if not self._over_trigger(proposal):
                break
        if best is not None:
            return best
        self._live.session.hold_usage(self._usage)
        raise TaskFailedError(f"the conversation could not be made smaller: {flaw}{self._sizes()}")

    def _write(self, proposal: Proposal, duration: float) -> CompactionEntry:
        """Append the entry: from here on the compaction counts as done."""
        live = self._live
        system = refreshed_system_entry(live)
        system_seq = live.session.append(system).seq if system is not None else 0
        entry = proposal.to_entry(self._reason, focus=self._focus, duration=duration, system_seq=system_seq)
        stored = live.session.append(entry)
        if self._failure:
            live.notify(
                f"No model summary could be used ({self._failure}); the older part was condensed without a model.",
                "warning",
                keep=True,
            )
        return stored

    def _edit_instead(self, nothing: NothingToCompact, started: float) -> CompactionResult:
        """Shorten huge results when nothing else can be done; raise when that is not possible either."""
        if not nothing.edits:
            raise NothingToCompactError(f"nothing to compact: {nothing.reason}{self._sizes()}")
        live = self._live
        before = live.measure().tokens
        live.session.append(ViewEditEntry(edits=nothing.edits, reason=self._reason, tokens_before=before))
        after = live.measure().tokens
        duration = time.monotonic() - started
        # The end event shows it now; the log keeps it for a resumed transcript.
        live.session.append(NoticeEntry(text=f"Shortened {len(nothing.edits)} large results in the model's view."))
        return CompactionResult(
            CompactionEntry(
                summary="",
                first_kept_index=0,
                tokens_before=before,
                tokens_after=after,
                trigger=live.budget().trigger,
                reason=self._reason,
                rung="truncate",
                duration=duration,
            )
        )

    def _sizes(self) -> str:
        """Return what fills the window, for an automatic compaction that cannot help; nobody asked (R-005)."""
        size, trigger = self._live.measure(), self._live.budget().trigger
        is_said = size.fixed + size.queued >= trigger  # the plan's own reason has the sizes of the fixed parts
        return "" if self._reason != "threshold" or is_said else f" ({describe_sizes(self._live)})"

    def _constraints(self) -> str:
        files = read_instructions(self._live.home, self._live.session.cwd)
        return "\n\n".join(file.text for file in files)

    def _surroundings(self) -> Surroundings:
        state = self._live.session.state
        return Surroundings(
            pins=tuple(pin.text for pin in fitting_pins(state.pins, self._live.budget().window)),
            todo=state.todo,
            jobs=tuple(describe_job(job) for job in self._live.tool_context.jobs.running()),
            recall=self._live.tools.get("recall") is not None,
        )

    def _progress(self, stage: str, tokens: int) -> None:
        live = self._live
        live.bus.publish(
            CompactionProgressEvent(
                session_id=live.id, submission_id=self._submission_id, stage=stage, summary_tokens=tokens
            )
        )


async def run_compaction(
    live: LiveSession,
    reason: CompactionReason,
    *,
    submission_id: str = "",
    focus: str = "",
    will_retry: bool = False,
    attempt: int = 0,
) -> CompactionResult:
    """Compact the session's view and tell the front-ends. Raises what `Compaction.run` raises, after the end event."""
    live.bus.publish(CompactionStartEvent(session_id=live.id, submission_id=submission_id, reason=reason))
    try:
        result = await Compaction(live, submission_id, reason, focus, attempt).run()
    except asyncio.CancelledError:
        _publish_failure(live, submission_id, reason, aborted=True)
        raise
    except Exception as error:  # a start has its end whatever went wrong; the task manager takes the error
        live.automatic.note_failed(live.measure().tokens)
        _publish_failure(live, submission_id, reason, error=describe_failure(error))
        raise
    live.automatic.note_done(manual=reason == "manual")
    live.bus.publish(compaction_end(live.id, result.entry, submission_id, will_retry=will_retry))
    live.publish_usage()
    return result


def _publish_failure(
    live: LiveSession, submission_id: str, reason: CompactionReason, *, aborted: bool = False, error: str | None = None
) -> None:
    tokens = live.measure().tokens
    live.bus.publish(
        CompactionEndEvent(
            session_id=live.id,
            submission_id=submission_id,
            reason=reason,
            aborted=aborted,
            error=error,
            tokens_before=tokens,
        )
    )


class CompactionTask:
    """Serves one `CompactSessionOperation`."""

    def __init__(self, live: LiveSession, operation: CompactSessionOperation) -> None:
        self._live = live
        self._operation = operation

    async def run(self) -> None:
        """Compact. That there is nothing to compact is an answer and not a failure."""
        operation = self._operation
        try:
            await run_compaction(
                self._live,
                operation.reason,
                submission_id=operation.submission_id,
                focus=operation.focus or "",
                will_retry=operation.will_retry,
            )
        except NothingToCompactError:
            return
