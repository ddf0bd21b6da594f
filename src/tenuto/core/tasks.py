"""The one task manager: it starts, waits for and cancels the asyncio tasks that serve operations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Literal

from msgspec import Struct, field

from tenuto.core.bus import EventBus
from tenuto.core.errors import EndedEarlyError, TaskFailedError, describe_failure
from tenuto.protocol.event import Outcome, TaskFinishedEvent, TaskStartedEvent

TaskKind = Literal["agent", "compaction", "shell"]
Body = Coroutine[None, None, None]


class RunningTask(Struct):
    """A task and the operation that it serves."""

    session_id: str
    submission_id: str
    kind: TaskKind
    started: float
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    """What runs it, from its first step on."""
    is_cancelled: bool = False


class SessionBusyError(TaskFailedError):
    """A task was started in a session that has one already."""


class TaskManager:
    """Starts, waits for and cancels tasks. However a body ends, its task finishes, and the finished event comes."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._running: dict[str, RunningTask] = {}
        self._pending: dict[str, RunningTask] = {}
        self._ended: dict[str, TaskFinishedEvent] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds no task

    def running(self, session_id: str) -> RunningTask | None:
        """Return the session's task, if one runs."""
        return self._running.get(session_id)

    def start(
        self,
        session_id: str,
        submission_id: str,
        kind: TaskKind,
        body: Body,
        on_finished: Callable[[TaskFinishedEvent], None],
    ) -> RunningTask:
        """Start `body` as the session's task. Raises `SessionBusyError` when one runs already.

        `on_finished` is called after the finished event, with no task running; it must not raise.
        """
        if session_id in self._running:
            body.close()
            raise SessionBusyError("something is running in this session already")
        running = RunningTask(session_id, submission_id, kind, time.monotonic())
        self._running[session_id] = running
        self._pending[submission_id] = running
        work = self._run(running, body, on_finished)
        task = asyncio.get_running_loop().create_task(work, name=f"{kind}:{submission_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    def cancel(self, session_id: str) -> RunningTask | None:
        """Cancel the session's task and return it; it still has to be waited for.

        One that has not had its first step is cancelled there: asyncio would never run its end. Where tasks are eager,
        that step lies inside `start`, and the started event's listeners cancel what runs them.
        """
        running = self._running.get(session_id)
        if running is not None:
            running.is_cancelled = True
            if running.task is not None:
                running.task.cancel()
        return running

    async def wait(self, submission_id: str) -> TaskFinishedEvent | None:
        """Wait for exactly this submission; `None` when no task ever served it."""
        running = self._pending.get(submission_id)
        if running is not None:
            await running.finished.wait()
        return self._ended.get(submission_id)

    async def _run(self, running: RunningTask, body: Body, on_finished: Callable[[TaskFinishedEvent], None]) -> None:
        outcome: Outcome = "failed"
        error = "it ended without a reason"
        running.task = asyncio.current_task()
        try:
            self._bus.publish(
                TaskStartedEvent(session_id=running.session_id, submission_id=running.submission_id, kind=running.kind)
            )
            if running.is_cancelled:
                raise asyncio.CancelledError
            await body
            outcome, error = "completed", ""
        except asyncio.CancelledError:
            outcome, error = "interrupted", ""
        except EndedEarlyError as end:
            outcome, error = end.outcome, str(end)
        except (Exception, SystemExit) as failure:  # noqa: BLE001 - the one place where a task's error becomes an event
            error = type(failure).__name__
            error = describe_failure(failure)
        finally:  # even the description of an error can fail: what has begun finishes
            on_finished(self._finish(running, outcome, error))
            body.close()

    def _finish(self, running: RunningTask, outcome: Outcome, error: str) -> TaskFinishedEvent:
        del self._running[running.session_id]
        del self._pending[running.submission_id]
        event = TaskFinishedEvent(
            session_id=running.session_id,
            submission_id=running.submission_id,
            kind=running.kind,
            outcome=outcome,
            error=error,
            duration=time.monotonic() - running.started,
        )
        self._ended[running.submission_id] = event
        running.finished.set()
        self._bus.publish(event)
        return event
