"""The user's own commands: `!command` goes into the conversation, `!!command` stays out of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.state.live import LiveSession
from tenuto.core.state.task import FinishedCommand
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import ShellFinishedEvent, ShellOutputEvent, ShellStartedEvent
from tenuto.protocol.operation import RunShellOperation
from tenuto.session.store import RunningCommand
from tenuto.tool.shell import ShellRun, run_shell


class ShellTask:
    """Serves one `RunShellOperation`. `hold` takes what came of it where the history cannot have it yet."""

    def __init__(
        self, live: LiveSession, operation: RunShellOperation, hold: Callable[[FinishedCommand], None] | None = None
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
            context = live.tool_context
            # The user's own command has the user's own environment.
            await run_shell(run, context, context.environ, self._emit, self._note(entry))
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
            self._hold(FinishedCommand(entry, partial(run.forget, live.tool_context)))
        live.bus.publish(ShellFinishedEvent(session_id=live.id, submission_id=operation.submission_id, entry=entry))
        live.publish_usage()


def start_beside(live: LiveSession, operation: RunShellOperation) -> None:
    """Run a command beside the session's task; none may be running."""
    side = live.task.side_command
    side.submission_id = operation.submission_id
    work = _run_beside(live, operation)
    side.task = asyncio.get_running_loop().create_task(work, name=f"side command:{operation.submission_id}")


async def _run_beside(live: LiveSession, operation: RunShellOperation) -> None:
    try:
        await ShellTask(live, operation, live.task.side_command.finished.append).run()
    except EXPECTED_FAILURES as error:
        live.notify(describe_failure(error), "error")
