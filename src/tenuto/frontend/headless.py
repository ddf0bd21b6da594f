"""A run without a screen: it ends by itself, by a signal, or because nobody reads its output any more."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from tenuto import heap
from tenuto.api.agent import Agent
from tenuto.core.start import Start
from tenuto.ending import ended_by_signals
from tenuto.exit_codes import FAILED, INTERRUPTED, LIMIT_REACHED
from tenuto.guard.terminal import write_text
from tenuto.protocol.event import AnyEvent

GRACE = 5.0
"""Seconds that an interrupted run has to end in order after its time is over."""


class HeadlessRun:
    """One agent from its opening to its end.

    The first signal interrupts what runs, or where nothing does the run itself; a second one ends the process
    (`ending.py`). What the listener raises, and an output that is closed, end the run as well. However it ends, the
    session is closed in good order.
    """

    def __init__(self, start: Start, *, timeout: float | None = None) -> None:
        self.agent = Agent.of(start)
        self.timed_out = False
        self.is_over = False
        """Whether a signal or the time has ended the run: nothing new is begun."""
        self._timeout = timeout
        self._failure: Exception | None = None
        self._task: asyncio.Task[int] | None = None
        self._interrupting: set[asyncio.Task[None]] = set()

    def show_to(self, show: Callable[[AnyEvent], None]) -> None:
        """Show every event from now on; what that raises ends the run."""

        def show_one(event: AnyEvent) -> None:
            if self._failure is not None:
                return
            try:
                show(event)
            except Exception as error:  # noqa: BLE001 - raised by `run`, when everything is closed
                self._fail(error)

        self.agent.subscribe(show_one)

    async def run(self, work: Callable[[Agent], Awaitable[int]]) -> int:
        """Open the session, return the exit code of `work`, 130 where a signal ended it.

        Raises what opening and `work` raise, what the listener raised, and `BrokenPipeError` when the reader of
        standard output has gone.
        """
        loop = asyncio.get_running_loop()
        if self._timeout is not None:
            loop.call_later(self._timeout, self._end_overtime)

        def on_signal(_number: int) -> None:
            loop.call_soon_threadsafe(self._interrupt)

        def on_gone() -> None:
            loop.call_soon_threadsafe(self._fail, BrokenPipeError())

        with ended_by_signals(on_signal) as signals, watch_reader(1, on_gone):
            task = self._task = loop.create_task(self._open_and(work), name="headless run")
            try:
                await asyncio.wait([task])
            finally:
                await self.agent.close()
                if self.agent.parting:
                    write_text(f"tenuto: {self.agent.parting}", to_errors=True)
        if self._failure is not None:
            raise self._failure
        if task.cancelled() and self.timed_out:
            write_text(f"tenuto: {self.overtime}", to_errors=True)
            return LIMIT_REACHED
        if task.cancelled() and signals:
            write_text("tenuto: interrupted", to_errors=True)
            return INTERRUPTED
        return task.result() or int(self.agent.runtime.opener.lost)

    async def _open_and(self, work: Callable[[Agent], Awaitable[int]]) -> int:
        agent = await self.agent.open()
        heap.settle()
        return await work(agent)

    def _interrupt(self) -> None:
        """Let what runs end in order; with nothing running the run is over."""
        self.is_over = True
        runtime = self.agent.runtime
        live = runtime.opener.open_one
        if live is None or runtime.executor.tasks.running(live.id) is None:
            self._end()
            return
        task = asyncio.get_running_loop().create_task(self.agent.interrupt())
        self._interrupting.add(task)
        task.add_done_callback(self._interrupting.discard)

    @property
    def has_failed(self) -> bool:
        """Whether the listener or the output failed: then there is nobody to tell anything."""
        return self._failure is not None

    @property
    def overtime(self) -> str:
        """Why a run ended that took too long."""
        return f"stopped after {self._timeout:g} s (--timeout)"

    def _end_overtime(self) -> None:
        """Interrupt what runs; where that does not end the run soon, end it."""
        self.timed_out = True
        self._interrupt()
        asyncio.get_running_loop().call_later(GRACE, self._end)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            self._end()

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()


def run_headless(run: HeadlessRun, work: Callable[[Agent], Awaitable[int]]) -> int:
    """Return the exit code of a whole run; one whose output nobody reads has failed, and nobody hears why."""
    try:
        return asyncio.run(run.run(work))
    except BrokenPipeError:
        return FAILED


@contextmanager
def watch_reader(descriptor: int, gone: Callable[[], None]) -> Generator[None]:
    """Call `gone`, in another thread, when nobody reads any more what is written to a pipe or a socket."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        mode = 0
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        yield
        return
    stopped, stop = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(descriptor, 0)  # that it is closed is told without being asked for
        poll.register(stopped, select.POLLIN)
        events = dict(poll.poll())
        if stopped not in events and events[descriptor] & (select.POLLERR | select.POLLHUP):
            gone()

    thread = threading.Thread(target=watch, name="reader of standard output", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(stop)
        thread.join()
        os.close(stopped)
