"""What a reader is shown of a stretch of history: answers with the results of their calls, and the entries beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tenuto.protocol.entry import UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import ToolCallPart
from tenuto.session.describe import Place, is_shown
from tenuto.session.view.projection import compaction_of_edits, standing_marks


class Call(msgspec.Struct, kw_only=True):
    """A call and its result, `None` when there is none."""

    part: ToolCallPart
    result: ToolResultMessage | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a model and what its calls came to, in the order of the calls."""

    message: AssistantMessage
    calls: tuple[Call, ...] = ()

    @property
    def seq(self) -> int:
        """The answer's own seq."""
        return self.message.seq

    @property
    def ts(self) -> float:
        """When it was complete, in seconds since the epoch."""
        return self.message.ts


Item = Answer | HistoryEvent


def arrange(entries: Iterable[HistoryEvent]) -> list[Item]:
    """Return the items of a path or a piece of one, in order; a result stands with its call.

    A compaction that only edits the view is shown as one. What only keeps state (queue, titles, labels, todo, usage)
    is left out: it shows in the page's own parts.
    """
    items: list[Item] = []
    waiting: dict[str, list[Call]] = {}
    for entry in entries:
        match entry:
            case AssistantMessage():
                calls = tuple(Call(part=part) for part in entry.parts if isinstance(part, ToolCallPart))
                waiting = {}
                for call in calls:
                    waiting.setdefault(call.part.id, []).append(call)
                items.append(Answer(message=entry, calls=calls))
            case ToolResultMessage() if waiting.get(entry.call_id):
                waiting[entry.call_id].pop(0).result = entry
            case ViewEditEntry() if entry.rung:
                items.append(compaction_of_edits(entry))
            case _ if is_shown(entry, Place.EXPORT):
                items.append(entry)
            case _:
                continue
    return items


def find_undone(path: Sequence[HistoryEvent]) -> frozenset[int]:
    """Return the seqs of the compactions, view edits and undos that an undo on the path took back."""
    standing = {mark.seq for mark in standing_marks(path)}
    marks = (entry.seq for entry in path if isinstance(entry, (CompactionEntry, ViewEditEntry, UndoEntry)))
    return frozenset(seq for seq in marks if seq not in standing)
