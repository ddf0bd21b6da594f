"""What a resumed session shows at once, and what of it comes when the person scrolls up (DESIGN section 3, "Cost")."""

from __future__ import annotations

from tenuto.core.live import LiveSession
from tenuto.core.replay import replay
from tenuto.protocol.event import AnyEvent, EarlierEntriesEvent
from tenuto.protocol.message import HistoryEvent, UserMessage

SHOWN_ENTRIES = 400
"""Entries that are replayed at a time; the oldest ones are left out so that the first shown begins a turn."""


def recent_events(live: LiveSession) -> list[AnyEvent]:
    """Return the events of the end of the path; the first says how much is before it, if anything is."""
    path = live.session.path()
    shown = _last_turns(path[-SHOWN_ENTRIES:], len(path))
    before = len(path) - len(shown)
    events: list[AnyEvent] = list(replay(live.id, shown))
    if before:
        events.insert(0, EarlierEntriesEvent(session_id=live.id, remaining=before, before=shown[0].seq))
    return events


def earlier_events(live: LiveSession, before: int) -> EarlierEntriesEvent:
    """Return what comes on the path right before the entry `before`."""
    path = live.session.path().up_to(before - 1)
    shown = _last_turns(path[-SHOWN_ENTRIES:], len(path))
    return EarlierEntriesEvent(
        session_id=live.id,
        remaining=len(path) - len(shown),
        before=shown[0].seq if shown else 0,
        events=tuple(replay(live.id, shown)),
    )


def _last_turns(entries: list[HistoryEvent], total: int) -> list[HistoryEvent]:
    """Leave out what comes before the first turn that begins in the older half of the entries."""
    if len(entries) == total:
        return entries
    for index in range(len(entries) // 2):
        if isinstance(entries[index], UserMessage):
            return entries[index:]
    return entries
