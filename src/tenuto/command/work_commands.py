"""Commands on what waits and what runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from itertools import islice
from typing import Literal

from tenuto.command.outcome import SURE, Choice, Choose, CommandOutcome, Page, RowChanged, Say
from tenuto.core.agent.kinds import agents_of
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.core.state.live import LiveSession
from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.entry import QueuedEntry
from tenuto.protocol.message import AgentView, ToolResultMessage
from tenuto.protocol.operation import EditQueueOperation, InterruptOperation
from tenuto.protocol.part import text_of
from tenuto.session.agents import SHORT_ID
from tenuto.session.library.catalog import summarise_session
from tenuto.session.session import Session
from tenuto.session.store import AGENTS, find_agent
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.figures import format_seconds, format_spending, plural
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


AGENTS_USAGE = "/agents lists the sub-agents; /agents ID shows the transcript of one, /agents end ID ends it"
LISTED_AGENTS = 50


async def run_agents(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the sub-agents of this session, show the transcript of one, or end it (`end ID`, `ID end`).

    `kinds` lists the agents that there are. Raises `UsageError` for a sub-agent that there is not.
    """
    words = [word for word in argument.split() if word != SURE]
    live = runtime.live
    if words == ["kinds"]:
        return [await asyncio.to_thread(_kinds, live)]
    if not words:
        rows = await asyncio.to_thread(_agent_rows, live)
        return (
            [Choose("Sub-agents (Enter: transcript)", "agents", rows, in_order=True, acts=("end",))]
            if rows
            else [await asyncio.to_thread(_kinds, live)]
        )
    is_end = "end" in words
    name = next((word for word in words if word != "end"), "")
    folder = find_agent(live.session.directory, name)
    if folder is None:
        raise UsageError(f"there is no sub-agent “{name}”; {AGENTS_USAGE}" if name else AGENTS_USAGE)
    if not is_end:
        from tenuto.command.file_commands import page_session

        return [await asyncio.to_thread(lambda: page_session(Session.open(folder, read_only=True)))]
    child = live.children.find(folder.name)
    if child is None:
        return [Say(f"{folder.name[:SHORT_ID]} has ended already.")]
    await runtime.submit(InterruptOperation(session_id=folder.name))
    return [Say(f"Ending {child.label}; what it had said goes to its parent.")]


def _agent_rows(live: LiveSession) -> tuple[Choice, ...]:
    """Return those that run, then those that have ended, the newest first."""
    rows = [
        Choice(child_id, child.label, f"running · {child.facts} · {child_id[:SHORT_ID]}")
        for child_id, child in live.children.running.items()
    ]
    for result in islice(newest_of_kind(live.session.path(), ToolResultMessage), 2_000):
        for view in result.ui:
            if isinstance(view, AgentView) and len(rows) < LISTED_AGENTS:
                spent = f"{plural(view.steps, 'step')} · {format_spending(view.tokens, view.cost)}"
                said = text_of(result.parts)[:PREVIEW_BYTES]
                detail = f"{view.outcome.replace('_', ' ')} · {spent} · {view.session[:SHORT_ID]}"
                title = _title_of(live, view.session)
                rows.append(Choice(view.session, f"{view.agent}{title}", detail, preview=said))
    return tuple(rows)


def _title_of(live: LiveSession, child: str) -> str:
    summary = summarise_session(live.session.directory / AGENTS / child)
    return f": {summary.name[:MAX_CHARACTERS]}" if summary is not None else ""


def _kinds(live: LiveSession) -> CommandOutcome:
    """Return the agents that a task can be given to, and from where they are."""
    kinds = agents_of(live).kinds.values()
    lines = [f"{kind.name}: {kind.description}{f' ({kind.source})' if kind.source else ''}" for kind in kinds]
    return Say("\n".join(("No sub-agent has worked here yet. There are:", *map(sanitize_for_terminal, lines))))


async def _end(runtime: Runtime, job: Job) -> list[CommandOutcome]:
    live = runtime.live
    if not job.is_running:
        return [RowChanged("jobs", job.id, _row(job)), Say(f"{job.id} has ended already.")]
    job.stopped = True
    await live.tool_context.jobs.end(job)
    live.publish_usage()
    return [RowChanged("jobs", job.id, _row(job)), Say(f"Ended {job.id}: {' '.join(job.text.split())}")]
