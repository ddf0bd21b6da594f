"""Edits of the view outside a compaction: oversized results shortened, images left out (DESIGN section 6, rung 6).

Nothing is awaited, so there is nothing to cancel. The front-ends are told as of any compaction, and like one it can be
undone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import msgspec

from tenuto.compaction.images import drop_oldest_images
from tenuto.compaction.plan.truncation import (
    RUNG,
    session_likely_has_oversized_tool_results,
    truncate_oversized_tool_results_in_messages,
)
from tenuto.compaction.ways.validate import CurrentContext, evaluate, find_flaw
from tenuto.core.state.live import LiveSession
from tenuto.core.transcript import compaction_end
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionStartEvent
from tenuto.protocol.message import HistoryEvent, Message
from tenuto.protocol.operation import CompactionReason
from tenuto.session.view.projection import compaction_of_edits

IMAGES_RUNG = "images"
NOTHING_OVERSIZED = "no oversized tool results"


class TruncationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of shortening the oversized results of a session; `reason` says why nothing did."""

    truncated: bool
    truncated_count: int = 0
    reason: str = ""
    entry: ViewEditEntry | None = None


class EditableSession(Protocol):
    """The part of a session that its results are shortened through."""

    def get_llm_history(self) -> list[Message]:
        """Return the live view."""
        ...

    def find(self, seq: int) -> HistoryEvent | None:
        """Return the entry with this seq."""
        ...

    def append(self, entry: ViewEditEntry) -> ViewEditEntry:
        """Write an entry and return it as stored."""
        ...


def truncate_oversized_tool_results_in_session(
    session: EditableSession,
    context_window_tokens: int,
    *,
    current: CurrentContext | None = None,
    reason: CompactionReason = "overflow",
    untouched: Collection[int] = (),
) -> TruncationResult:
    """Shorten every result over the window's ceiling by one `view_edit` entry; the history stays as it is.

    `current` is the context as it is now, for the sizes that the entry tells (without it: none).
    """
    found = truncate_oversized_tool_results_in_messages(
        session.get_llm_history(), context_window_tokens, original=session.find, untouched=untouched
    )
    if not found.edits:
        return TruncationResult(truncated=False, reason=NOTHING_OVERSIZED)
    entry = ViewEditEntry(edits=found.edits, reason=reason, rung=RUNG)
    if current is not None:
        proposal = evaluate(CompactionOutcome(edits=found.edits, rung=RUNG), current)
        flaw = find_flaw(proposal, current)
        if flaw:
            return TruncationResult(truncated=False, reason=flaw)
        entry = msgspec.structs.replace(
            entry,
            tokens_before=proposal.tokens_before,
            tokens_after=proposal.tokens_after,
            rough=proposal.rough,
            trigger=current.budget.window,  # it makes a request possible, and a compaction may follow
        )
    return TruncationResult(truncated=True, truncated_count=len(found.edits), entry=session.append(entry))


def shorten_oversized_results(
    live: LiveSession, reason: CompactionReason, submission_id: str, *, untouched: Collection[int] = ()
) -> bool:
    """Shorten every result over the ceiling of the window by one edit of the view; say whether there was any."""
    window = live.budget().window
    if not session_likely_has_oversized_tool_results(live.session.get_llm_history(), window):
        return False
    done = truncate_oversized_tool_results_in_session(
        live.session, window, current=_current(live), reason=reason, untouched=untouched
    )
    if done.entry is not None:
        _announce(live, done.entry, submission_id)
    return done.truncated


def leave_out_images(live: LiveSession, most_bytes: int, submission_id: str, *, since: int = 0) -> bool:
    """Leave the oldest images out of the view until they take at most so many bytes; say whether any was.

    Only entries from the seq `since` on are looked at.
    """
    session = live.session
    view = [message for message in session.get_llm_history() if message.seq >= since]
    edits = drop_oldest_images(view, most_bytes, original=session.find, in_effect=session.reading.edits)
    if not edits:
        return False
    proposal = evaluate(CompactionOutcome(edits=edits, rung=IMAGES_RUNG), _current(live))
    entry = ViewEditEntry(
        edits=edits,
        reason="overflow",
        rung=IMAGES_RUNG,
        tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after,
        rough=proposal.rough,
    )
    _announce(live, session.append(entry), submission_id)
    return True


def _current(live: LiveSession) -> CurrentContext:
    return CurrentContext(
        path=live.session.path(),
        view=live.session.get_llm_history(),
        size=live.measure(),
        budget=live.budget(),
        meter=live.meter,
        model_id=live.facts.id,
    )


def _announce(live: LiveSession, entry: ViewEditEntry, submission_id: str) -> None:
    shown = compaction_of_edits(entry)
    live.bus.publish(CompactionStartEvent(session_id=live.id, submission_id=submission_id, reason=shown.reason))
    live.bus.publish(compaction_end(live.id, shown, submission_id, will_retry=shown.reason == "overflow"))
    live.publish_usage()
