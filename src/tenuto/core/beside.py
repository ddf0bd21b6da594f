"""A command of the user that runs beside the session's task: whoever waits for an answer still looks around.

What came of it goes into the history at the next boundary only, before a request or behind the task: never between a
call and its result, nor before an answer that was asked for without it (R-048, R-059). Until then it is written down
beside the log (`session/running.py`).
"""

from __future__ import annotations

import asyncio
import contextlib

from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.live import LiveSession
from tenuto.core.shell import ShellOutcome, ShellTask
from tenuto.protocol.operation import RunShellOperation


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
