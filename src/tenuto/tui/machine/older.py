"""Asking for the parts of the session that are not loaded."""

from __future__ import annotations

from tenuto.protocol.operation import ShowEarlierOperation
from tenuto.tui.effects import Submit
from tenuto.tui.machine.change import Change


def ask_for_part(change: Change, item_id: int, at: int = 0) -> None:
    """Ask, once, for a part of a gap: what begins with the turn of the entry `at`, else its newest end."""
    gap = change.state.gaps.get(item_id)
    if gap is None or gap.asked:
        return
    gap.asked = True
    session_id = change.state.session_id
    change.emit(Submit(ShowEarlierOperation(session_id=session_id, before=gap.before, after=gap.after, at=at)))
