"""/resume: open an earlier session."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Leave, RowFilter, Say
from tenuto.command.session_rows import ACTS, HERE, change_session, session_row
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import OpenSessionOperation, SessionAccess
from tenuto.session.catalog import SessionSummary, find_by_words, find_session, list_sessions
from tenuto.session.errors import SessionLocked
from tenuto.session.lock import lock_owner
from tenuto.session.paths import project_directory

WAYS: dict[str, SessionAccess] = {"look": "read", "fork": "copy", "take-over": "take_over"}
"""What can be done with a session that is open elsewhere, as a word behind its id."""
FILTERS = (RowFilter("this directory", (HERE,)), RowFilter("all directories"))


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Open the session that is named by its id, or change it; else offer those of this directory, or all.

    Words that are no id are looked for in what the sessions are called, and how they began and ended.
    """
    target, _, way = argument.partition(" ")
    act, _, title = way.strip().partition(" ")
    if way == "leave":
        return [Leave()]
    if act in ("rename", "delete"):
        return await change_session(runtime, target, act, title.strip())
    if target and find_session(runtime.home, target) is not None:
        return await _open(runtime, target, way.strip())
    # Many sessions take a moment to read; the screen lives meanwhile.
    search = partial(find_by_words, runtime.home, argument) if target else partial(list_sessions, runtime.home)
    found = await asyncio.to_thread(search)
    others = [session for session in found if session.id != runtime.session_id]
    if target and len(others) < 2:
        return await _open(runtime, others[0].id if others else argument, "")
    return [_list(runtime, others)] if others else [Say("There is no other session.")]


def _list(runtime: Runtime, sessions: list[SessionSummary]) -> Choose:
    folder, now = project_directory(runtime.home, runtime.live.session.cwd), time.time()
    rows = tuple(session_row(session, now, folder) for session in sessions)
    kinds = {row.kind for row in rows}
    filters = FILTERS if HERE in kinds else FILTERS[::-1]
    return Choose("Resume a session", "resume", rows, filters if len(kinds) > 1 else (), acts=ACTS)


async def _open(runtime: Runtime, target: str, way: str) -> list[CommandOutcome]:
    present = runtime.live.session
    directory = find_session(runtime.home, target)
    is_other = directory is not None and (directory.name != present.directory.name or present.is_read_only)
    locked = lock_owner(directory) if directory is not None and is_other and way not in WAYS else None
    if locked is not None:
        return [_offer(locked, is_open=locked.directory.name == present.directory.name)]
    access = WAYS.get(way, "write")
    await runtime.submit(OpenSessionOperation(session_id=runtime.session_id, target=target, access=access))
    return []


def _offer(locked: SessionLocked, *, is_open: bool) -> Choose:
    """Ask what to do about a session that is open elsewhere; `is_open`: it is already being looked at here."""
    name = locked.directory.name
    rows = [
        Choice("" if is_open else f"{name} look", "look at it", "nothing is written"),
        Choice(f"{name} fork", "go on in a copy", "what happens there stays there"),
    ]
    if locked.can_take_over:
        rows.append(Choice(f"{name} take-over", "take it over", f"if {locked.owner} is gone for certain"))
    rows.append(Choice(f"{name} leave" if is_open else "", "cancel", "leave Tenuto" if is_open else "stay here"))
    return Choose(f"This session is open in {locked.owner}", "resume", tuple(rows))
