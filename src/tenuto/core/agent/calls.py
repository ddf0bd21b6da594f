"""The tool calls of one step: judged, run (side by side where that is safe), stored in call order.

Whatever happens, every call gets exactly one result: a refusal, an error, or "interrupted" when the user stopped it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from tenuto.config.saved_approvals import SavedApproval, SavedApprovalsError
from tenuto.core.state.approvals import Answer, Question
from tenuto.core.state.live import LiveSession
from tenuto.guard.approval import judge, reads_only, refusal_text, refuse_change
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse, Verdict
from tenuto.protocol.entry import ApprovalEntry, Mode, TodoEntry
from tenuto.protocol.event import (
    CallRefusedEvent,
    TodoChangedEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import DenialView, TodoView, ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.view.pairing import interrupted_result
from tenuto.tool.output import StepBudget, room_for_results
from tenuto.tool.run.context import SharingTool
from tenuto.tool.run.runner import PreparedCall, prepare, run_call


class CallRunner:
    """Runs the calls of one step."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._stored: list[ToolResultMessage] = []
        self._later: list[ToolCallPart] = []
        self._asked = 0

    async def run(self, calls: Sequence[ToolCallPart]) -> list[ToolResultMessage]:
        """Run all calls and return their stored results in call order.

        An interrupt cancels what runs, stores an "interrupted" result for every call that has none, and goes on up.
        """
        budget = self._step_budget(len(calls))
        try:
            begun = 0
            for group in await self._groups(calls):
                begun += len(group)
                self._later = list(calls[begun:])
                await self._run_group(group, budget)
        except asyncio.CancelledError:
            for call in calls[len(self._stored) :]:
                self._store(interrupted_result(call))
            raise
        return self._stored

    def _step_budget(self, calls: int) -> StepBudget:
        """What all results of the step may have together (rung 0 of DESIGN section 6)."""
        budget, size = self._live.budget(), self._live.measure()
        # A factor under 1, learned on other texts, must not let results grow over the room: they are counted plainly.
        return StepBudget(
            window=budget.window,
            room=room_for_results(budget.window, budget.trigger, size.tokens),
            calls=calls,
            calibration=max(1.0, size.calibration),
        )

    async def _groups(self, calls: Sequence[ToolCallPart]) -> list[list[ToolCallPart]]:
        """Neighbouring calls that may run side by side form a group; every other call is one of its own."""
        groups: list[list[ToolCallPart]] = []
        previous_parallel = False
        for call in calls:
            parallel = len(calls) > 1 and await self._is_parallel(call)
            if parallel and previous_parallel:
                groups[-1].append(call)
            else:
                groups.append([call])
            previous_parallel = parallel
        return groups

    async def _is_parallel(self, call: ToolCallPart) -> bool:
        """Say whether a call may run beside its neighbours: by its tool, or because it is a command that only reads.

        Only what the call says counts; it is judged when it runs, like every other.
        """
        live = self._live
        tool = live.tools.get(call.name)
        if tool is None or not isinstance(tool, SharingTool):
            return tool is not None and tool.parallel
        prepared = await prepare(call, live.tools, live.tool_context, self._may_look)
        if not isinstance(prepared, PreparedCall) or not tool.may_share(prepared.arguments):
            return False
        return reads_only(prepared.subject, str(live.tool_context.workspace))

    async def _run_group(self, calls: list[ToolCallPart], budget: StepBudget) -> None:
        """Run calls side by side; each result is stored as soon as all before it are: another may wait for a user."""
        tasks = [asyncio.ensure_future(self._run_one(call)) for call in calls]
        stored = 0
        keep = self._live.tool_context.store_output
        try:
            for task in tasks:
                await asyncio.wait([task])  # a cancellation is ours first: a call may answer its own with a result
                self._store(budget.bound(task.result(), keep))
                stored += 1
        except asyncio.CancelledError:
            await _cancel_all(tasks)
            for call, task in zip(calls[stored:], tasks[stored:], strict=True):
                finished = not task.cancelled() and task.exception() is None
                self._store(budget.bound(task.result() if finished else interrupted_result(call), keep))
            raise

    async def _run_one(self, call: ToolCallPart) -> ToolResultMessage:
        live = self._live
        prepared = await prepare(call, live.tools, live.tool_context, self._may_look)
        if isinstance(prepared, ToolResultMessage):
            self._publish_start(call, "")
            return prepared
        self._publish_start(call, prepared.subject.summary)
        refusal = await self._refusal(prepared)
        if refusal is not None:
            return refusal
        return await run_call(
            prepared,
            live.tool_context,
            emit=lambda text: self._emit(call.id, text),
        )

    async def _refusal(self, prepared: PreparedCall) -> ToolResultMessage | None:
        """Return the result of a call that may not run, `None` when it may. Asks the user where the mode says so."""
        live = self._live
        verdict = self._judge(prepared)
        if isinstance(verdict, Allow):
            return None
        if isinstance(verdict, Refuse):
            self._tell_refused(prepared, "plan mode changes nothing", None)
            return denied_result(prepared.call, verdict.reason)
        if not live.interactive:
            live.task.refused += 1
            self._tell_refused(prepared, verdict.reason, verdict.allowed_by)
            return denied_result(prepared.call, refusal_text(verdict, prepared.subject))
        behind = await self._to_be_asked()
        self._asked += 1
        question = Question(
            call_id=prepared.call.id,
            tool=prepared.subject.tool,
            summary=prepared.subject.summary,
            detail=prepared.subject.detail,
            reason=verdict.reason,
            diffs=prepared.subject.diffs,
            session_pattern=verdict.session_pattern,
            lasting=bool(verdict.session_pattern),
            asked=self._asked - 1,
            behind=behind,
        )
        answer = await live.approvals.ask(question, self._submission_id)
        return self._note_answer(answer, verdict, prepared)

    def _tell_refused(self, prepared: PreparedCall, reason: str, allowed_by: Mode | None) -> None:
        live = self._live
        if live.interactive:  # who looks on sees the result
            return
        live.bus.publish(
            CallRefusedEvent(
                session_id=live.id,
                submission_id=self._submission_id,
                call_id=prepared.call.id,
                name=prepared.call.name,
                summary=prepared.subject.summary,
                reason=reason,
                allowed_by=allowed_by,
            )
        )

    def _judge(self, prepared: PreparedCall) -> Verdict:
        return self._judge_subject(prepared.subject)

    def _judge_subject(self, subject: ApprovalSubject) -> Verdict:
        """Judge as the session's mode and rules say; a sub-agent's calls by those of the session that it works for."""
        live = self._live
        workspace = live.tool_context.workspace
        if live.kind is not None and live.kind.reads_only and (refused := refuse_change(subject, workspace)):
            return refused
        return judge(live.mode, subject, self._approvals(), workspace)

    def _may_look(self, place: ApprovalSubject) -> bool:
        """Say whether the file of a call may be looked at: it may be changed, or a user is going to be asked."""
        verdict = self._judge_subject(place)
        return isinstance(verdict, Allow) or (isinstance(verdict, Ask) and self._live.interactive)

    async def _to_be_asked(self) -> int:
        """Return how many of the calls that are not due yet will be asked about, as it looks now.

        What they will do may depend on those before them, so each is prepared and judged again when it is due.
        """
        live = self._live
        looked_at = [await prepare(call, live.tools, live.tool_context, self._may_look) for call in self._later]
        return sum(isinstance(one, PreparedCall) and isinstance(self._judge(one), Ask) for one in looked_at)

    def _note_answer(self, answer: Answer, verdict: Ask, prepared: PreparedCall) -> ToolResultMessage | None:
        tool = prepared.subject.tool
        if answer.decision == "deny":
            said = f" They said: {answer.feedback}" if answer.feedback else ""
            text = f"The user did not allow this {tool} call; it was not run.{said}"
            return denied_result(prepared.call, text, answer.feedback)
        pattern = verdict.session_pattern
        if pattern and answer.decision in {"session", "project"}:
            is_kept = answer.decision == "project" and self._keep(tool, pattern)
            if not is_kept:
                self._live.owner.session.append(ApprovalEntry(tool=tool, pattern=pattern))
        return None

    def _approvals(self) -> Iterator[ApprovalEntry]:
        """Yield what the user has allowed beforehand: in this session, then permanently in this directory."""
        live = self._live.owner
        yield from live.allowed
        yield from live.session.state.approvals
        yield from live.saved_approvals.of(live.tool_context.workspace)
        if live.saved_approvals.problem:
            live.notify_once("saved approvals", live.saved_approvals.problem, "warning")

    def _keep(self, tool: str, pattern: str) -> bool:
        """Write down what is allowed permanently; `False` when it cannot be written, and holds for the session only."""
        live = self._live
        directory = str(live.tool_context.workspace)
        try:
            live.saved_approvals.add(SavedApproval(tool=tool, pattern=pattern, directory=directory))
        except SavedApprovalsError as error:
            live.notify(f"Allowed for this session only: {error}", "warning")
            return False
        live.notify(f"Allowed permanently in {directory}: {tool} {pattern}. /approvals revokes it.")
        return True

    def _publish_start(self, call: ToolCallPart, summary: str) -> None:
        live = self._live
        live.bus.publish(
            ToolStartedEvent(
                session_id=live.id,
                submission_id=self._submission_id,
                call_id=call.id,
                name=call.name,
                arguments=call.arguments,
                summary=summary,
            )
        )

    def _emit(self, call_id: str, text: str) -> None:
        live = self._live
        live.bus.publish(
            ToolOutputEvent(session_id=live.id, submission_id=self._submission_id, call_id=call_id, text=text)
        )

    def _store(self, result: ToolResultMessage) -> None:
        """Put a result into the history and tell everybody."""
        live = self._live
        stored = live.session.append(result)
        self._stored.append(stored)
        live.tool_context.note_stored(stored.call_id)
        live.bus.publish(ToolResultEvent(session_id=live.id, submission_id=self._submission_id, message=stored))
        for view in stored.ui:
            if isinstance(view, TodoView):
                live.session.append(TodoEntry(items=view.items))
                live.bus.publish(TodoChangedEvent(session_id=live.id, items=view.items))


async def _cancel_all(tasks: Sequence[asyncio.Task[ToolResultMessage]]) -> None:
    """Cancel what runs and wait until all of it has ended; a second cancellation meanwhile is passed on to it."""
    running = [task for task in tasks if not task.done()]
    while running:
        for task in running:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(running)
        running = [task for task in running if not task.done()]


def denied_result(call: ToolCallPart, text: str, feedback: str = "") -> ToolResultMessage:
    """Return the result of a call that was not allowed; `feedback` is what the user said to it."""
    return ToolResultMessage(
        call_id=call.id,
        name=call.name,
        parts=(TextPart(text=text),),
        is_error=True,
        denied=True,
        ui=(DenialView(feedback=feedback),) if feedback else (),
    )
