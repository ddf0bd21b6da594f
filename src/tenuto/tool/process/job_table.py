"""The jobs of a session: commands that run on after the call that started them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from tenuto.tool.process.process import Command


class Job(Struct, eq=False):
    """One of them. `pid` is also its process group; `log` takes its output as it comes; `started` is monotonic."""

    id: str
    text: str
    process: Command
    log: Path | None
    asked_for: bool
    """A background job that the model asked for, and not something that a command left behind."""
    reported: bool = False
    started: float = field(default_factory=time.monotonic)
    stopped: bool = False
    """The user ended it."""
    is_confined: bool = False
    """The sandbox holds it."""
    is_outside: bool = False
    """It runs outside of the sandbox because a user allowed that; what is typed into it is asked about again."""
    remarks: list[str] = field(default_factory=list[str])
    """What the model has to know of what it did to protected files."""
    seen: int = 0
    """Bytes of its output that the model has been shown."""

    @property
    def pid(self) -> int:
        """The id of its shell, its group and its session."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """How its shell ended, `None` while it runs."""
        return self.process.exited.result() if self.process.exited.done() else None

    @property
    def is_running(self) -> bool:
        """Whether anything of it is alive."""
        return not self.process.exited.done() or self.process.leaves_something()

    def describe(self) -> str:
        """Return one line: its command, and whether it runs or how it ended."""
        ended = "was ended by the user" if self.stopped else f"ended with exit code {self.exit_code}"
        state = f"is running, process {self.pid}" if self.is_running else ended
        return "; ".join((f"{self.id} ({self.text}) {state}", *self.remarks))

    def take_news(self, max_chars: int, max_lines: int) -> str:
        """Return what it wrote since the last call of this, cut in its middle; each byte is returned once."""
        before, self.seen = self.seen, self.process.collector.size
        return self.process.collector.text_from(before, max_chars, max_lines).rstrip("\n")


class JobTable(Struct):
    """The jobs of one session. They end with it. `changed` is called when one begins or ends."""

    changed: Callable[[], None] | None = None
    _jobs: list[Job] = field(default_factory=list[Job])
    _count: int = 0

    def add(self, text: str, process: Command, *, asked_for: bool) -> Job:
        """Take over a running command."""
        self._count += 1
        job = Job(f"job-{self._count}", text, process, process.collector.spool(), asked_for)
        self._jobs.append(job)
        process.exited.add_done_callback(lambda _exited: self._tell())
        self._tell()
        return job

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()

    def all(self) -> list[Job]:
        """Return what runs and what has ended, oldest first."""
        return list(self._jobs)

    def running(self) -> list[Job]:
        """Return what runs, oldest first."""
        return [job for job in self._jobs if job.is_running]

    def asked_for(self) -> list[Job]:
        """Return the background jobs that run because the model asked for them."""
        return [job for job in self.running() if job.asked_for]

    def has_news(self) -> bool:
        """Whether a background job has ended and the model does not know it yet."""
        return any(job.asked_for and not job.reported and not job.is_running for job in self._jobs)

    def take_finished(self) -> list[Job]:
        """Return the background jobs that ended since the last call of this; each is returned once."""
        finished = [job for job in self._jobs if job.asked_for and not job.reported and not job.is_running]
        for job in finished:
            job.reported = True
        return finished

    async def end(self, job: Job) -> None:
        """End one job with everything that it started."""
        await job.process.end()
        job.process.close()

    async def close(self) -> None:
        """End everything; nobody is told any more."""
        self.changed = None
        jobs, self._jobs = self._jobs, []
        try:
            await asyncio.gather(*(self.end(job) for job in jobs if job.is_running))
        finally:
            for job in jobs:
                job.process.kill_now()
                job.process.close()
