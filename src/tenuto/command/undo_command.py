"""/undo: take the last turn's edits of files back."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome
from tenuto.core.errors import TaskFailedError
from tenuto.core.restoring import undo_turn
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Take the edits of the newest turn that has any back; once more goes one turn further."""
    if argument:
        raise TaskFailedError("/undo undoes the last turn's edits and takes no argument; /rewind goes to any message")
    live = runtime.live
    if live.submissions or runtime.executor.tasks.running(live.id) is not None:
        raise TaskFailedError("busy: press Esc first, then /undo")
    undo_turn(live)
    return []  # the core has put a notice into the transcript
