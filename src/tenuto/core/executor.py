"""The executor: operations in, tasks and changes of state out; `Executor._carry_out` has a branch for each.

The task manager (`tasks.py`) says which task serves which operation, at most one a session at a time. Agent tasks,
compactions and the user's shell commands are all asyncio tasks started there, so waiting and cancelling are the same
for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import assert_never

from tenuto.core.agent.task import AgentTask
from tenuto.core.bus import EventBus
from tenuto.core.errors import EXPECTED_FAILURES, TaskFailedError, describe_failure, names_nothing
from tenuto.core.state.live import READ_ONLY, LiveSession, SessionHolder
from tenuto.core.state.windows import change_model, find_model, is_too_small
from tenuto.core.tasks import Body, RunningTask, TaskKind, TaskManager
from tenuto.core.transcript import earlier_events
from tenuto.protocol.entry import (
    FAILED_KIND,
    WAITING_KIND,
    DequeuedEntry,
    ModeEntry,
    NoticeEntry,
    QueuedEntry,
    QueueEditEntry,
    TitleEntry,
)
from tenuto.protocol.event import (
    ModeChangedEvent,
    NoticeEvent,
    PromptReturnedEvent,
    TaskFinishedEvent,
    TitleChangedEvent,
)
from tenuto.protocol.operation import (
    AcceptCompactionOperation,
    AnswerApprovalOperation,
    AnyOperation,
    ChangeModelOperation,
    ChangeModeOperation,
    CompactFromOperation,
    CompactSessionOperation,
    DropCompactionOperation,
    EditQueueOperation,
    FindEarlierOperation,
    ForkSessionOperation,
    InterruptOperation,
    MoveLeafOperation,
    MoveSessionOperation,
    MoveToBackgroundOperation,
    NewSessionOperation,
    OpenSessionOperation,
    PreviewCompactionOperation,
    RunAgentOperation,
    RunShellOperation,
    SetTitleOperation,
    ShowEarlierOperation,
    WatchChildOperation,
    new_submission_id,
)
from tenuto.protocol.part import TextPart

LAST_MOMENT = 0.3
"""Seconds that what a background job leaves behind has to end."""
JOB_ENDED = "(A background job has ended; go on with what came of it.)"
"""What begins a turn when nobody said anything."""
_WITHOUT_WRITING = (
    FindEarlierOperation,
    ForkSessionOperation,
    InterruptOperation,
    NewSessionOperation,
    OpenSessionOperation,
    RunShellOperation,
    ShowEarlierOperation,
    WatchChildOperation,
)
"""What can be done in a session that is only read. A command of the user's is handed back by its own handler."""


class Executor:
    """Carries out operations. Tasks of one session never overlap; what fails becomes an event, never an exception."""

    def __init__(self, bus: EventBus, opener: SessionHolder) -> None:
        self._bus = bus
        self._opener = opener
        self.tasks = TaskManager(bus)

    async def submit(self, operation: AnyOperation) -> str:
        """Carry out `operation`; a task that it starts runs on. Returns the submission id.

        One for a running sub-agent goes there.
        """
        live = self._opener.open_one
        child = live.children.find(operation.session_id) if live is not None else None
        if child is not None:
            return await child.submit(operation)
        try:
            if not isinstance(operation, _WITHOUT_WRITING):
                self._require_writable(operation.session_id)
            await self._carry_out(operation)
        except EXPECTED_FAILURES as error:
            self._bus.publish(
                NoticeEvent(
                    session_id=operation.session_id,
                    submission_id=operation.submission_id,
                    text=describe_failure(error),
                    level="warning" if names_nothing(error) else "error",
                )
            )
        return operation.submission_id

    async def _carry_out(self, operation: AnyOperation) -> None:  # noqa: PLR0912 - one branch an operation
        match operation:
            case RunAgentOperation():
                self._run_agent(operation)
            case CompactSessionOperation():
                await self._compact_session(operation)
            case PreviewCompactionOperation():
                self._preview_compaction(operation)
            case AcceptCompactionOperation():
                self._accept_compaction(operation)
            case DropCompactionOperation():
                self._drop_compaction(operation)
            case CompactFromOperation():
                self._compact_from(operation)
            case MoveLeafOperation():
                await self._move_leaf(operation)
            case InterruptOperation():
                if self.tasks.cancel(operation.session_id) is None:
                    self._wait_no_longer(operation.session_id)
            case MoveToBackgroundOperation():
                self._opener.live(operation.session_id).move_to_background()
            case WatchChildOperation():
                from tenuto.core.watching import watch_child

                await watch_child(self._opener.live(operation.session_id), operation)
            case ChangeModelOperation():
                await self._change_model(operation)
            case ChangeModeOperation():
                self._change_mode(operation)
            case AnswerApprovalOperation():  # one that is closed already needs no answer
                self._opener.live(operation.session_id).approvals.answer(operation)
            case EditQueueOperation():
                self._edit_queue(operation)
            case RunShellOperation():
                self._run_shell(operation)
            case SetTitleOperation():
                self._set_title(operation)
            case OpenSessionOperation() | MoveSessionOperation() | NewSessionOperation() | ForkSessionOperation():
                await self._opener.change(operation)
            case ShowEarlierOperation():
                await self._show_earlier(operation)
            case FindEarlierOperation():
                await self._find_earlier(operation)
            case _:
                assert_never(operation)

    def _require_writable(self, session_id: str) -> None:
        """Raise `TaskFailedError` when the session is open for reading only."""
        if self._opener.live(session_id).session.is_read_only:
            raise TaskFailedError(READ_ONLY)

    async def wait_for(self, submission_id: str) -> TaskFinishedEvent | None:
        """Wait for exactly that submission's task; `None` when it never had one."""
        return await self.tasks.wait(submission_id)

    # --- tasks ---

    def _run_agent(self, operation: RunAgentOperation) -> None:
        """Start an agent task; with one running already, what is queued will be sent by that."""
        live = self._opener.live(operation.session_id)
        if self.tasks.running(live.id) is None:
            self._start(live, operation.submission_id, "agent", AgentTask(live, operation.submission_id).run())

    async def _compact_session(self, operation: CompactSessionOperation) -> None:
        """Start a compaction. Only a manual one stops a running agent task first; a second one is refused."""
        live = self._opener.live(operation.session_id)
        running = self.tasks.running(live.id)
        if running is not None and running.kind == "compaction":
            raise TaskFailedError("a compaction is running already; interrupt it, or wait")
        if running is not None and operation.reason != "manual":
            return
        with self.holding(live):
            if running is not None and not await self._make_way(live, running, operation):
                return
            from tenuto.core.compacting.compact import serve_compaction  # needed by few sessions, and 20 ms to import

            self._start(live, operation.submission_id, "compaction", serve_compaction(live, operation))

    async def _make_way(self, live: LiveSession, running: RunningTask, operation: CompactSessionOperation) -> bool:
        """Stop the running task for a compaction; `False` when there is nothing to compact, so that it goes on.

        An open question is never swept away: it is answered first (R-040), and what was allowed runs to its end.
        """
        from tenuto.core.compacting.preview import explain_needless

        if live.task.boundary.is_awaited:
            raise TaskFailedError("a compaction waits for the running step already")
        if await explain_needless(live, operation):
            return False
        if live.is_asking:
            live.notify("The compaction waits for your answer to the open question, and for what you allow.")
            try:
                await live.task.boundary.wait(running.finished)
                if not running.finished.is_set() and await explain_needless(live, operation):
                    return False
                await self.stop(live)
            finally:
                live.task.boundary.release()
        else:
            await self.stop(live)
        live.notify("The running task was stopped for the compaction; send a message to go on.")
        return True

    def _preview_compaction(self, operation: PreviewCompactionOperation) -> None:
        """Start a compaction that only proposes; it stops nothing that runs."""
        live = self._idle(operation.session_id)
        from tenuto.core.compacting.preview import preview_compaction

        self._start(live, operation.submission_id, "compaction", preview_compaction(live, operation))

    def _accept_compaction(self, operation: AcceptCompactionOperation) -> None:
        """Write what was proposed."""
        live = self._idle(operation.session_id)
        from tenuto.core.compacting.preview import accept_pending

        accept_pending(live, operation.summary or "")

    def _drop_compaction(self, operation: DropCompactionOperation) -> None:
        """Forget what was proposed."""
        from tenuto.core.compacting.compact import drop_pending
        from tenuto.core.compacting.preview import require_pending

        live = self._opener.live(operation.session_id)
        require_pending(live)
        drop_pending(live)

    def _compact_from(self, operation: CompactFromOperation) -> None:
        """Leave the later part of the conversation for notes on it."""
        live = self._idle(operation.session_id)
        from tenuto.core.navigation import CompactFromTask

        show = partial(self._opener.show_again, live.id)
        self._start(live, operation.submission_id, "compaction", CompactFromTask(live, operation, show).run())

    async def _move_leaf(self, operation: MoveLeafOperation) -> None:
        """Go on from another entry. What runs belongs to the part that is left: it is stopped, its questions closed."""
        live = self._opener.live(operation.session_id)
        running = self.tasks.running(live.id)
        if running is not None and running.kind == "compaction":
            raise TaskFailedError("a compaction is running; interrupt it, or wait, then ask again")
        from tenuto.core.navigation import MoveTask

        with self.holding(live):
            if running is not None:
                await self.stop(live)
                live.notify("What was running was stopped, because the conversation goes on from elsewhere.")
            show = partial(self._opener.show_again, live.id)
            self._start(live, operation.submission_id, "compaction", MoveTask(live, operation, show).run())

    def _idle(self, session_id: str) -> LiveSession:
        """Return the session. Raises `TaskFailedError` when something runs in it."""
        live = self._opener.live(session_id)
        if live.task.submissions or self.tasks.running(live.id) is not None:
            raise TaskFailedError("something is running; wait for it, or stop it with Esc, and ask again")
        return live

    def _run_shell(self, operation: RunShellOperation) -> None:
        """Run a command of the user, beside what runs; not beside another one: then it goes back into the editor."""
        live = self._opener.live(operation.session_id)
        running = self.tasks.running(live.id)
        one_runs = running is not None and (running.kind == "shell" or live.task.side_command.is_running)
        if one_runs or live.session.is_read_only:
            typed = f"{'!!' if operation.excluded else '!'}{operation.command}"
            busy = "a command is running; wait for it or press Esc, then run the next one"
            reason = READ_ONLY if live.session.is_read_only else busy
            self._bus.publish(PromptReturnedEvent(session_id=live.id, parts=(TextPart(text=typed),), reason=reason))
            return
        if running is not None:
            from tenuto.core.agent.shell import start_beside

            start_beside(live, operation)
            return
        from tenuto.core.agent.shell import ShellTask

        self._start(live, operation.submission_id, "shell", ShellTask(live, operation).run())

    # --- state ---

    async def _change_model(self, operation: ChangeModelOperation) -> None:
        """Switch the model from the next request on; compact first what is too large for it, if nothing runs."""
        live = self._opener.live(operation.session_id)
        change = await find_model(live, operation.model)
        live.models.note_chosen(change.facts.id)
        if self.tasks.running(live.id) is not None or not is_too_small(live, change.facts):
            change_model(live, change)
            return
        from tenuto.core.compacting.compact import switch_model

        self._start(live, operation.submission_id, "compaction", switch_model(live, change, operation.submission_id))

    def _change_mode(self, operation: ChangeModeOperation) -> None:
        """Switch the approval mode from the next call on."""
        live = self._opener.live(operation.session_id)
        if live.session.state.mode != operation.mode:
            live.session.append(ModeEntry(mode=operation.mode))
        self._bus.publish(ModeChangedEvent(session_id=live.id, mode=operation.mode))

    def _set_title(self, operation: SetTitleOperation) -> None:
        """Name the session."""
        live = self._opener.live(operation.session_id)
        live.session.append(TitleEntry(title=operation.title))
        live.session.save_meta()
        self._bus.publish(TitleChangedEvent(session_id=live.id, title=operation.title))

    def _edit_queue(self, operation: EditQueueOperation) -> None:
        """Delete a queued text, take it back, or change when and where it is delivered: one line of the log each."""
        live = self._opener.live(operation.session_id)
        entry = next((item for item in live.session.state.queue if item.seq == operation.target), None)
        if entry is None:
            raise TaskFailedError("that text is not in the queue any more; it has been sent")
        match operation.action:
            case "delete":
                live.session.append(DequeuedEntry(target=entry.seq, reason="deleted"))
            case "take_back":
                live.session.append(DequeuedEntry(target=entry.seq, reason="edited"))
            case "move":
                live.session.append(QueueEditEntry(target=entry.seq, before=operation.before))
            case "steer" | "unsteer":
                live.session.append(QueueEditEntry(target=entry.seq, steer=operation.action == "steer"))
        live.publish_queue()
        if operation.action == "take_back":
            self._bus.publish(PromptReturnedEvent(session_id=live.id, parts=entry.parts, reason="taken back"))
        self.go_on(live)

    # --- looking back ---

    async def _show_earlier(self, operation: ShowEarlierOperation) -> None:
        """Send the part of the transcript that is right before what was sent so far, or the one that is asked for."""
        live = self._opener.live(operation.session_id)
        self._bus.publish(await asyncio.to_thread(earlier_events, live, operation))

    async def _find_earlier(self, operation: FindEarlierOperation) -> None:
        """Look for words in what was not sent so far."""
        from tenuto.core.transcript import find_earlier

        live = self._opener.live(operation.session_id)
        self._bus.publish(await asyncio.to_thread(find_earlier, live, operation))

    # --- the life of a session's tasks ---

    @contextmanager
    def holding(self, live: LiveSession) -> Generator[None]:
        """While this lasts nothing starts by itself and nothing settles; afterwards the session goes on."""
        live.task.submissions += 1
        try:
            yield
        finally:
            live.task.submissions -= 1
            self.go_on(live)

    async def stop(self, live: LiveSession) -> None:
        """Cancel what runs in the session and wait until it has ended. What is queued then waits for the user."""
        with self.holding(live):
            running = self.tasks.cancel(live.id)
            if running is not None:
                await running.finished.wait()
            await live.task.side_command.stop()
            live.task.end_questions()
            live.store_side_commands()
            await live.compaction.background.stop()
            live.task.queue_waiting = bool(live.session.state.queue)

    def go_on(self, live: LiveSession) -> None:
        """Start what is due, or tell that the session is really idle (DESIGN section 2).

        Everything that ends comes here, and nothing else publishes `TaskSettledEvent`: what fails on the way becomes a
        notice, and the event comes.
        """
        if live.task.submissions or self.tasks.running(live.id) is not None:
            return
        live.attempt(lambda: self._start_due(live))
        if live.task.settled or self.tasks.running(live.id) is not None or self._waits_for_jobs(live):
            return
        live.task.settled = True
        live.attempt(live.session.save_meta)
        self._bus.publish(live.settled_event())

    def note_jobs(self, live: LiveSession) -> None:
        """A background job began or ended: go on, if nothing runs. What it leaves behind may take a moment longer."""
        self._go_on_if_open(live)
        asyncio.get_running_loop().call_later(LAST_MOMENT, self._go_on_if_open, live)

    def _go_on_if_open(self, live: LiveSession) -> None:
        if live is self._opener.open_one:
            self.go_on(live)

    def _waits_for_jobs(self, live: LiveSession) -> bool:
        """Say whether a run that would end now stays open for its background jobs, for as long as they may take."""
        jobs, task = live.tool_context.jobs.asked_for(), live.task
        if not (live.ends_by_itself and jobs and task.last_outcome == "completed"):
            return False
        loop, seconds = asyncio.get_running_loop(), live.settings.agent.job_wait
        names = ", ".join(job.id for job in jobs)
        if task.jobs_until is None:
            task.jobs_until = loop.time() + seconds
            if seconds:
                loop.call_later(seconds + LAST_MOMENT, self._go_on_if_open, live)
                live.notify(f"Waiting for {names}, at most {seconds:g} s.", kind=WAITING_KIND)
        if loop.time() < task.jobs_until:
            return True
        live.notify(f"{names} still ran after {seconds:g} s and ends with the run.", "warning", keep=True)
        return False

    def _wait_no_longer(self, session_id: str) -> None:
        """End the wait of a run that stays open for nothing but its background jobs; they go on."""
        live = self._opener.open_one
        if live is None or live.id != session_id or live.task.settled or live.task.jobs_until is None:
            return
        live.task.last_outcome = "interrupted"
        self.go_on(live)

    def _is_woken(self, live: LiveSession) -> bool:
        """Say whether the end of a background job begins a turn: nothing was stopped, and the model does not know."""
        return (
            (live.interactive or live.ends_by_itself)
            and live.settings.agent.wake
            and live.task.last_outcome == "completed"
            and not live.task.queue_waiting
            and not live.session.is_read_only
            and live.tool_context.jobs.has_news()
        )

    def _start_due(self, live: LiveSession) -> None:
        """Start what is due: the queue, unless it waits for the user, their command that still runs, a job's end."""
        if self._is_woken(live) and not live.session.state.queue and not live.task.side_command.is_running:
            live.session.append(QueuedEntry(parts=(TextPart(text=JOB_ENDED),), origin="continuation"))
        if live.session.state.queue and not live.task.queue_waiting:
            live.task.queue_waiting = True  # if it cannot be started; the task takes it back
            submission_id = new_submission_id()
            self._start(live, submission_id, "agent", AgentTask(live, submission_id).run())
        elif live.task.side_command.is_running:
            self._start(live, live.task.side_command.submission_id, "shell", _wait_for_side_command(live))

    def _start(self, live: LiveSession, submission_id: str, kind: TaskKind, body: Body) -> None:
        if live.task.settled:
            live.task.settled, live.task.refused, live.task.jobs_until = False, 0, None
        if kind == "compaction":
            live.compaction.background.cancel()
        self.tasks.start(live.id, submission_id, kind, body, partial(self._wind_up, live))

    def _wind_up(self, live: LiveSession, event: TaskFinishedEvent) -> None:
        """Put down how a task ended, and go on. Behind one that did not complete the queue waits for the user."""
        live.task.last_outcome, live.task.last_error = event.outcome, event.error
        if event.outcome == "failed" and event.error and event.kind != "compaction":  # a compaction's end has said why
            failure = NoticeEntry(text=event.error, level="error", kind=FAILED_KIND)
            live.attempt(lambda: live.session.append(failure))
        if event.outcome == "interrupted":
            live.task.end_questions()
        if event.outcome != "completed":
            live.task.queue_waiting = bool(live.session.state.queue)  # what is typed from now on is meant to be sent
            live.attempt(live.publish_queue)
        live.attempt(live.store_side_commands)
        self.go_on(live)


async def _wait_for_side_command(live: LiveSession) -> None:
    """Wait for the command of the user that runs, as the session's task; an interrupt ends it."""
    try:
        await live.task.side_command.wait()
    except asyncio.CancelledError:
        live.store_side_commands()
        raise
