"""The work of a batch: which task is next, within which limits, what is tried again, and what is kept of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from tenuto.engine.display import Row
from tenuto.engine.engine import Job, WorkerLostError
from tenuto.exit_codes import FAILED, OK
from tenuto.frontend.batch.results import Attempt, Outcome, Result, Results
from tenuto.frontend.batch.tasks import Task
from tenuto.frontend.batch.trial import Trial, TrialJob
from tenuto.frontend.batch.worker import AgentJob
from tenuto.private_files import make_directory, replace_file
from tenuto.text.figures import plural

TRIED_AGAIN: frozenset[Outcome] = frozenset({"failed", "crashed"})
"""What another try may change. A refusal, a limit and a check would come out the same."""


class Limits(Struct, frozen=True):
    """What each task may take, and all of them together."""

    max_turns: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    total_cost: float | None = None
    retries: int = 1


class Places(Struct, frozen=True):
    """Where things are put: worktrees, and what is kept of tasks (patches, trials)."""

    worktrees: Path
    kept: Path
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


Item = Task | Trial
"""What a batch is made of: a task of its file, or of a data set of Harbor's."""


class Batch:
    """The tasks of a batch as work for a conductor."""

    def __init__(
        self, tasks: Sequence[Item], results: Results, limits: Limits, places: Places, *, sandboxed: bool
    ) -> None:
        self._queue = list(tasks)
        self._results = results
        self._limits = limits
        self._places = places
        self._sandboxed = sandboxed
        self._budget = Budget(limits.total_cost)
        self._parts: dict[str, float] = {}
        """What each running task may cost."""
        self._busy: set[str] = set()
        """Directories that a running task works in."""

    @property
    def is_spent(self) -> bool:
        """Whether the money for all tasks is gone."""
        return self._budget.is_spent

    @property
    def has_more(self) -> bool:
        """Whether there are tasks to begin, and money for them."""
        return bool(self._queue) and not self._budget.is_spent

    def take(self, free: int) -> Item | None:
        """Return the next task that can run, what it may cost set aside."""
        task = next((task for task in self._queue if task.cwd not in self._busy), None)
        if task is None:
            return None
        part = self._budget.reserve(self._limits.max_cost, min(free, len(self._queue)))
        if part is None:
            return None
        self._queue.remove(task)
        self._parts[task.id] = part
        self._busy |= {task.cwd} - {""}
        return task

    def name(self, item: Item) -> tuple[str, str]:
        """Return the id and the prompt of a task."""
        return item.id, item.prompt

    def job(self, item: Item, answers: Sequence[Attempt]) -> Job[Attempt]:
        """Return a try at a task, with what is left of its money."""
        left = self._parts[item.id] - spent(answers)
        max_cost = left if left != float("inf") else None
        limits, token = self._limits, os.urandom(4).hex()
        match item:
            case Task():
                return AgentJob(
                    task=item,
                    places=str(self._places.worktrees),
                    token=token,
                    max_turns=limits.max_turns,
                    max_cost=max_cost,
                    timeout=limits.timeout,
                    keep=self._places.keep,
                    sandboxed=self._sandboxed,
                )
            case Trial():
                places = str(self._places.kept / "trials")
                return TrialJob(item, places, token, limits.max_turns, max_cost, limits.timeout)

    def lose(self, item: Item, error: WorkerLostError) -> Attempt:
        """Return what a task is whose worker was lost again and again."""
        del item
        return Attempt("crashed", str(error))

    def fault(self, item: Item, answers: Sequence[Attempt]) -> str:
        """Return why a task is tried again, empty where it is not."""
        last = answers[-1]
        if last.outcome not in TRIED_AGAIN or len(answers) > self._limits.retries:
            return ""
        return "" if spent(answers) >= self._parts[item.id] else last.error or last.outcome

    def finish(self, item: Item, answers: Sequence[Attempt]) -> Row:
        """Write patch and result of a task. Raises `OSError`."""
        result = make_result(item, answers, self._keep_patch(item, answers[-1]))
        self._results.append(result)
        return describe(result)

    def release(self, item: Item, answers: Sequence[Attempt]) -> None:
        """Give back the money that was set aside for a task, and its directory."""
        self._budget.settle(self._parts.pop(item.id), spent(answers))
        self._busy.discard(item.cwd)

    def _keep_patch(self, task: Item, attempt: Attempt) -> str:
        """Write what was changed; returns the file's path, empty where nothing was. Raises `OSError`."""
        file = self._places.kept / f"{task.id}.patch"
        if not attempt.patch:
            file.unlink(missing_ok=True)  # of an earlier run
            return ""
        make_directory(file.parent)
        replace_file(file, attempt.patch)
        return str(file)


def spent(attempts: Sequence[Attempt]) -> float:
    """Return what tries have cost, in US dollars, as far as it is known. Pure."""
    return sum(attempt.cost or 0.0 for attempt in attempts)


def words(outcome: str) -> str:
    """Return an outcome as users read it."""
    return outcome.replace("_", " ")


def describe(result: Result) -> Row:
    """Return a result as it is shown. Pure."""
    tries = [f"{result.attempts} tries"] if result.attempts > 1 else []
    files = [f"{plural(len(result.changed_files), 'file')} changed"] if result.changed_files else []
    return Row(
        name=result.id,
        outcome=words(result.outcome),
        is_good=result.outcome == "done",
        seconds=result.duration_ms / 1000,
        cost=result.total_cost_usd,
        about=result.error or "" if result.outcome != "done" else "",
        changes=", ".join([*tries, *files]),
        record=result,
    )


def make_result(task: Item, attempts: Sequence[Attempt], patch: str) -> Result:
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
        trial=last.trial,
        reward=last.reward,
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


def is_finished(task: Item, latest: dict[str, Result], again: frozenset[str]) -> bool:
    """Whether a task has a result that counts: of this very task, and not one that is asked for again. Pure."""
    result = latest.get(task.id)
    return result is not None and result.task == task.digest and result.outcome not in again


def judge(results: Sequence[Result]) -> int:
    """Return the exit code that results stand for. Pure."""
    return OK if all(result.outcome == "done" for result in results) else FAILED
