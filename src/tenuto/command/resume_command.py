"""/resume: open an earlier session."""

from __future__ import annotations

import time

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Leave, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import OpenSessionOperation, SessionAccess
from tenuto.session.catalog import find_session, list_sessions
from tenuto.session.errors import SessionLocked
from tenuto.session.lock import lock_owner

WAYS: dict[str, SessionAccess] = {"look": "read", "fork": "copy", "take-over": "take_over"}
"""What can be done with a session that is open elsewhere, as a word behind its id."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Open the session that is named by its id; without one, offer those of this directory, newest first."""
    target, _, way = argument.partition(" ")
    if way == "leave":
        return [Leave()]
    if target:
        return await _open(runtime, target, way.strip())
    sessions = [
        session for session in list_sessions(runtime.home, runtime.live.session.cwd) if session.id != runtime.session_id
    ]
    if not sessions:
        return [Say("There is no other session in this directory.")]
    now = time.time()
    rows = tuple(
        Choice(
            session.id,
            session.title or session.first_text or "(nothing said)",
            f"{age(now - session.updated)} · {session.messages} messages · {session.id[:8]}",
        )
        for session in sessions
    )
    return [Choose("Resume a session", "resume", rows)]


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


def age(seconds: float) -> str:
    """Return a short age: 5m, 3h, 2d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "just now"
