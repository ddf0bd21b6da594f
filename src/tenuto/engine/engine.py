"""What is run, and where: on this machine, or wherever else somebody writes these two methods for (`ray_engine.py`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol, TypeVar

AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class WorkerLostError(Exception):
    """What ran a job is gone, and nobody knows how far it came; the message says what was lost."""


class Job(Protocol[AnswerT_co]):
    """One try at something. It is data that may be pickled, of a class that can be imported wherever jobs run.

    What takes processor time or memory is a child process of its own (`child.py`), on whichever machine that is.
    """

    async def run(self, environ: Mapping[str, str]) -> AnswerT_co:
        """Do it, with the environment of the machine that it runs on. Raises `WorkerLostError`.

        When cancelled, nothing of it runs any more when this returns.
        """
        ...

    def clean(self, environ: Mapping[str, str]) -> None:
        """Take away what it has left on this machine, where its worker was lost."""
        ...


class Engine(Protocol):
    """What runs jobs. `jobs` is how many at the same time."""

    jobs: int

    async def run(self, job: Job[AnswerT]) -> AnswerT:
        """Run one job. Raises `WorkerLostError`. When cancelled, its processes have ended when this returns."""
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...


class ProcessEngine:
    """The jobs are processes of this machine, at most one for each core."""

    def __init__(self, jobs: int | None, environ: Mapping[str, str]) -> None:
        self.jobs = min(jobs or count_cores(), count_cores())
        self._environ = environ

    async def run(self, job: Job[AnswerT]) -> AnswerT:
        """Run one job here."""
        return await job.run(self._environ)

    def close(self) -> None:
        """There is nothing to let go of: no process outlives its job."""


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
