"""The tool calls of one step: judged, run (side by side where that is safe), stored in call order.

Whatever happens, every call gets exactly one result: a refusal, an error, or "interrupted" when the user stopped it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from tenuto.config.saved_approvals import SavedApprovalsError, saved_in
from tenuto.core.hooks.calls import CallHooks, Ruling
from tenuto.core.state.approvals import Answer, Question
from tenuto.core.state.live import LiveSession
from tenuto.guard.approval import reads_only, refusal_text, rules_to_allow
from tenuto.guard.rules import Rule, read_rule
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse
from tenuto.protocol.entry import ApprovalEntry, Mode, TodoEntry
from tenuto.protocol.event import (
    ApprovalKind,
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

    def __init__(self, live: LiveSession, submission_id: str, lent: Sequence[Rule] = ()) -> None:
        """`lent` are rules that hold for these calls alone."""
        self._live = live
        self._submission_id = submission_id
        self._lent = lent
        self._stored: list[ToolResultMessage] = []
        self._later: list[ToolCallPart] = []
        self._asked = 0
        self._hooks = CallHooks(live)

    @property
    def ending(self) -> str:
        """Why a hook does not want the turn to go on; empty where none is against it."""
        return self._hooks.ending

    async def run(self, calls: Sequence[ToolCallPart]) -> list[ToolResultMessage]:
        """Run all calls and return their stored results in call order.

        An interrupt, or a fault of ours, ends what runs, stores an "interrupted" result for every call that has none,
        and goes on up.
        """
        budget = self._step_budget(len(calls))
        self._live.tool_context.view = self._live.session.get_llm_history()
        try:
            begun = 0
            for group in await self._groups(calls):
                begun += len(group)
                self._later = list(calls[begun:])
                await self._run_group(group, budget)
        except BaseException:
            for call in calls[len(self._stored) :]:
                self._store(interrupted_result(call))
            raise
        finally:
            self._hooks.flush()
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
        return reads_only(prepared.subject)

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
        except BaseException:
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
        permitted = await self.permit(prepared)
        if isinstance(permitted, ToolResultMessage):
            return permitted
        return await self._run_permitted(permitted, lambda text: self._emit(call.id, text))

    async def run_for_prompt(self, prepared: PreparedCall) -> ToolResultMessage:
        """Run a call that no model made, for a prompt that is yet to be sent. Its result goes into no history.

        What hooks say of it is told at the next boundary.
        """
        try:
            permitted = await self.permit(prepared)
            if isinstance(permitted, ToolResultMessage):
                return permitted
            return await self._run_permitted(permitted, lambda _text: None)
        finally:
            self._live.tool_context.note_stored(prepared.call.id)
            self._hooks.keep_for_later()

    async def _run_permitted(self, permitted: PreparedCall, emit: Callable[[str], None]) -> ToolResultMessage:
        result = await run_call(permitted, self._live.tool_context, emit=emit)
        await self._hooks.after(permitted.call, result)
        return result

    async def permit(self, prepared: PreparedCall) -> PreparedCall | ToolResultMessage:
        """Return the call that may run, as hooks want it, or the result of one that may not."""
        live, call = self._live, prepared.call
        ruling = await self._hooks.before(call)
        if ruling.denial:
            return denied_result(call, ruling.denial)
        changed: PreparedCall | ToolResultMessage = prepared
        if ruling.call is not call:
            changed = await prepare(ruling.call, live.tools, live.tool_context, self._may_look)
            if isinstance(changed, ToolResultMessage):
                return denied_result(call, f"A hook changed this {call.name} call; it was not run. {_text(changed)}")
        refusal = await self._refusal(changed, ruling)
        return changed if refusal is None else refusal

    async def _refusal(self, prepared: PreparedCall, ruling: Ruling) -> ToolResultMessage | None:
        """Return the result of a call that may not run, `None` when it may. Asks the user where mode or hook say so."""
        live = self._live
        verdict = live.judge(prepared.subject, self._lent)
        if isinstance(verdict, Refuse):
            live.task.refused += bool(verdict.rule) and not live.can_ask
            self._tell_refused(prepared, verdict.why)
            return denied_result(prepared.call, verdict.reason)
        if ruling.is_approved:
            return None
        if isinstance(verdict, Allow):
            if not ruling.question:
                return None
            verdict = Ask(reason=f"a hook asks for it: {ruling.question}")
        if not live.can_ask:
            live.task.refused += 1
            root = live.tool_context.places[0]
            self._tell_refused(prepared, verdict.reason, verdict.allowed_by, rules_to_allow(verdict, root))
            return denied_result(prepared.call, refusal_text(verdict, prepared.subject, root))
        behind = await self._to_be_asked()
        self._asked += 1
        question = Question(
            call_id=prepared.call.id,
            tool=prepared.subject.tool,
            summary=prepared.subject.summary,
            detail=prepared.subject.detail,
            reason=verdict.reason,
            diffs=prepared.subject.diffs,
            kinds=verdict.kinds,
            asked=self._asked - 1,
            behind=behind,
        )
        answer = await live.approvals.ask(question, self._submission_id)
        return self._note_answer(answer, verdict, prepared)

    def _tell_refused(
        self, prepared: PreparedCall, reason: str, allowed_by: Mode | None = None, rules: tuple[str, ...] = ()
    ) -> None:
        live = self._live
        if live.can_ask:  # who looks on sees the result
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
                rules=rules,
            )
        )

    def _may_look(self, place: ApprovalSubject) -> bool:
        """Say whether the file of a call may be looked at: it may be changed, or a user is going to be asked."""
        verdict = self._live.judge(place)
        return isinstance(verdict, Allow) or (isinstance(verdict, Ask) and self._live.can_ask)

    async def _to_be_asked(self) -> int:
        """Return how many of the calls that are not due yet will be asked about, as it looks now.

        What they will do may depend on those before them, so each is prepared and judged again when it is due.
        """
        live = self._live
        looked_at = [await prepare(call, live.tools, live.tool_context, self._may_look) for call in self._later]
        return sum(isinstance(one, PreparedCall) and isinstance(live.judge(one.subject), Ask) for one in looked_at)

    def _note_answer(self, answer: Answer, verdict: Ask, prepared: PreparedCall) -> ToolResultMessage | None:
        tool = prepared.subject.tool
        if answer.decision == "deny":
            said = f" They said: {answer.feedback}" if answer.feedback else ""
            text = f"The user did not allow this {tool} call; it was not run.{said}"
            return denied_result(prepared.call, text, answer.feedback)
        if answer.decision in {"session", "project"} and 0 <= answer.kind < len(verdict.kinds):
            kind = verdict.kinds[answer.kind]
            if answer.decision == "session" or not self._keep(kind):
                for entry in _entries(kind):
                    self._live.owner.session.append(entry)
        return None

    def _keep(self, kind: ApprovalKind) -> bool:
        """Write down what is allowed permanently; `False` when it cannot be written, and holds for the session only."""
        live, directory = self._live, self._live.tool_context.workspace
        try:
            for entry in _entries(kind):
                live.saved_approvals.add(saved_in(directory, entry))
        except SavedApprovalsError as error:
            live.owner.notify(f"Allowed for this session only: {error}", "warning")
            return False
        live.owner.notify(f"Allowed permanently in {directory}: {', '.join(kind.rules)}. /approvals revokes it.")
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


def _entries(kind: ApprovalKind) -> Iterator[ApprovalEntry]:
    for text in kind.rules:
        rule = read_rule(text)
        yield ApprovalEntry(tool=rule.tool, pattern=rule.pattern, form="rule")


def _text(result: ToolResultMessage) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, TextPart))


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
