"""Asking for the part of the session that is not loaded yet."""

from __future__ import annotations

from tenuto.protocol.operation import ShowEarlierOperation
from tenuto.tui.effects import Submit
from tenuto.tui.machine.change import Change


def ask_for_older(change: Change) -> None:
    """Ask, once, for what comes before the first item."""
    state = change.state
    if state.earlier:
        change.emit(Submit(ShowEarlierOperation(session_id=state.session_id, before=state.earlier)))
        state.earlier = 0
