"""/resume: open an earlier session."""

from __future__ import annotations

import time

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import OpenSessionOperation
from tenuto.session.catalog import list_sessions


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Open the session that is named by its id; without one, offer those of this directory, newest first."""
    if argument:
        await runtime.submit(OpenSessionOperation(session_id=runtime.session_id, target=argument))
        return []
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


def age(seconds: float) -> str:
    """Return a short age: 5m, 3h, 2d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "just now"
