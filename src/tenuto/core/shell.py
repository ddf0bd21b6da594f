"""The person's own commands: `!command` goes into the conversation, `!!command` stays out of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from tenuto.core.live import LiveSession
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import ShellFinishedEvent, ShellOutputEvent, ShellStartedEvent
from tenuto.protocol.operation import RunShellOperation
from tenuto.tool.shell import ShellRun, run_shell


class ShellTask:
    """Serves one `RunShellOperation`. `keep` puts what came of it into the history, and returns it as it is there."""

    def __init__(
        self, live: LiveSession, operation: RunShellOperation, keep: Callable[[ShellEntry], ShellEntry] | None = None
    ) -> None:
        self._live = live
        self._operation = operation
        self._keep = keep or live.session.append

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
        try:
            await run_shell(run, live.tool_context, emit=self._emit)
        finally:
            self._store(run, time.monotonic() - started)

    def _emit(self, text: str) -> None:
        live = self._live
        live.bus.publish(ShellOutputEvent(session_id=live.id, submission_id=self._operation.submission_id, text=text))

    def _store(self, run: ShellRun, duration: float) -> None:
        """Put the command and what came of it into the history."""
        live, operation = self._live, self._operation
        entry = self._keep(
            ShellEntry(
                command=operation.command,
                output=run.output or run.problem,
                exit_code=run.exit_code,
                excluded=operation.excluded,
                truncated=run.truncated,
                output_path=run.output_path,
                duration=duration,
            )
        )
        live.bus.publish(ShellFinishedEvent(session_id=live.id, submission_id=operation.submission_id, entry=entry))
        live.publish_usage()
