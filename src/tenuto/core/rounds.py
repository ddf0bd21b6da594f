"""The word of caution when a session has been summarised many times (seed 002)."""

from __future__ import annotations

from tenuto.core.live import LiveSession
from tenuto.protocol.message import CompactionEntry
from tenuto.session.path import find_on
from tenuto.session.projection import cancelled_by_undo

FIRST_ROUND_TOLD = 5


def tell_rounds(live: LiveSession, entry: CompactionEntry) -> None:
    """Say from the fifth summary on what many of them cost; once while the session is open."""
    if live.rounds_told or not entry.first_kept_index:
        return
    path = live.session.path()
    undone = sum(isinstance(find_on(path, seq), CompactionEntry) for seq in cancelled_by_undo(path))
    rounds = live.session.state.compactions - undone
    if rounds < FIRST_ROUND_TOLD:
        return
    live.rounds_told = True
    live.notify(
        f"This session has been summarised {rounds} times, and each summary of a summary is a little less exact. For "
        "another task /new starts afresh and /fork goes on in a copy; /recall WORDS finds what was said word for word, "
        "and so does the model."
    )
