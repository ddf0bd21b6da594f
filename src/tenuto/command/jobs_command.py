"""/jobs: what runs in the background: read its output, end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time

from tenuto.command.outcome import SURE, Choice, Choose, CommandOutcome, Page, RowChanged, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.text.figures import format_seconds
from tenuto.tool.jobs import Job

PREVIEW_BYTES = 4_000
PREVIEW_LINES = 8
PAGE_BYTES = 4_000_000
"""Bytes from the end of a job's output that the pager shows."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the jobs, show the output of the one that is named, or end it (`JOB end`, `end JOB`).

    Raises `UsageError` for a job that there is not.
    """
    jobs = runtime.live.tool_context.jobs.all()
    words = [word for word in argument.split() if word != SURE]
    if not words:
        return [_offer(jobs)]
    is_end = "end" in words
    name = next((word for word in words if word != "end"), "")
    job = next((job for job in jobs if name in (job.id, job.id.rpartition("-")[2])), None)
    if job is None:
        raise UsageError(
            f"there is no job “{name}”; /jobs lists them" if name else "/jobs end N ends the one of a number"
        )
    if is_end:
        return await _end(runtime, job)
    return [await asyncio.to_thread(_page, job)]


def _offer(jobs: list[Job]) -> CommandOutcome:
    if not jobs:
        return Say("Nothing runs in the background.")
    newest_first = sorted(jobs, key=lambda job: (job.is_running, job.started), reverse=True)
    rows = tuple(_row(job) for job in newest_first)
    return Choose("Background jobs (Enter: output)", "jobs", rows, in_order=True, acts=("end",))


def _row(job: Job) -> Choice:
    detail = f"{_state(job)} · {job.id} · process {job.pid}"
    return Choice(job.id, " ".join(job.text.split()), detail, preview=_tail(job, PREVIEW_BYTES, PREVIEW_LINES))


def _state(job: Job) -> str:
    if job.is_running:
        return f"running {format_seconds(time.monotonic() - job.started)}"
    return "ended by you" if job.stopped else f"ended, exit code {job.exit_code}"


def _tail(job: Job, size: int, lines: int) -> str:
    """Return the last lines of what a job has written; what a terminal would obey is taken out."""
    if job.log is None:
        return ""
    with contextlib.suppress(OSError), job.log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - size))
        return "\n".join(sanitize_for_terminal(file.read().decode("utf-8", "replace")).splitlines()[-lines:])
    return ""


def _page(job: Job) -> CommandOutcome:
    text = _tail(job, PAGE_BYTES, PAGE_BYTES)
    if not text:
        return Say(f"{job.id} has written nothing.")
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"$ {sanitize_for_terminal(job.text)}\n[{_state(job)}]\n\n{text}\n")
    return Page(path)


async def _end(runtime: Runtime, job: Job) -> list[CommandOutcome]:
    live = runtime.live
    if not job.is_running:
        return [RowChanged("jobs", job.id, _row(job)), Say(f"{job.id} has ended already.")]
    job.stopped = True
    await live.tool_context.jobs.end(job)
    live.publish_usage()
    return [RowChanged("jobs", job.id, _row(job)), Say(f"Ended {job.id}: {' '.join(job.text.split())}")]
