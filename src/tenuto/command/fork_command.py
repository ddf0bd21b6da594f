"""/fork: copy the session and go on in the copy."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import ForkSessionOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Fork at the present end of the conversation."""
    del argument
    origin = runtime.session_id
    await runtime.submit(ForkSessionOperation(session_id=origin))
    if runtime.session_id == origin:
        return []
    return [Say(f"Forked from {origin[:8]}.")]
