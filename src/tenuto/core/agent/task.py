"""The agent task: a loop of steps until the model has nothing more to do and nothing is due from the queue."""

from __future__ import annotations

import asyncio
from functools import partial

from tenuto.core.agent.endings import (
    FINAL_CHECK_KIND,
    UNFINISHED_KIND,
    RepeatedCalls,
    UnfinishedAnswers,
    find_unchecked,
)
from tenuto.core.agent.plans import close_open_plan, hand_over
from tenuto.core.agent.step import ModelCall, remind_at_prompt
from tenuto.core.agent.turn import give_back, take_on
from tenuto.core.errors import CompactionRefusedError, EndedEarlyError, TaskFailedError
from tenuto.core.hooks.turn import TurnHooks
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import LiveSession
from tenuto.core.state.prompt import ensure_system_entry
from tenuto.core.state.windows import describe_sizes
from tenuto.protocol.entry import QueuedEntry
from tenuto.protocol.event import StepStartedEvent, UserMessageEvent
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    NoticeEntry,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.session.plans import proposed_plan
from tenuto.text.figures import plural


class AgentTask:
    """Serves one `RunAgentOperation`: sends what is queued, oldest first, and works until it is answered."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._step = 0
        self._repeated = RepeatedCalls()
        self._unfinished = UnfinishedAnswers()
        self._is_final_checked = False
        self._hooks = TurnHooks(live)

    async def run(self) -> None:
        """Work until the queue is empty and the last answer asks for no tool. Raises what ends the task."""
        live = self._live
        live.task.queue_waiting = False
        live.compaction.asked = None
        live.session.flush_held_usage()
        try:
            while await self._send_next():
                await self._work()
        except asyncio.CancelledError:
            live.task.queue_waiting = True
            live.compaction.background.cancel()
            raise
        finally:
            for step in (partial(give_back, live), live.session.save_meta, live.watch_saving, live.publish_queue):
                live.attempt(step)

    async def _work(self) -> None:
        """Loop over steps until an answer asks for no tool and is finished."""
        await self._compact_as_asked()
        while True:
            await self._prepare_summary()
            message = await self._run_step()
            calls = list(message.tool_calls)
            if calls:
                if await self._run_calls(calls):
                    return
            elif proposed_plan(message):
                self._unfinished.note_calls(())
                if not await hand_over(self._live, message, self._submission_id) and await self._may_end(message):
                    return
            elif not self._goes_on(message) and await self._may_end(message):
                return
            await self._live.task.boundary.cross()
            await self._send_steering()
            await self._compact_between_steps()

    async def _may_end(self, message: AssistantMessage) -> bool:
        """Say whether the turn ends with an answer, and compact then when that was asked for."""
        if await self._hooks.holds(message):
            return False
        await self._compact_as_asked()
        return True

    async def _run_calls(self, calls: list[ToolCallPart]) -> bool:
        """Run an answer's calls; whether the work ends with them."""
        from tenuto.core.agent.calls import CallRunner

        runner = CallRunner(self._live, self._submission_id)
        results = await runner.run(calls)
        self._unfinished.note_calls(calls)
        if runner.ending:
            text = f"A hook ended the turn: {runner.ending}"
            self._live.notify(text, "warning", keep=True)
            raise EndedEarlyError("declined", text)
        return self._is_over(calls, results)

    async def _run_step(self) -> AssistantMessage:
        live = self._live
        check_limits(live)
        await self._hooks.settle()
        self._step += 1
        self._live.store_side_commands()
        live.bus.publish(StepStartedEvent(session_id=live.id, submission_id=self._submission_id, step=self._step))
        live.watch_saving()
        message = await ModelCall(live, self._submission_id).run()
        live.publish_usage()
        # What a compaction can be judged by is the request; the answer is new, however long it is.
        sent = message.usage.sent if message.usage is not None else 0
        if live.compaction.automatic.note_measured(sent or live.measure().tokens):
            live.notify(
                "Compacting did not bring the context under its limit twice in a row; automatic compaction stops until "
                f"you compact, change the model, or the window is full ({describe_sizes(live)}).",
                "warning",
                keep=True,
            )
        return message

    async def _prepare_summary(self) -> None:
        """Have the next compaction's summary written beside the task, when it is near (R-060)."""
        live = self._live
        if live.compaction.background.is_unused and not live.is_preparation_due():
            return
        from tenuto.core.compacting.preparation import at_boundary

        await live.meter.texts.read(live.session.path())
        at_boundary(live)

    async def _compact_between_steps(self) -> None:
        """Compact when the model asked for it, then when the context is over the trigger.

        A failure of the second ends the task only where the window is full.
        """
        live = self._live
        await self._compact_as_asked()
        if not live.is_compaction_due():
            return
        from tenuto.core.compacting.compact import run_compaction

        try:
            await run_compaction(live, CompactionRequest(reason="threshold", submission_id=self._submission_id))
        except TaskFailedError as error:
            if not isinstance(error, CompactionRefusedError):
                # The end event has shown it already; the log keeps it for a resumed transcript.
                live.session.append(NoticeEntry(text=f"Automatic compaction failed: {error}", level="warning"))
            if live.measure().tokens >= live.budget().window:
                raise

    async def _compact_as_asked(self) -> None:
        """Make the compaction that the model, a hook or an extension asked for."""
        compaction = self._live.compaction
        if compaction.asked is None and not compaction.wishes:
            return
        from tenuto.core.compacting.asked import compact_as_asked, grant_wishes

        await grant_wishes(self._live)
        if compaction.asked is not None:
            await compact_as_asked(self._live, self._submission_id)

    async def _send_next(self) -> bool:
        """Put the oldest queued text into the history, with what has to be told before it; `False`: nothing queued."""
        while queue := self._live.session.state.queue:
            ensure_system_entry(self._live)
            close_open_plan(self._live)
            self._live.task.questions = self._live.task.added = 0
            self._live.store_side_commands()
            await remind_at_prompt(self._live)
            if await self._send(queue[0]):
                self._repeated.clear()
                self._hooks.begin_turn()
                self._is_final_checked = False
                return True
        return False

    async def _send_steering(self) -> None:
        """Deliver the texts that the user wants heard at this tool boundary."""
        self._live.store_side_commands()
        for entry in self._live.session.state.queue:
            if entry.steer:
                await self._send(entry)

    async def _send(self, entry: QueuedEntry) -> bool:
        """Put a prompt into the history, with the files that it mentions; `False` when it was taken back meanwhile."""
        live = self._live
        if not await self._hooks.may_send(entry):
            return False
        if entry.terms is not None or not entry.steer:
            await take_on(live, entry.terms)
        mentioned = None
        if entry.origin in ("typed", "command") and "@" in (text := text_of(entry.parts)):
            from tenuto.core.agent.mentions import read_mentions

            mentioned = await read_mentions(live, text)
        if all(queued.seq != entry.seq for queued in live.session.state.queue):
            return False
        parts = entry.parts + (mentioned.images if mentioned else ())
        stored = live.session.append(UserMessage(parts=parts, origin=entry.origin, from_queued=entry.seq))
        live.bus.publish(
            UserMessageEvent(
                session_id=live.id,
                submission_id=self._submission_id,
                seq=stored.seq,
                parts=stored.parts,
                origin=stored.origin,
                from_queued=entry.seq,
            )
        )
        if mentioned is not None and mentioned.message is not None:
            live.session.append(mentioned.message)
            live.notify(mentioned.notice, kind=mentioned.message.kind, keep=True)
        self._hooks.sent()
        live.publish_queue()
        return True

    def _is_over(self, calls: list[ToolCallPart], results: list[ToolResultMessage]) -> bool:
        """Say whether the work ends here, because the model goes round in circles.

        Then the model is told first. Where it does not listen the user is told why it ended, and a task whose call
        keeps failing has failed.
        """
        found = self._repeated.find(calls, results, self._live.compaction.automatic.done)
        if found is None:
            return False
        if not found.is_last:
            self._live.session.append(found.note)
            return False
        if found.failing:
            raise TaskFailedError(f"{found.reason}; say how to go on")
        self._live.notify(f"{found.reason[0].upper()}{found.reason[1:]}; say how to go on.", "warning", keep=True)
        return True

    def _goes_on(self, message: AssistantMessage) -> bool:
        """Say whether an answer without calls is to be gone on with. Raises `EndedEarlyError` when it is no answer."""
        live = self._live
        match message.stop_reason:
            case "pause":
                self._unfinished.note_pause()
                return True
            case "max_tokens":
                try:
                    note, notice = self._unfinished.go_on(message)
                except EndedEarlyError as end:
                    live.notify(str(end), "warning", keep=True)
                    raise
                live.session.append(note)
                live.notify(notice, kind=UNFINISHED_KIND, keep=True)
                return True
            case "refusal":
                text = "The model declined to answer; say it in other words, or change the model."
                live.notify(text, "warning", keep=True)
                raise EndedEarlyError("declined", text)
            case "end_turn" | "tool_use" | "other" if not text_of(message.parts).strip():
                live.session.append(self._unfinished.break_silence(message))
                return True
            case "other":
                text = "The server ended the answer for a reason of its own; check that it is whole."
                live.notify(text, "warning", keep=True)
                return self._asks_for_check()
            case "end_turn" | "tool_use":
                return self._asks_for_check()
            case "window_exceeded" | "interrupted":
                return False

    def _asks_for_check(self) -> bool:
        """Say whether the model is told what its answer leaves open: once a turn, where no user decides each step."""
        live = self._live
        alone = live.mode == "auto" or not live.interactive
        if self._is_final_checked or not alone or not live.settings.agent.final_check:
            return False
        self._is_final_checked = True
        text = find_unchecked(live.session.path(), live.session.state.todo, _running_jobs(live))
        if text:
            live.session.append(DeveloperMessage(text=text, kind=FINAL_CHECK_KIND))
            live.notify("The agent is asked to check its work before it ends.", kind=FINAL_CHECK_KIND, keep=True)
        return bool(text)


def _running_jobs(live: LiveSession) -> str:
    """Return what a run that ends by itself has to be told of the jobs that run at its end."""
    jobs = live.tool_context.jobs.asked_for() if live.ends_by_itself else []
    if not jobs:
        return ""
    return (
        f"Still running: {'; '.join(job.describe() for job in jobs)}. This run stays open for them, at most "
        f"{live.settings.agent.job_wait:g} s, and you are called when one ends. Stop what need not end, like servers."
    )


def check_limits(live: LiveSession) -> None:
    """Count a call of the model that comes next. Raises `EndedEarlyError` where it is over a limit of the run.

    What sub-agents call and cost counts, while they run too.
    """
    task = live.task
    if task.spent_before is None:
        task.spent_before = live.session.state.usage.cost or 0.0
    if live.kind is not None and live.limits.turns is not None and task.turns >= live.limits.turns:
        raise EndedEarlyError(
            "limit_reached", f"stopped after {plural(live.limits.turns, 'turn')} ({_child_limit(live)})"
        )
    _check_run_turns(live.root)
    _check_cost(live)
    task.turns += 1
    if live.parent is not None:
        live.root.task.turns_below += 1


def _child_limit(live: LiveSession) -> str:
    """Return what bounds the calls of a sub-agent: its file, or the settings."""
    is_own = live.kind is not None and live.kind.max_turns == live.limits.turns
    return "maxTurns of its file" if is_own else "[agents] max_steps"


def _check_run_turns(root: LiveSession) -> None:
    """Raise `EndedEarlyError` where a run, its sub-agents included, has made all calls of the model that it may."""
    task, limit = root.task, root.limits.turns
    if limit is not None and task.turns + task.turns_below >= limit:
        below = f", {task.turns_below} of them by sub-agents" if task.turns_below else ""
        raise EndedEarlyError(
            "limit_reached", f"stopped after {plural(limit, 'turn')}{below} ({root.limits.turns_name})"
        )


def _check_cost(live: LiveSession) -> None:
    """Raise `EndedEarlyError` where this session, or one that it works for, has spent what its run may cost."""
    limit = live.limits.cost
    spent = (live.session.state.usage.cost or 0.0) + live.children.spent - (live.task.spent_before or 0.0)
    if limit is not None and spent >= limit:
        said = f"stopped after {spent:.2f} of {limit:g} dollars ({live.limits.cost_name})"
        raise EndedEarlyError("limit_reached", said)
    if live.parent is not None:
        _check_cost(live.parent)
