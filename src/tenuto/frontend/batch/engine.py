"""Where agents run: on this machine, or wherever else somebody writes these two methods for (`ray_engine.py`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from tenuto.frontend.batch.worker import Attempt, Job, run_job


class WorkerLostError(Exception):
    """What ran a job is gone, and nobody knows how far it came; the message says what was lost."""


class Engine(Protocol):
    """What runs jobs. `jobs` is how many at the same time."""

    jobs: int

    async def run(self, job: Job) -> Attempt:
        """Run one job. Raises `WorkerLostError`. When cancelled, its agent has ended when this returns."""
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...


class ProcessEngine:
    """The agents are processes of this machine, at most one for each core."""

    def __init__(self, jobs: int | None, environ: Mapping[str, str]) -> None:
        self.jobs = min(jobs or count_cores(), count_cores())
        self._environ = environ

    async def run(self, job: Job) -> Attempt:
        """Run one job here."""
        return await run_job(job, self._environ)

    def close(self) -> None:
        """There is nothing to let go of: no process outlives its job."""


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
