"""/compact: summarise the older part of the conversation now, or undo that."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import CompactSessionOperation

UNDO_WORDS = frozenset({"undo", "redo", "undo fork"})


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Start a compaction; the argument is extra guidance for the summary, or undoes the last one."""
    words = " ".join(argument.lower().split())
    if words in UNDO_WORDS:
        from tenuto.command.compact_undo import run_undo

        return await run_undo(runtime, words)
    await runtime.submit(
        CompactSessionOperation(session_id=runtime.session_id, reason="manual", focus=argument or None)
    )
    return []
