"""The user's own commands: `!command` goes into the conversation, `!!command` stays out of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.state.live import LiveSession
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import ShellFinishedEvent, ShellOutputEvent, ShellStartedEvent
from tenuto.protocol.operation import RunShellOperation
from tenuto.session.running import RunningCommand
from tenuto.tool.shell import ShellRun, run_shell


class ShellOutcome(Struct, frozen=True):
    """What came of a command, and what is to be called when it is in the history."""

    entry: ShellEntry
    forget: Callable[[], None]


class ShellTask:
    """Serves one `RunShellOperation`. `hold` takes what came of it where the history cannot have it yet."""

    def __init__(
        self, live: LiveSession, operation: RunShellOperation, hold: Callable[[ShellOutcome], None] | None = None
    ) -> None:
        self._live = live
        self._operation = operation
        self._hold = hold

    async def run(self) -> None:
        """Run the command, show its output as it comes, and put it into the history, also when it is interrupted."""
        live, operation = self._live, self._operation
        live.bus.publish(
            ShellStartedEvent(
                session_id=live.id,
                submission_id=operation.submission_id,
                command=operation.command,
                excluded=operation.excluded,
            )
        )
        started = time.monotonic()
        run = ShellRun(command=operation.command, cwd=live.session.cwd)
        entry = ShellEntry(command=operation.command, excluded=operation.excluded, interrupted=True)
        try:
            await run_shell(run, live.tool_context, self._emit, self._note(entry))
        finally:
            self._store(run, time.monotonic() - started)

    def _note(self, entry: ShellEntry) -> RunningCommand:
        """Return what is written down beside the log until the entry is in it."""
        newest = next(reversed(self._live.session.everything()), None)
        return RunningCommand(shell=entry, since=newest.seq if newest is not None else 0)

    def _emit(self, text: str) -> None:
        live = self._live
        live.bus.publish(ShellOutputEvent(session_id=live.id, submission_id=self._operation.submission_id, text=text))

    def _store(self, run: ShellRun, duration: float) -> None:
        """Put the command and what came of it into the history, or hold it."""
        live, operation = self._live, self._operation
        entry = ShellEntry(
            command=operation.command,
            output=run.output or run.problem,
            exit_code=run.exit_code,
            excluded=operation.excluded,
            truncated=run.truncated,
            output_path=run.output_path,
            duration=duration,
            interrupted=run.interrupted,
        )
        if self._hold is None:
            entry = live.session.append(entry)
            run.forget(live.tool_context)
        else:
            run.noted = run.noted or operation.submission_id
            live.session.store.running.note(run.noted, self._note(entry))
            self._hold(ShellOutcome(entry, partial(run.forget, live.tool_context)))
        live.bus.publish(ShellFinishedEvent(session_id=live.id, submission_id=operation.submission_id, entry=entry))
        live.publish_usage()


class ShellBeside:
    """Runs one operation after the other; what came of those before waits with the running one's for a boundary."""

    def __init__(self, live: LiveSession) -> None:
        self.submission_id = ""
        self._live = live
        self._held: list[ShellOutcome] = []
        self._task: asyncio.Task[None] | None = None

    def start(self, operation: RunShellOperation) -> None:
        """Run a command; none may be running."""
        self.submission_id = operation.submission_id
        self._task = asyncio.get_running_loop().create_task(self._run(operation), name=f"beside:{self.submission_id}")

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended."""
        return self._task is not None and not self._task.done()

    def store(self) -> None:
        """Put what came of it into the history, at a boundary; what still runs is stored later."""
        held, self._held = self._held, []
        for outcome in held:
            self._live.session.append(outcome.entry)
            outcome.forget()
        if held:
            self._live.publish_usage()
        if not self.is_running:
            self._live.beside = None

    async def wait(self) -> None:
        """Wait for its end, as the session's task; an interrupt ends the command."""
        try:
            if self._task is not None:
                await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the command, and store what it has written."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.store()

    async def _run(self, operation: RunShellOperation) -> None:
        try:
            await ShellTask(self._live, operation, self._hold).run()
        except EXPECTED_FAILURES as error:
            self._live.notify(describe_failure(error), "error")

    def _hold(self, outcome: ShellOutcome) -> None:
        self._held.append(outcome)
