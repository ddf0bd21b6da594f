"""Commands on what waits and what runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from typing import Literal

from tenuto.command.outcome import SURE, Choice, Choose, CommandOutcome, Page, RowChanged, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.entry import QueuedEntry
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import text_of
from tenuto.text.figures import format_seconds
from tenuto.tool.process.job_table import Job

USAGE = "/queue lists what waits; /queue edit, delete, steer, up or down and a number change it"
MAX_CHARACTERS = 200
Action = Literal["delete", "take_back", "steer", "unsteer", "move"]


async def run_queue(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the queued prompts by number, or change the one of a number."""
    queue = runtime.live.session.state.queue
    words = argument.split()
    if not words:
        return [Say("\n".join(_rows(queue)) if queue else "Nothing is queued.")]
    if len(words) != 2 or not words[1].isdecimal():
        return [Say(USAGE, "warning")]
    place = int(words[1]) - 1
    if not 0 <= place < len(queue):
        return [Say(f"There is no number {words[1]} in the queue of {len(queue)}", "warning")]
    change = _change(words[0], queue, place)
    if change is None:
        return [Say(USAGE, "warning")]
    action, before = change
    operation = EditQueueOperation(session_id=runtime.session_id, target=queue[place].seq, action=action, before=before)
    await runtime.submit(operation)
    left = runtime.live.session.state.queue
    return [Say("\n".join(_rows(left)) if left else "Nothing is queued any more.")]


def _rows(queue: tuple[QueuedEntry, ...]) -> list[str]:
    return [f"{number}. {_describe(entry)}" for number, entry in enumerate(queue, 1)]


def _describe(entry: QueuedEntry) -> str:
    text = " ".join(text_of(entry.parts).split())
    shown = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
    images = len(entry.parts) - sum(hasattr(part, "text") for part in entry.parts)
    marks = [*(["at the next tool boundary"] if entry.steer else []), *([f"{images} images"] if images else [])]
    return f"{shown} ({', '.join(marks)})" if marks else shown


def _change(word: str, queue: tuple[QueuedEntry, ...], place: int) -> tuple[Action, int] | None:
    """Return what a word asks for, and in front of which seq (0: at the end); `None` for another word."""
    match word:
        case "delete":
            return "delete", 0
        case "edit":
            return "take_back", 0
        case "steer":
            return ("unsteer" if queue[place].steer else "steer"), 0
        case "up":
            return "move", queue[max(0, place - 1)].seq
        case "down":
            return "move", queue[place + 2].seq if place + 2 < len(queue) else 0
        case _:
            return None


PREVIEW_BYTES = 4_000
PREVIEW_LINES = 8
PAGE_BYTES = 4_000_000
"""Bytes from the end of a job's output that the pager shows."""


async def run_jobs(runtime: Runtime, argument: str) -> list[CommandOutcome]:
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
