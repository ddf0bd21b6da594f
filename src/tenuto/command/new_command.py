"""/new: start a new session; the present one stays."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import NewSessionOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Leave the open session and start one in the same directory, or in the one that is named."""
    await runtime.submit(NewSessionOperation(session_id=runtime.session_id, cwd=argument))
    return []
