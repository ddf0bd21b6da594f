"""What a view has to pass before a request is made of it: no result is longer than the window's ceiling (seed 001).

A result is bounded when it is made, by the window of that moment (`tool/output.py`). After a switch to a smaller one,
or in a session that came from elsewhere, older ones can be over the ceiling: one edit of the view shortens them before
the first request that would send them. Between two steps with the same window this costs a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.core.state.live import LiveSession
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.session.view.path import find_on
from tenuto.session.view.projection import cancelled_by_undo


def pass_door(live: LiveSession, submission_id: str = "") -> None:
    """Shorten what is over the ceiling if the window is smaller than at the last request, or nobody has looked yet.

    Does nothing where automatic compaction is switched off (R-015). What the user undid stays undone.
    """
    window, checked = live.budget().window, live.compaction.checked_window
    live.compaction.checked_window = window
    if (checked and window >= checked) or not live.settings.compaction.enabled:
        return
    if not any(isinstance(message, ToolResultMessage) for message in live.session.get_llm_history()):
        return
    from tenuto.core.compacting.view_edits import shorten_oversized_results  # 2 ms that a new session need not wait for

    path = live.session.path()
    reason = "model_switch" if _last_model(path) not in ("", live.facts.id) else "threshold"
    shorten_oversized_results(live, reason, submission_id, untouched=_undone_targets(path))


def _last_model(path: Sequence[HistoryEvent]) -> str:
    return next((entry.model for entry in reversed(path) if isinstance(entry, AssistantMessage)), "")


def _undone_targets(path: Sequence[HistoryEvent]) -> set[int]:
    """Return the results whose shortening the user undid."""
    undone = (find_on(path, seq) for seq in cancelled_by_undo(path))
    return {edit.target for entry in undone if isinstance(entry, ViewEditEntry) for edit in entry.edits}
