"""The conduct of many jobs: what is begun next, what runs again, and how all of it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from tenuto import heap
from tenuto.ending import ended_by_signals
from tenuto.engine.display import Row
from tenuto.engine.engine import AnswerT, Engine, Job, WorkerLostError
from tenuto.exit_codes import OK, SIGNAL

ItemT = TypeVar("ItemT")
LOST_TRIES = 5
"""How often an item is begun anew because what ran it was lost; this is not the item's own failure."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before an item is tried again; the wait doubles each time."""


class Work(Protocol[ItemT, AnswerT]):
    """What is to be done: items, a job for each try of one, and what becomes of the answers."""

    @property
    def has_more(self) -> bool:
        """Whether there are items that are to be begun."""
        ...

    def take(self, free: int) -> ItemT | None:
        """Return the next item that can be begun now, where `free` could be; `None`: when another one has ended."""
        ...

    def name(self, item: ItemT) -> tuple[str, str]:
        """Return what an item is called, and what it is about."""
        ...

    def job(self, item: ItemT, answers: Sequence[AnswerT]) -> Job[AnswerT]:
        """Return the job that tries an item, behind the tries that gave these answers."""
        ...

    def lose(self, item: ItemT, error: WorkerLostError) -> AnswerT:
        """Return the answer of an item whose worker was lost again and again, or raise what ends everything."""
        ...

    def fault(self, item: ItemT, answers: Sequence[AnswerT]) -> str:
        """Return why an item is tried again; empty where its last answer counts."""
        ...

    def finish(self, item: ItemT, answers: Sequence[AnswerT]) -> Row:
        """Put what came of an item on the disk. Raises `OSError`."""
        ...

    def release(self, item: ItemT, answers: Sequence[AnswerT]) -> None:
        """Let go of what was set aside for an item, however it ended."""
        ...


class Watcher(Protocol):
    """Who is told what happens, by the names of items."""

    def began(self, name: str, about: str, attempt: int) -> None:
        """A try was begun."""

    def repeats(self, name: str, reason: str) -> None:
        """A try came to nothing, and there will be another one."""

    def finished(self, row: Row) -> None:
        """An item is finished, and what came of it is on the disk."""


class Conductor(Generic[ItemT, AnswerT]):
    """Does work over an engine. What is finished is on the disk before anybody is told of it."""

    def __init__(self, engine: Engine, work: Work[ItemT, AnswerT], watcher: Watcher) -> None:
        self._engine = engine
        self._work = work
        self._watcher = watcher
        self._running = 0
        self._lost: list[Job[AnswerT]] = []
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        """Do all of it. Raises `ExceptionGroup` with what is no item's own fault, as a full disk."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._engine.jobs):
                group.create_task(self._go_on())
        for job in self._lost:
            await asyncio.to_thread(job.clean, os.environ)

    async def _go_on(self) -> None:
        while (item := await self._take()) is not None:
            answers: list[AnswerT] = []
            try:
                await self._try(item, answers)
                row = self._work.finish(item, answers)
                self._watcher.finished(row)
            finally:
                async with self._changed:
                    self._running -= 1
                    self._work.release(item, answers)
                    self._changed.notify_all()

    async def _take(self) -> ItemT | None:
        async with self._changed:
            while self._work.has_more:
                item = self._work.take(self._engine.jobs - self._running)
                if item is not None:
                    self._running += 1
                    return item
                await self._changed.wait()
        return None

    async def _try(self, item: ItemT, answers: list[AnswerT]) -> None:
        """Try an item until an answer counts."""
        name, about = self._work.name(item)
        lost = 0
        while True:
            self._watcher.began(name, about, len(answers) + lost + 1)
            job = self._work.job(item, answers)
            try:
                answers.append(await self._engine.run(job))
            except WorkerLostError as error:
                self._lost.append(job)
                lost += 1
                if lost <= LOST_TRIES:
                    self._watcher.repeats(name, str(error))
                    continue
                answers.append(self._work.lose(item, error))
            fault = self._work.fault(item, answers)
            if not fault:
                return
            self._watcher.repeats(name, fault)
            await asyncio.sleep(min(FIRST_WAIT * 2 ** (len(answers) - 1), LONGEST_WAIT))


def run_conductor(conductor: Conductor[ItemT, AnswerT]) -> int:
    """Run all there is to its end, or to the first signal, after which running jobs end in order.

    Returns 0, or 128 and the number of a signal. A second signal ends the process at once (`ending.py`). Raises what is
    no item's own fault.
    """

    async def run() -> int:
        heap.settle()
        loop = asyncio.get_running_loop()
        work = loop.create_task(conductor.run(), name="conductor")

        def leave(_number: int) -> None:
            loop.call_soon_threadsafe(work.cancel)

        with ended_by_signals(leave) as signals:
            await asyncio.wait([work])
        if work.cancelled() and signals:
            return SIGNAL + signals[0]
        work.result()
        return OK

    try:
        return asyncio.run(run())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
