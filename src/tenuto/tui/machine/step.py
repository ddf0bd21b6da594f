"""`step`: the one function that changes what the user sees.

Every type of event and intent has exactly one handler; that is checked when this module is imported, so a new event
that nobody handles cannot ship.
"""

from __future__ import annotations

from typing import get_args

from tenuto.command.outcome import PassedOn, Shown
from tenuto.protocol.event import AnyEvent, ApprovalRequestedEvent, ApprovalResolvedEvent, Event, SessionOpenedEvent
from tenuto.tui.effects import Effect
from tenuto.tui.keys.bindings import IntentBase
from tenuto.tui.machine import (
    approval,
    block,
    compaction,
    draft,
    earlier,
    history,
    keys,
    panel,
    prompt,
    queue,
    quit,
    search,
    session,
    theme,
    tick,
    tools,
    turn,
)
from tenuto.tui.machine.change import Change, check_handlers, feed, on
from tenuto.tui.machine.intents import Intent
from tenuto.tui.machine.state import UiState

TOPICS = (
    turn,
    tools,
    approval,
    queue,
    compaction,
    session,
    earlier,
    search,
    block,
    quit,
    panel,
    prompt,
    draft,
    history,
    keys,
    theme,
    tick,
)
"""The modules that have the handlers."""
FROM_ANY_SESSION = (SessionOpenedEvent, ApprovalRequestedEvent, ApprovalResolvedEvent)
"""Events that count whatever session they come from: a sub-agent's approvals are the user's too."""
for kind in get_args(PassedOn):
    on(kind)(Change.emit)
check_handlers((*get_args(AnyEvent), *IntentBase.__subclasses__(), *get_args(Shown | PassedOn)))


def step(state: UiState, input: AnyEvent | Intent, now: float, columns: int) -> tuple[UiState, list[Effect]]:
    """Take one event or intent in; return the state (the same object, changed) and what is to be done.

    `now` is seconds of the caller's clock (any zero, never backwards), `columns` the screen's width in cells. Events
    of another session than the open one are left out, except approvals.
    """
    foreign = isinstance(input, Event) and input.session_id not in {"", state.session_id}
    if foreign and not isinstance(input, FROM_ANY_SESSION):
        return state, []
    return state, feed(state, input, now, columns)
