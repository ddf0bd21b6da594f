"""`step`: the one function that changes what the user sees; and the joining of events that only add to the one before.

Every type of event and intent has exactly one handler; that is checked when this module is imported, so a new event
that nobody handles cannot ship. A fast stream, joined, costs a few steps a second.
"""

from __future__ import annotations

from typing import get_args

import msgspec
from msgspec import Struct, field

from tenuto.command.outcome import PassedOn, Shown
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    ChildTranscriptEvent,
    CompactionProgressEvent,
    EarlierEntriesEvent,
    Event,
    SessionOpenedEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.tui.keys.bindings import IntentBase
from tenuto.tui.machine import approval, children, compaction, panel, prompt, queue, quit, reading, session, turn
from tenuto.tui.machine.change import Change, check_handlers, feed, on
from tenuto.tui.state.effects import Effect
from tenuto.tui.state.intents import Intent
from tenuto.tui.state.state import UiState

TOPICS = (approval, children, compaction, panel, prompt, queue, quit, reading, session, turn)
"""The modules that have the handlers."""
FROM_ANY_SESSION = (SessionOpenedEvent, ApprovalRequestedEvent, ApprovalResolvedEvent)
"""Events that count whatever session they come from: a sub-agent's approvals are the user's too."""
for kind in get_args(PassedOn):
    on(kind)(Change.emit)
check_handlers((*get_args(AnyEvent), *IntentBase.__subclasses__(), *get_args(Shown | PassedOn)))


def step(state: UiState, input: AnyEvent | Intent, now: float, columns: int) -> tuple[UiState, list[Effect]]:
    """Take one event or intent in; return the state (the same object, changed) and what is to be done.

    `now` is seconds of the caller's clock (any zero, never backwards), `columns` the screen's width in cells. Events
    of another session than the open one are left out, except approvals and those of a sub-agent that is read.
    """
    own = {"", state.session_id}
    if isinstance(input, Event) and input.session_id not in own and not isinstance(input, FROM_ANY_SESSION):
        return state, children.feed_child(state, input, now, columns)
    return state, feed(state, input, now, columns)


FOREIGN = (
    AssistantMessageEvent
    | AssistantTextDeltaEvent
    | AssistantThinkingDeltaEvent
    | ChildTranscriptEvent
    | EarlierEntriesEvent
    | ShellFinishedEvent
    | ShellOutputEvent
    | ToolCallDeltaEvent
    | ToolOutputEvent
    | ToolResultEvent
    | ToolStartedEvent
)
"""What models and programs say. A text of the user is never masked: it may go back into the editor."""


# --- deltas ---


TextDelta = AssistantTextDeltaEvent | AssistantThinkingDeltaEvent | ToolOutputEvent | ShellOutputEvent
LatestOnly = ToolCallDeltaEvent | CompactionProgressEvent
Key = tuple[type, str, str | int]


class Joined(Struct):
    """Events of one key: the newest, and the texts of all."""

    key: Key
    event: TextDelta | LatestOnly
    texts: list[str] = field(default_factory=list[str])


class DeltaBuffer:
    """Holds deltas back until `drain`. Within an answer the order of text, thinking and calls is kept."""

    def __init__(self) -> None:
        self._joined: list[Joined] = []

    def __bool__(self) -> bool:
        """Return whether anything is held back."""
        return bool(self._joined)

    def add(self, event: AnyEvent) -> bool:
        """Take a delta; `False` for every other event, which must not overtake what is held back."""
        if not isinstance(event, TextDelta | LatestOnly):
            return False
        key = key_of(event)
        joined = self._find(event, key)
        if joined is None:
            joined = Joined(key, event)
            self._joined.append(joined)
        elif isinstance(event, ToolCallDeltaEvent) and isinstance(joined.event, ToolCallDeltaEvent) and not event.name:
            joined.event = msgspec.structs.replace(event, name=joined.event.name)
        else:
            joined.event = event
        if isinstance(event, TextDelta):
            joined.texts.append(event.text)
        return True

    def drain(self) -> list[AnyEvent]:
        """Return what was held back, joined, and hold nothing back any more."""
        drained: list[AnyEvent] = []
        for joined in self._joined:
            if isinstance(joined.event, TextDelta) and len(joined.texts) > 1:
                drained.append(msgspec.structs.replace(joined.event, text="".join(joined.texts)))
            else:
                drained.append(joined.event)
        self._joined = []
        return drained

    def _find(self, event: TextDelta | LatestOnly, key: Key) -> Joined | None:
        """Return what the event can join: outputs of different calls may pass each other, parts of an answer not."""
        if isinstance(event, ToolOutputEvent | ShellOutputEvent):
            return next((joined for joined in self._joined if joined.key == key), None)
        return self._joined[-1] if self._joined and self._joined[-1].key == key else None


def key_of(event: TextDelta | LatestOnly) -> Key:
    """Return what two events must share to be joined."""
    match event:
        case ToolOutputEvent():
            return type(event), event.session_id, event.call_id
        case ToolCallDeltaEvent():
            return type(event), event.session_id, event.index
        case _:
            return type(event), event.session_id, event.submission_id
