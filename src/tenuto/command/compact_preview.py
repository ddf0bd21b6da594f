"""`/compact --preview`, and what is answered to the proposal: accept, edit, drop."""

from __future__ import annotations

import re

from tenuto.command.outcome import CommandOutcome, Edit
from tenuto.core.errors import TaskFailedError
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import (
    AcceptCompactionOperation,
    DropCompactionOperation,
    PreviewCompactionOperation,
)

UP_TO = re.compile(r"up-to\s+#?(\d+)(?:\s+(.*))?\Z", re.DOTALL)
ACCEPT_LINE = "/compact accept\n"


async def run_preview(runtime: Runtime, focus: str) -> list[CommandOutcome]:
    """Have a compaction made and shown; an event brings it, and nothing is written before it is accepted."""
    chosen = UP_TO.match(focus)
    first_kept, stress = (int(chosen[1]), chosen[2]) if chosen else (0, focus)
    await runtime.submit(
        PreviewCompactionOperation(session_id=runtime.session_id, focus=stress or None, first_kept=first_kept)
    )
    return []


async def run_answer(runtime: Runtime, word: str, text: str) -> list[CommandOutcome]:
    """Accept the proposal (with `text` as its summary, if there is one), let it be edited, or drop it."""
    if word == "accept":
        await runtime.submit(AcceptCompactionOperation(session_id=runtime.session_id, summary=text or None))
        return []
    if word == "drop":
        await runtime.submit(DropCompactionOperation(session_id=runtime.session_id))
        return []
    from tenuto.core.pending import require_pending

    summary = require_pending(runtime.live).summary
    if not summary:
        raise TaskFailedError("this proposal has no summary that could be edited; /compact accept or /compact drop")
    return [Edit(f"{ACCEPT_LINE}{summary}")]
