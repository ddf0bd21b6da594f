"""The conduct of a batch: which task is next, within which limits, what is tried again, and how all of it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tenuto.ending import ended_by_signals
from tenuto.exit_codes import FAILED, LIMIT_REACHED, OK, SIGNAL
from tenuto.frontend.batch.engine import Engine, WorkerLostError
from tenuto.frontend.batch.results import Outcome, Result, ResultsFile
from tenuto.frontend.batch.tasks import Task
from tenuto.frontend.batch.worker import Attempt, Job, clean_lost
from tenuto.private_files import make_directory, replace_file

TRIED_AGAIN: frozenset[Outcome] = frozenset({"failed", "crashed"})
"""What another try may change. A refusal, a limit and a check would come out the same."""
LOST_TRIES = 5
"""How often a task is begun anew because what ran it was lost; this is not the task's own failure."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before a task is tried again; the wait doubles each time."""


class Limits(Struct, frozen=True):
    """What each task may take, and all of them together."""

    max_turns: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    total_cost: float | None = None
    retries: int = 1


class Places(Struct, frozen=True):
    """Where things are put: worktrees, and patches."""

    worktrees: Path
    patches: Path
    keep: bool = False


class Budget(Struct):
    """US dollars for all tasks: what is spent, and what running tasks may still spend at most. Pure."""

    total: float | None = None
    spent: float = 0.0
    reserved: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left, and nothing will come back from running tasks."""
        return self.total is not None and self.spent >= self.total and self.reserved <= 0

    def reserve(self, wish: float | None, free: int) -> float | None:
        """Set aside what a task may cost and return it: `wish`, or else its share where `free` slots wait for tasks.

        `None`: what is not set aside is too little, until a running task ends. Infinity: there is no limit.
        """
        if self.total is None:
            return float("inf") if wish is None else wish
        rest = self.total - self.spent - self.reserved
        part = rest / max(1, free) if wish is None else min(wish, self.total - self.spent)
        if rest <= 0 or (part > rest and self.reserved > 0):
            return None
        part = min(part, rest)
        self.reserved += part
        return part

    def settle(self, part: float, cost: float) -> None:
        """Give back what was set aside for a task that has cost so much."""
        self.spent += cost
        if self.total is not None:
            self.reserved = max(0.0, self.reserved - part)


class Watcher(Protocol):
    """Who is told what happens."""

    def began(self, task: Task, attempt: int) -> None:
        """An agent was started."""

    def repeats(self, task: Task, reason: str) -> None:
        """A try came to nothing, and the task will be tried again."""

    def finished(self, result: Result) -> None:
        """A task has its result, which is on the disk."""


class Conductor:
    """Runs tasks over an engine. Each finished task is in the results file before anybody is told of it."""

    def __init__(
        self, engine: Engine, results: ResultsFile, limits: Limits, places: Places, watcher: Watcher, *, sandboxed: bool
    ) -> None:
        self._engine = engine
        self._results = results
        self._limits = limits
        self._places = places
        self._watcher = watcher
        self._sandboxed = sandboxed
        self._budget = Budget(limits.total_cost)
        self._queue: list[Task] = []
        self._running: dict[str, Task] = {}
        self._lost: list[Job] = []
        self._changed = asyncio.Condition()

    @property
    def is_spent(self) -> bool:
        """Whether the money for all tasks is gone."""
        return self._budget.is_spent

    async def run(self, tasks: Sequence[Task]) -> None:
        """Run all tasks. Raises `ExceptionGroup` with what is no task's own fault, as a full disk."""
        self._queue = list(tasks)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._engine.jobs, len(tasks))):
                group.create_task(self._work())
        for job in self._lost:
            await asyncio.to_thread(clean_lost, job, os.environ)

    async def _work(self) -> None:
        while (taken := await self._take()) is not None:
            task, part = taken
            cost = 0.0
            try:
                attempts = await self._try(task, part)
                cost = sum(attempt.cost or 0.0 for attempt in attempts)
                result = make_result(task, attempts, self._keep_patch(task, attempts[-1]))
                self._results.append(result)
                self._watcher.finished(result)
            finally:
                async with self._changed:
                    del self._running[task.id]
                    self._budget.settle(part, cost)
                    self._changed.notify_all()

    async def _take(self) -> tuple[Task, float] | None:
        """Return the next task that can run, with what it may cost; `None` when there is no more to do."""
        async with self._changed:
            while self._queue and not self._budget.is_spent:
                busy = {task.cwd for task in self._running.values() if task.cwd}
                task = next((task for task in self._queue if task.cwd not in busy), None)
                free = min(self._engine.jobs - len(self._running), len(self._queue))
                part = self._budget.reserve(self._limits.max_cost, free) if task is not None else None
                if task is not None and part is not None:
                    self._queue.remove(task)
                    self._running[task.id] = task
                    return task, part
                await self._changed.wait()
        return None

    async def _try(self, task: Task, part: float) -> list[Attempt]:
        """Return all tries of a task, the last of which counts."""
        attempts: list[Attempt] = []
        lost = 0
        while True:
            left = part - sum(attempt.cost or 0.0 for attempt in attempts)
            self._watcher.began(task, len(attempts) + lost + 1)
            job = self._job(task, left)
            try:
                attempt = await self._engine.run(job)
            except WorkerLostError as error:
                self._lost.append(job)
                lost += 1
                if lost <= LOST_TRIES:
                    self._watcher.repeats(task, str(error))
                    continue
                attempt = Attempt("crashed", str(error))
            attempts.append(attempt)
            spent = sum(attempt.cost or 0.0 for attempt in attempts)
            if attempt.outcome not in TRIED_AGAIN or len(attempts) > self._limits.retries or spent >= part:
                return attempts
            self._watcher.repeats(task, attempt.error)
            await asyncio.sleep(min(FIRST_WAIT * 2 ** (len(attempts) - 1), LONGEST_WAIT))

    def _job(self, task: Task, left: float) -> Job:
        return Job(
            task=task,
            places=str(self._places.worktrees),
            token=os.urandom(4).hex(),
            max_turns=self._limits.max_turns,
            max_cost=left if left != float("inf") else None,
            timeout=self._limits.timeout,
            keep=self._places.keep,
            sandboxed=self._sandboxed,
        )

    def _keep_patch(self, task: Task, attempt: Attempt) -> str:
        """Write what was changed; returns the file's path, empty where nothing was. Raises `OSError`."""
        file = self._places.patches / f"{task.id}.patch"
        if not attempt.patch:
            file.unlink(missing_ok=True)  # of an earlier run
            return ""
        make_directory(file.parent)
        replace_file(file, attempt.patch)
        return str(file)


def make_result(task: Task, attempts: Sequence[Attempt], patch: str) -> Result:
    """Return what came of a task: the last try's answer, and sums over all of them. Pure."""
    last = attempts[-1]
    answers = [attempt.answer for attempt in attempts if attempt.answer]
    costs = [attempt.cost for attempt in attempts]
    known = {name: last.answer[name] for name in ("session_id", "result", "structured_output") if name in last.answer}
    refused = [call for answer in answers for call in answer.get("permission_denials", ())]
    files = last.answer.get("changed_files", []) if last.changed_files is None else list(last.changed_files)
    return Result(
        id=task.id,
        task=task.digest,
        outcome=last.outcome,
        attempts=len(attempts),
        error=last.error or None,
        exit_code=last.answer.get("exit_code"),
        num_turns=sum(answer.get("num_turns", 0) for answer in answers),
        duration_ms=round(1000 * sum(attempt.seconds for attempt in attempts)),
        total_cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        usage=add_usage([answer.get("usage", {}) for answer in answers]),
        permission_denials=refused,
        changed_files=files,
        check_output=last.check_output,
        patch=patch,
        commit=last.commit,
        worktree=last.worktree,
        **known,
    )


def add_usage(usages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of counts under the same names. Pure."""
    total: dict[str, Any] = {}
    for usage in usages:
        for name, count in usage.items():
            if isinstance(count, int):
                total[name] = total.get(name, 0) + count
    return total


def is_finished(task: Task, latest: dict[str, Result], again: frozenset[str]) -> bool:
    """Whether a task has a result that counts: of this very task, and not one that is asked for again. Pure."""
    result = latest.get(task.id)
    return result is not None and result.task == task.digest and result.outcome not in again


def run_conductor(make: Callable[[], Conductor], tasks: Sequence[Task]) -> int:
    """Run tasks to their end, or to the first signal, after which running agents end in order; returns the exit code.

    0 where the tasks ran, 4 where the money for all is gone, 128 and the number of a signal. A second signal ends the
    process at once (`ending.py`). Raises `OSError` where the results cannot be written.
    """

    async def run() -> int:
        loop, conductor = asyncio.get_running_loop(), make()
        work = loop.create_task(conductor.run(tasks), name="batch")

        def leave(_number: int) -> None:
            loop.call_soon_threadsafe(work.cancel)

        with ended_by_signals(leave) as signals:
            await asyncio.wait([work])
        if work.cancelled() and signals:
            return SIGNAL + signals[0]
        work.result()
        return LIMIT_REACHED if conductor.is_spent else OK

    try:
        return asyncio.run(run())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def judge(results: Sequence[Result]) -> int:
    """Return the exit code that results stand for. Pure."""
    return OK if all(result.outcome == "done" for result in results) else FAILED
