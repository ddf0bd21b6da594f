"""Undo and redo of what made the view smaller: compactions and view edits (DESIGN sections 3 and 6, R-056).

An undo is one more line of the log. The view that it leads to is computed before the line is written, so that none
leaves the session with more than the model takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from tenuto.compaction.meter import Meter, estimate_tools
from tenuto.core.errors import TaskFailedError
from tenuto.core.live import LiveSession
from tenuto.protocol.entry import UndoEntry, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, HistoryEvent
from tenuto.session.path import find_on, newest_of_kind
from tenuto.session.projection import cancelled_by_undo, is_usable, project, standing_marks

NOTICE_KIND = "undo"
Change = CompactionEntry | ViewEditEntry


@dataclass(frozen=True, slots=True)
class Undone:
    """An undo or redo that is on disk, and the size of the next request in tokens before and after it."""

    entry: UndoEntry
    tokens_before: int
    tokens_after: int


def undo_compaction(live: LiveSession) -> Undone:
    """Cancel the newest compaction or view edit in effect. Raises `TaskFailedError`, with nothing written."""
    change = find_undoable(live)
    before, after = live.measure().tokens, _size_without(live, change.seq)
    budget = live.budget()
    if after > max(budget.trigger, before):
        raise TaskFailedError(_too_large(live, change, before, after))
    undone = Undone(live.session.append(UndoEntry(target=change.seq)), before, after)
    live.automatic.note_undone(after, (budget.trigger + budget.window) // 2)
    name = "The compaction" if isinstance(change, CompactionEntry) else "The shortening of results"
    _tell(live, undone, f"{name} is undone", "/compact redo takes that back.")
    return undone


def redo_compaction(live: LiveSession) -> Undone:
    """Cancel the newest undo. Raises `TaskFailedError`, with nothing written."""
    path = live.session.path()
    undo = _find_redoable(path)
    if undo is None:
        raise TaskFailedError("there is no undone compaction to do again")
    newer = takewhile(lambda mark: mark.seq > undo.seq, standing_marks(path))
    if any(isinstance(mark, Change) for mark in newer):
        raise TaskFailedError("the conversation was compacted again since that undo; /compact undo goes back first")
    before, after = live.measure().tokens, _size_without(live, undo.seq)
    undone = Undone(live.session.append(UndoEntry(target=undo.seq)), before, after)
    live.automatic.reset()
    _tell(live, undone, "What was undone holds again", "/compact undo takes that back.")
    return undone


def _find_redoable(path: Sequence[HistoryEvent]) -> UndoEntry | None:
    """Return the newest undo in effect that is not itself a redo."""
    cancelled = cancelled_by_undo(path)
    for undo in newest_of_kind(path, UndoEntry):
        if undo.seq not in cancelled and not isinstance(find_on(path, undo.target), UndoEntry):
            return undo
    return None


def find_undoable(live: LiveSession) -> Change:
    """Return the newest compaction or view edit in effect. Raises `TaskFailedError` when there is none."""
    for mark in standing_marks(live.session.path()):
        if isinstance(mark, ViewEditEntry):
            return mark
        if isinstance(mark, CompactionEntry) and is_usable(mark, live.session.state.model):
            return mark
    raise TaskFailedError("there is no compaction to undo")


def seq_before(live: LiveSession, change: Change) -> int:
    """Return the seq of the last entry before a change and the system prompt that came with it; 0 at the root."""
    first = change.seq
    if isinstance(change, CompactionEntry) and change.system_seq:
        first = min(first, change.system_seq)
    return next((entry.seq for entry in reversed(live.session.path()) if entry.seq < first), 0)


def size_of(live: LiveSession, path: Sequence[HistoryEvent]) -> int:
    """Return the tokens of the next request if `path` were the session's: the same measure as everywhere (R-024)."""
    view = project(path, live.session.state.model)
    # A meter of its own: the session's keeps what it knows of the real path.
    size = Meter().measure_view(
        view,
        path,
        model_id=live.facts.id,
        tools_tokens=estimate_tools(live.tool_schemas()),
        queue=live.session.state.queue,
    )
    return size.tokens


def _size_without(live: LiveSession, target: int) -> int:
    path = live.session.path()
    return size_of(live, path.with_entry(UndoEntry(seq=path[-1].seq + 1, target=target)))


def _too_large(live: LiveSession, change: Change, before: int, after: int) -> str:
    budget = live.budget()
    seq = seq_before(live, change)
    fork = size_of(live, live.session.path().up_to(seq))
    ways = ["/model to one with a larger window and then /compact undo"]
    if 0 < fork <= budget.trigger:
        ways.append(f"/compact undo fork for a copy that ends before it, without the later turns (~{fork:,})")
    ways.append("/recall WORDS for whatever the summary lacks")
    return (
        f"not undone: the next request would have ~{after:,} tokens instead of {before:,}, and automatic compaction "
        f"starts over {budget.trigger:,} (window {budget.window:,}). Possible: {'; '.join(ways)}"
    )


def _tell(live: LiveSession, undone: Undone, what: str, back: str) -> None:
    sizes = f"{undone.tokens_before:,} → ~{undone.tokens_after:,} tokens"
    live.notify(f"{what}: {sizes} in the next request. {back}", kind=NOTICE_KIND, keep=True)
    live.publish_usage()
