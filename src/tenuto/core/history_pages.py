"""What a resumed session shows at once, and what of it comes when the user goes there (DESIGN section 3, "Cost")."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.core.live import LiveSession
from tenuto.core.replay import replay
from tenuto.protocol.event import AnyEvent, EarlierEntriesEvent
from tenuto.protocol.message import AssistantMessage, HistoryEvent, UserMessage
from tenuto.protocol.operation import ShowEarlierOperation
from tenuto.session.path import EntryPath

SHOWN_ENTRIES = 400
"""Entries that are replayed at a time; some at an end are left out so that it begins with a turn, or ends with one."""


def recent_events(live: LiveSession) -> list[AnyEvent]:
    """Return the events of the end of the path; the first says how much is before it, if anything is."""
    path = live.session.path()
    begin = _begin(path, 0, len(path))
    shown = path[begin:]
    events: list[AnyEvent] = list(replay(live.id, shown))
    if begin:
        events.insert(0, EarlierEntriesEvent(session_id=live.id, remaining=begin, before=shown[0].seq))
    return events


def earlier_events(live: LiveSession, question: ShowEarlierOperation) -> EarlierEntriesEvent:
    """Return what was asked for. Raises `SessionUnreadable`."""
    path = live.session.path().up_to(question.before - 1)
    first = len(path.up_to(question.after)) if question.after else 0
    if question.at:
        begin = _begin_of_turn(path, first, len(path.up_to(question.at)))
        end = _end(path, begin, len(path.up_to(question.at)))
    else:
        begin, end = _begin(path, first, len(path)), len(path)
    shown = path[begin:end]
    return EarlierEntriesEvent(
        session_id=live.id,
        remaining=begin - first,
        before=shown[0].seq if shown else 0,
        last=shown[-1].seq if shown else 0,
        later=len(path) - end,
        upto=question.before,
        count=len(shown),
        events=tuple(replay(live.id, shown)),
    )


def _begin(path: EntryPath, first: int, end: int) -> int:
    """Return where the last `SHOWN_ENTRIES` of a stretch begin: with a turn, or a step, of their older half."""
    begin = max(first, end - SHOWN_ENTRIES)
    if begin == first:
        return first
    return begin + _first_boundary(path[begin : begin + SHOWN_ENTRIES // 2])


def _begin_of_turn(path: EntryPath, first: int, end: int) -> int:
    """Return where the turn of the entry before `end` begins; if that is far back, where one of its steps does."""
    begin = max(first, end - SHOWN_ENTRIES // 2)
    entries = path[begin:end]
    turns = [index for index, entry in enumerate(entries) if isinstance(entry, UserMessage)]
    if turns:
        return begin + turns[-1]
    return first if begin == first else begin + _first_boundary(entries)


def _end(path: EntryPath, begin: int, least: int) -> int:
    """Return where a part ends that begins at `begin` and goes to `least` at least: before a turn, or before a step."""
    end = min(len(path), begin + SHOWN_ENTRIES)
    if end == len(path):
        return end
    newer = path[least:end]
    for kind in (UserMessage, AssistantMessage):
        for index in range(len(newer) - 1, -1, -1):
            if isinstance(newer[index], kind) and least + index > begin:
                return least + index
    return end


def _first_boundary(entries: Sequence[HistoryEvent]) -> int:
    """Return where the first turn begins, or the first step if no turn does: calls stay with their results."""
    for kind in (UserMessage, AssistantMessage):
        for index, entry in enumerate(entries):
            if isinstance(entry, kind):
                return index
    return 0
