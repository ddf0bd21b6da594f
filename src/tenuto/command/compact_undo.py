"""`/compact undo` with its forms, and `/compact redo`."""

from __future__ import annotations

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.errors import TaskFailedError
from tenuto.core.runtime import Runtime
from tenuto.core.undo import (
    Undone,
    UndoRefusedError,
    find_undoable,
    redo_compaction,
    seq_before,
    undo_compaction,
    undo_without_later_turns,
)
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import CompactSessionOperation, ForkSessionOperation
from tenuto.text.figures import format_count


async def run_undo(runtime: Runtime, words: str) -> list[CommandOutcome]:
    """Carry out what `words` say. Raises `TaskFailedError` when it cannot be."""
    live = runtime.live
    if live.submissions or runtime.executor.tasks.running(live.id) is not None:
        raise TaskFailedError(f"busy: press Esc first, then /compact {words}")
    if words == "undo fork":
        return await _fork_before(runtime)
    if words.startswith("undo up-to"):
        return await _compact_anew(runtime, words.removeprefix("undo up-to").strip().removeprefix("#"))
    try:
        match words:
            case "undo":
                undone = undo_compaction(live)
            case "undo drop":
                undone = undo_without_later_turns(live)
            case _:
                undone = redo_compaction(live)
    except UndoRefusedError as error:
        return [Say(str(error), "error"), *_offer(error)]
    _show(runtime, undone)
    return []  # the core has put a notice into the transcript


def _show(runtime: Runtime, undone: Undone) -> None:
    """Show the session anew where another part of the conversation is the present one now."""
    if undone.has_moved:
        runtime.opener.show_again(runtime.session_id)


def _offer(error: UndoRefusedError) -> list[CommandOutcome]:
    """Offer what can be done instead (R-056); leaving it is the first row, because nothing asks for a hurry."""
    rows = [Choice("", "Leave it as it is", "nothing changes", present=True)]
    if error.drop_tokens:
        size = format_count(error.drop_tokens)
        rows.append(
            Choice("undo drop", "Undo, and leave the later turns", f"~{size} tokens; /compact redo brings back")
        )
    if isinstance(error.change, CompactionEntry):
        rows.append(
            Choice("undo up-to", "Undo, and compact up to a message that you choose", "keeps more word for word")
        )
    return [Choose("The undo would be over the limit", "compact", tuple(rows))] if len(rows) > 1 else []


async def _compact_anew(runtime: Runtime, seq: str) -> list[CommandOutcome]:
    """Undo the newest compaction and compact up to a chosen message in one step."""
    live = runtime.live
    change = find_undoable(live)
    if not isinstance(change, CompactionEntry):
        raise TaskFailedError("the newest change is no compaction; /compact undo reverts it")
    if seq:
        operation = CompactSessionOperation(session_id=live.id, first_kept=int(seq), undoing=change.seq)
        await runtime.submit(operation)
        return []
    from tenuto.command.compact_choose import offer_messages
    from tenuto.core.environment import standing_without

    return [offer_messages(runtime, "undo up-to", standing_without(live, change.seq).view)]


async def _fork_before(runtime: Runtime) -> list[CommandOutcome]:
    """Go on in a copy of the session that ends before the newest compaction; this one stays as it is."""
    origin = runtime.session_id
    seq = seq_before(runtime.live, find_undoable(runtime.live))
    if not seq:
        raise TaskFailedError("there is nothing before that compaction")
    await runtime.submit(ForkSessionOperation(session_id=origin, seq=seq))
    return [Say(f"This is a copy from before the compaction; the whole session is {origin[:8]}.")]
