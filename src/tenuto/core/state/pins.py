"""Pins: texts of the user that stay word for word through any number of compactions (DESIGN section 6).

How the model learns of them: `pin_notes.py`, and a compaction's `replacement` (`compaction/summary/view.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.core.errors import UsageError
from tenuto.core.state.live import LiveSession
from tenuto.core.state.pin_notes import fitting_pins
from tenuto.protocol.entry import USER_ORIGINS, PinEntry, UnpinEntry
from tenuto.protocol.message import AssistantMessage, UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.session import Session
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.estimate import estimate_text

PIN_SHARE = 20
"""All pins together have at most this part of the window: one twentieth, 5 %."""


def pin(live: LiveSession, text: str = "", target: int = 0) -> PinEntry:
    """Pin a text, the message with the seq `target`, or without either the last message of the user.

    Raises `UsageError` when it cannot be kept.
    """
    if target or not text.strip():
        message = _message(live.session, target) if target else _last_message(live.session)
        text, target = text_of(message.parts), message.seq
    text = text.strip()
    pins = live.session.state.pins
    if any(entry.text == text for entry in pins):
        raise UsageError("that is pinned already; /pins lists what is")
    _check_room(live, text, pins)
    return live.session.append(PinEntry(text=text, target=target))


def _message(session: Session, seq: int) -> UserMessage | AssistantMessage:
    """Return a message of the active path: what the user or the model wrote."""
    entry = session.find(seq)
    is_there = any(on_path is entry for on_path in session.path())
    if is_there and isinstance(entry, UserMessage | AssistantMessage) and text_of(entry.parts).strip():
        return entry
    raise UsageError(f"entry {seq} is no message with a text; /recall WORDS finds the number of one")


def _last_message(session: Session) -> UserMessage:
    for entry in newest_of_kind(session.path(), UserMessage):
        if entry.origin in USER_ORIGINS and text_of(entry.parts).strip():
            return entry
    raise UsageError("there is no message to pin yet; /pin TEXT pins a text")


def _check_room(live: LiveSession, text: str, pins: Iterable[PinEntry]) -> None:
    budget = live.budget()
    limit = budget.window // PIN_SHARE
    new, present = estimate_text(text), pinned_tokens(pins)
    if new + present > limit:
        raise UsageError(
            f"not pinned: the text has about {new:,} tokens and the pins so far {present:,}; together they may have "
            f"{limit:,}, 5 % of the window. Pin a shorter text, or take one back with /unpin"
        )


def pinned_tokens(pins: Iterable[PinEntry]) -> int:
    """Return the estimated tokens of all pins together."""
    return sum(estimate_text(entry.text) for entry in pins)


def unpin(session: Session, number: int) -> PinEntry:
    """Take back the pin with that number, counted from 1 as `/pins` shows them. Raises `UsageError`."""
    pins = session.state.pins
    if not 1 <= number <= len(pins):
        raise UsageError(f"there is no pin {number}; /pins shows {len(pins)}")
    entry = pins[number - 1]
    session.append(UnpinEntry(target=entry.seq))
    return entry


def tell_pins(live: LiveSession) -> None:
    """Put into the history what the model has yet to be told of pins; tell the user of those that do not fit."""
    window = live.budget().window
    notes = live.reminders.pins.due(live.session, window)
    if notes is None:
        return
    for note in notes:
        live.session.append(note)
    pins = live.session.state.pins
    left_out = len(pins) - len(fitting_pins(pins, window))
    if left_out:
        live.notify(
            f"{left_out} of {len(pins)} pins are not sent: they are too long for this model's window of {window:,} "
            "tokens. A model with a larger one gets them all; /pins shows them.",
            "warning",
        )
