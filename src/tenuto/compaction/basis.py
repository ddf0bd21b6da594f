"""What the next request starts from: the last count that can be believed, and the thinking that goes along. Pure.

Both are told by *position* in the log, never by time: what stands behind a change of the view was sent with it, and
what stands before an undone change is sent as it was again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypeGuard

import msgspec

from tenuto.compaction.counted import is_counted
from tenuto.protocol.entry import BranchEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, SystemMessage
from tenuto.session.path import find_on, newest_of_kind
from tenuto.session.projection import cancelled_by_undo, standing_marks


class SentThinking(msgspec.Struct, frozen=True):
    """Which answers of a view have their thinking sent along with the next request to a model.

    Thinking holds for what was sent before it. In each of the `broken` ranges of seqs (both ends excluded) that was
    something else than it is now.
    """

    model_id: str = ""
    broken: tuple[tuple[int, int], ...] = ()

    def goes_along(self, message: AssistantMessage) -> bool:
        """Say whether the thinking of an answer is sent."""
        return message.model == self.model_id and not any(low < message.seq < high for low, high in self.broken)

    def before(self, seq: int) -> SentThinking:
        """Return the same for a view that is changed from the entry `seq` on."""
        return SentThinking(self.model_id, (*self.broken, (seq - 1, sys.maxsize)))


class Basis(msgspec.Struct, frozen=True):
    """What the next request starts from: the answer whose usage is believed, and which thinking goes along.

    `dead` are the ranges of seqs (both ends excluded) with answers to requests that do not begin the next one.
    """

    anchor: AssistantMessage | None = None
    thinking: SentThinking = SentThinking()
    dead: tuple[tuple[int, int], ...] = ()


def basis_of(path: Sequence[HistoryEvent], model_id: str) -> Basis:
    """Look through a whole path, back to the newest entry behind which nothing from before it is sent as it was.

    An undo gives back what was sent before its target was written: only what came between the two is of no use.
    """
    dead: list[tuple[int, int]] = []
    broken: list[tuple[int, int]] = []
    floor = _view_start(path)
    for mark in standing_marks(path):
        if mark.seq <= floor:
            break
        match mark:
            case CompactionEntry():
                floor = max(floor, mark.seq)
                break
            case ViewEditEntry():
                dead.append((0, mark.seq))
                broken.append((min((edit.target for edit in mark.edits), default=0), mark.seq))
            case UndoEntry():
                dead.append((_start_of_change(path, mark.target), mark.seq))
                broken.append(dead[-1])
    if floor:
        dead.append((0, floor))
        broken.append((0, floor))
    lowest = max((high for low, high in dead if low == 0), default=0)
    anchor: AssistantMessage | None = None
    for entry in newest_of_kind(path, AssistantMessage):
        if entry.seq <= lowest:
            break
        if is_believed(entry, model_id) and not any(low < entry.seq < high for low, high in dead):
            anchor = entry
            break
    return Basis(anchor, SentThinking(model_id, tuple(broken)), tuple(dead))


def _view_start(path: Sequence[HistoryEvent]) -> int:
    """Return the seq of the newest system prompt or branch of a path; what was sent before it is not sent so again."""
    cancelled = cancelled_by_undo(path)
    gone = (
        {
            entry.system_seq
            for entry in newest_of_kind(path, CompactionEntry)
            if entry.seq in cancelled and entry.system_seq
        }
        if cancelled
        else set[int]()
    )
    for entry in newest_of_kind(path, SystemMessage, BranchEntry):
        if entry.seq not in gone:
            return entry.seq
    return 0


def _start_of_change(path: Sequence[HistoryEvent], seq: int) -> int:
    """Return the seq before which nothing was changed by the entry `seq`: its own, or that of its system prompt."""
    entry = find_on(path, seq)
    return entry.system_seq or seq if isinstance(entry, CompactionEntry) else seq


def is_believed(entry: HistoryEvent, model_id: str) -> TypeGuard[AssistantMessage]:
    """Say whether an entry is an answer of this model whose request was counted."""
    return isinstance(entry, AssistantMessage) and entry.model == model_id and is_counted(entry)
