"""/compact: summarise the older part of the conversation now."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import CompactSessionOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Start a compaction; the argument is extra guidance for the summary."""
    await runtime.submit(
        CompactSessionOperation(session_id=runtime.session_id, reason="manual", focus=argument or None)
    )
    return []
