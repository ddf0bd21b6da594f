"""A row of the list of sessions, and what can be done with its session while it is not open."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tenuto.command.outcome import SURE, Choice, Choose, CommandOutcome, RowAct, RowChanged, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.session.catalog import SessionSummary, find_session, summarise_session
from tenuto.session.errors import SessionError
from tenuto.session.offline_append import retitle
from tenuto.session.paths import project_directory
from tenuto.session.trash import move_to_bin
from tenuto.text.figures import format_cost, plural

ACTS: tuple[RowAct, ...] = ("rename", "delete", "fork")
HERE, ELSEWHERE = "here", "elsewhere"


def session_row(session: SessionSummary, now: float, folder: Path) -> Choice:
    """Return the row of a session: its name and age; below the list how it began, where it is, on which branch.

    `now` is seconds since the epoch, `folder` where the sessions of this project lie.
    """
    detail = f"{age(now - session.updated)} · {plural(session.messages, 'message')} · {session.id[:8]}"
    facts = [
        session.cwd,
        session.branch,
        session.model,
        format_cost(session.cost) if session.cost else "",
        session.error,
    ]
    preview = [
        f"first  {session.first_text}" if session.first_text else "",
        f"last   {session.last_text}" if session.last_text and session.last_text != session.first_text else "",
        " · ".join(fact for fact in facts if fact),
    ]
    return Choice(
        session.id,
        session.name,
        detail,
        kind=HERE if session.directory.parent == folder else ELSEWHERE,
        preview="\n".join(" ".join(line.split()) for line in preview if line),
        title=session.title,
    )


async def change_session(runtime: Runtime, target: str, act: str, title: str) -> list[CommandOutcome]:
    """Rename the session that is named by its id (or the beginning of one), or move it to the bin.

    A deletion is asked about unless `title` says that it was. Whatever comes of it, the list learns how the session is
    now. Raises `UsageError` for the open session.
    """
    directory = find_session(runtime.home, target)
    if directory is None:
        return [RowChanged("resume", target, None), Say(f"There is no session “{target}” any more.", "warning")]
    if directory.name == runtime.live.session.directory.name:
        other = "/title names it" if act == "rename" else "go to another one first (/new, /resume)"
        raise UsageError(f"session {directory.name[:8]} is the open one: {other}")
    if act == "delete" and title != SURE:
        return [await asyncio.to_thread(_ask, directory)]
    try:
        said = await asyncio.to_thread(_rename if act == "rename" else _delete, runtime.home, directory, title)
    except (SessionError, OSError) as error:
        said = Say(str(error), "error")
    summary = await asyncio.to_thread(summarise_session, directory) if directory.is_dir() else None
    folder = project_directory(runtime.home, runtime.live.session.cwd)
    row = session_row(summary, time.time(), folder) if summary is not None else None
    return [RowChanged("resume", directory.name, row), said]


def _ask(directory: Path) -> Choose:
    summary = summarise_session(directory)
    name = summary.name if summary is not None else directory.name[:8]
    keep = Choice("", "no", "keep it")
    delete = Choice(f"{directory.name} delete {SURE}", "yes", "move to the bin; tenuto sessions restore brings it back")
    return Choose(f"Delete “{name}”?", "resume", (keep, delete))


def _rename(home: Path, directory: Path, title: str) -> Say:
    del home
    if not title:
        return Say("/resume ID rename needs a title: /resume ID rename TEXT", "warning")
    retitle(directory, title)
    return Say(f"Renamed {directory.name[:8]} to “{title}”.")


def _delete(home: Path, directory: Path, title: str) -> Say:
    del title
    move_to_bin(home, directory)
    name = directory.name[:8]
    return Say(f"Moved {name} to the bin; tenuto sessions restore {name} restores it.")


def age(seconds: float) -> str:
    """Return a short age: 5m, 3h, 2d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "just now"
