"""`/compact undo`, `/compact redo` and `/compact undo fork`."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.errors import TaskFailedError
from tenuto.core.runtime import Runtime
from tenuto.core.undo import find_undoable, redo_compaction, seq_before, undo_compaction
from tenuto.protocol.operation import ForkSessionOperation


async def run_undo(runtime: Runtime, words: str) -> list[CommandOutcome]:
    """Carry out what `words` say: undo, redo, or undo fork. Raises `TaskFailedError` when it cannot be."""
    live = runtime.live
    if live.submissions or runtime.executor.tasks.running(live.id) is not None:
        raise TaskFailedError(f"something is running; /compact {words} works when it has ended, Esc stops it")
    if words == "undo fork":
        return await _fork_before(runtime)
    if words == "undo":
        undo_compaction(live)
    else:
        redo_compaction(live)
    return []  # the core has put a notice into the transcript


async def _fork_before(runtime: Runtime) -> list[CommandOutcome]:
    """Go on in a copy of the session that ends before the newest compaction; this one stays as it is."""
    origin = runtime.session_id
    seq = seq_before(runtime.live, find_undoable(runtime.live))
    if not seq:
        raise TaskFailedError("there is nothing before that compaction")
    await runtime.submit(ForkSessionOperation(session_id=origin, seq=seq))
    return [Say(f"This is a copy from before the compaction; the whole session is {origin[:8]}.")]
