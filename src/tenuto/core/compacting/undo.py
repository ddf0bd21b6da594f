"""Undo and redo of what made the view smaller: compactions, view edits, parts left for notes (DESIGN 3, 6; R-056).

An undo is one more line of the log. The view that it leads to is computed before the line is written, so that none
leaves the session with more than the model takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from tenuto.compaction.measure.meter import ContextSize
from tenuto.compaction.plan.entries import visible_entry
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.event import UndoneEvent
from tenuto.protocol.message import CompactionEntry, HistoryEvent, NoticeEntry
from tenuto.session.session import Session
from tenuto.session.view.projection import cancelled_by_undo, is_usable, project, view_changes_in_effect
from tenuto.session.view.tree import find_on, newest_of_kind, since
from tenuto.text.figures import format_change

NOTICE_KIND = "undo"
REDO_KIND = "redo"
Change = CompactionEntry | ViewEditEntry | BranchSummaryEntry


@dataclass(frozen=True, slots=True)
class Undone:
    """An undo or redo that is on disk, and the size of the next request before and (in tokens) after it.

    A `branch` as the entry says that the leaf moved: the front-ends have to be shown the session again.
    """

    entry: UndoEntry | BranchEntry
    before: ContextSize
    tokens_after: int

    @property
    def has_moved(self) -> bool:
        """Whether another part of the conversation is the present one now."""
        return isinstance(self.entry, BranchEntry)


class UndoRefusedError(TaskFailedError):
    """An undo would leave the session over its limit, or without its later turns; the text says what is possible.

    `drop_tokens` is the size of the next request without the later turns (0: that is not possible).
    """

    def __init__(self, reason: str, change: Change, drop_tokens: int) -> None:
        super().__init__(reason)
        self.change = change
        self.drop_tokens = drop_tokens


def undo_compaction(live: LiveSession) -> Undone:
    """Cancel the newest compaction, view edit or left part in effect.

    Raises `TaskFailedError` (`UndoRefusedError` when there is a choice), with nothing written.
    """
    change = find_undoable(live.session)
    if isinstance(change, BranchSummaryEntry):
        return _return_to_branch(live, change)
    targets = [change.seq, *_undone_with(live.session, change)]
    before, after = live.measure(), _size_without(live, *targets)
    if after > max(live.budget().trigger, before.tokens):
        raise _refusal(live, change, before.tokens, after)
    for target in reversed(targets[1:]):
        append_undo(live, target)
    undone = Undone(append_undo(live, change.seq), before, after)
    what = "compaction" if isinstance(change, CompactionEntry) else "tool results restored"
    return _tell(live, undone, f"Undone: {what}", "/compact redo reverts this.")


def undo_without_later_turns(live: LiveSession) -> Undone:
    """Go back to what was before the newest change: what came after it stays behind as a branch.

    Raises `TaskFailedError`, with nothing written.
    """
    change = find_undoable(live.session)
    if isinstance(change, BranchSummaryEntry):
        return _move_back(live, change.from_seq)
    seq = seq_before(live.session, change)
    if not seq:
        raise TaskFailedError("there is nothing before that compaction")
    return _move_back(live, seq)


def redo_compaction(live: LiveSession) -> Undone:
    """Cancel the newest undo. Raises `TaskFailedError`, with nothing written."""
    path = live.session.path()
    undo = _find_redoable(path)
    left = _left_by_undo(live.session)
    if left is not None and (undo is None or left.move > undo.seq):
        before = live.measure()
        undone = Undone(live.session.append(BranchEntry(parent=left.leaf)), before, live.measure().tokens)
        return _tell(live, undone, "Redone: back on the branch that was left", "/compact undo reverts this.", REDO_KIND)
    if undo is None:
        raise TaskFailedError("there is no undone compaction to do again")
    newer = takewhile(lambda mark: mark.seq > undo.seq, view_changes_in_effect(path))
    if any(isinstance(mark, CompactionEntry | ViewEditEntry) for mark in newer):
        raise TaskFailedError("the conversation was compacted again since that undo; /compact undo goes back first")
    before, after = live.measure(), _size_without(live, undo.seq)
    undone = Undone(append_undo(live, undo.seq), before, after)
    return _tell(live, undone, "Redone", "/compact undo reverts this.", REDO_KIND)


def append_undo(services: SessionServices, target: int) -> UndoEntry:
    """Write the undo of an entry and tell the front-ends."""
    entry = services.session.append(UndoEntry(target=target))
    services.bus.publish(UndoneEvent(session_id=services.id, seq=entry.seq, target=target))
    return entry


def _find_redoable(path: Sequence[HistoryEvent]) -> UndoEntry | None:
    """Return the newest undo in effect that is not itself a redo."""
    cancelled = cancelled_by_undo(path)
    for undo in newest_of_kind(path, UndoEntry):
        if undo.seq not in cancelled and not isinstance(find_on(path, undo.target), UndoEntry):
            return undo
    return None


def find_undoable(session: Session) -> Change:
    """Return the newest compaction, view edit or left part in effect. Raises `TaskFailedError` when there is none."""
    newest: Change | None = None
    for mark in view_changes_in_effect(session.path()):
        if isinstance(mark, ViewEditEntry) or (
            isinstance(mark, CompactionEntry) and is_usable(mark, session.state.model)
        ):
            newest = mark
            break
    floor = newest.seq if newest is not None else 0
    for entry in newest_of_kind(session.path(), BranchSummaryEntry):
        if entry.seq <= floor:
            break
        if session.find(entry.from_seq) is not None:
            return entry
    if newest is None:
        raise TaskFailedError("there is no compaction to undo")
    return newest


def seq_before(session: Session, change: Change) -> int:
    """Return the seq of the last entry before a change and the system prompt that came with it; 0 at the root."""
    first = change.seq
    if isinstance(change, CompactionEntry) and change.system_seq:
        first = min(first, change.system_seq)
    return next((entry.seq for entry in reversed(session.path()) if entry.seq < first), 0)


def size_of(live: LiveSession, path: Sequence[HistoryEvent]) -> int:
    """Return the tokens of the next request if `path` were the session's: the same measure as everywhere (R-024)."""
    return live.measure_path(project(path, live.session.state.model), path).tokens


# --- moving the leaf ---


@dataclass(frozen=True, slots=True)
class _Left:
    """A leaf that an undo left, and the seq of the `branch` by which it did."""

    move: int
    leaf: int


def _return_to_branch(live: LiveSession, change: BranchSummaryEntry) -> Undone:
    """Go back to the part that notes stand for, if nothing was said since that would be left in its turn."""
    if any(map(visible_entry, since(live.session.path(), change.seq + 1))):
        tokens = size_of(live, live.session.path_to(change.from_seq))
        raise UndoRefusedError(
            "not undone: the conversation went on since, and going back to the part that was left leaves those turns. "
            "Possible: /compact undo drop goes back without them",
            change,
            tokens if tokens <= _most(live) else 0,
        )
    return _move_back(live, change.from_seq)


def _move_back(live: LiveSession, seq: int) -> Undone:
    before, after = live.measure(), size_of(live, live.session.path_to(seq))
    if after > max(_most(live), before.tokens):
        raise TaskFailedError(
            f"not undone: the next request would have ~{after:,} tokens instead of {before.tokens:,}, and the window "
            f"has {live.budget().window:,}; /model changes to a model with a larger one"
        )
    undone = Undone(live.session.append(BranchEntry(parent=seq)), before, after)
    return _tell(live, undone, "Undone: back to before the change", "/compact redo reverts this.")


def _left_by_undo(session: Session) -> _Left | None:
    """Return the leaf that the newest move of the leaf left, if that was an undo and nothing was said since."""
    history = session.everything()
    move = next(newest_of_kind(history, BranchEntry), None)
    if move is None:
        return None
    later = list(since(history, move.seq + 1))
    notices = [entry for entry in later if isinstance(entry, NoticeEntry)]
    is_undo = bool(notices) and notices[0].kind == NOTICE_KIND and notices[0].seq == later[0].seq
    if not is_undo or any(visible_entry(entry) or isinstance(entry, CompactionEntry) for entry in later):
        return None
    before = history.up_to(move.seq - 1)
    return _Left(move.seq, before[-1].seq if len(before) else 0)


# --- sizes and words ---


def _most(live: LiveSession) -> int:
    """Return the tokens up to which automatic compaction waits after an undo: half the way from trigger to window."""
    budget = live.budget()
    return (budget.trigger + budget.window) // 2


def _undone_with(session: Session, change: CompactionEntry | ViewEditEntry) -> list[int]:
    """Return the undo that a compaction was written together with: what it undid holds again without it."""
    seq = seq_before(session, change)
    entry = session.find(seq)
    return [seq] if isinstance(entry, UndoEntry) else []


def _size_without(live: LiveSession, *targets: int) -> int:
    path = live.session.path()
    for target in targets:
        path = path.with_entry(UndoEntry(seq=path[-1].seq + 1, target=target))
    return size_of(live, path)


def _refusal(live: LiveSession, change: Change, before: int, after: int) -> UndoRefusedError:
    """Return what to say when an undo would be over the trigger: the sizes, and what is possible instead."""
    budget = live.budget()
    seq = seq_before(live.session, change)
    earlier = size_of(live, live.session.path().up_to(seq))
    ways = ["/model to one with a larger window and then /compact undo"]
    if 0 < earlier <= budget.trigger:
        ways.append(f"/compact undo fork for a copy that ends before it, without the later turns (~{earlier:,})")
    drop = earlier if seq and earlier <= _most(live) else 0
    if drop:
        ways.append(f"/compact undo drop to go back here, without the later turns (~{drop:,})")
    if isinstance(change, CompactionEntry):
        ways.append("/compact undo up-to to compact again with more kept word for word, up to a message of yours")
    ways.append("/recall WORDS for whatever the summary lacks")
    return UndoRefusedError(
        f"not undone: the next request would have ~{after:,} tokens instead of {before:,}, and automatic compaction "
        f"starts over {budget.trigger:,} (window {budget.window:,}). Possible: {'; '.join(ways)}",
        change,
        drop,
    )


def _tell(live: LiveSession, undone: Undone, what: str, back: str, kind: str = NOTICE_KIND) -> Undone:
    if kind == NOTICE_KIND:
        live.compaction.automatic.note_undone(undone.tokens_after, _most(live))
    else:
        live.compaction.automatic.reset()
    before = undone.before
    sizes = format_change(before.tokens, undone.tokens_after, rough=before.is_rough, short=False)
    live.notify(f"{what} ({sizes} tokens). {back}", kind=kind, keep=True)
    live.publish_usage()
    return undone
