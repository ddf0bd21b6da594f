"""What the model has yet to be told of pins (DESIGN sections 3 and 6).

A compaction copies the pins into its `replacement`. Everything else (a new pin, one that was taken back, an undone
compaction, one that somebody else's strategy made) is told by developer messages in the gap before the next request.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.protocol.entry import PinEntry
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, SystemMessage
from tenuto.session.session import Session
from tenuto.session.view.tree import of_kind
from tenuto.text.bounding import shorten
from tenuto.text.estimate import estimate_text

_PINNED, _TAKEN_BACK = "pin:", "unpin:"
_OPENING, _CLOSING = "\n<pins>\n", "\n</pins>"
_TAKEN_BACK_CHARS = 300
_SENT_SHARE = 10
"""Of the window, at most this part is spent on pins: a model with a smaller window must stay usable."""


def fitting_pins(pins: Sequence[PinEntry], window: int) -> tuple[PinEntry, ...]:
    """Return the pins that can be sent in a window of so many tokens: all, or where they are too many the newest."""
    room = window // _SENT_SHARE
    kept: list[PinEntry] = []
    for entry in reversed(pins):
        tokens = estimate_text(entry.text)
        if tokens <= room:
            kept.append(entry)
            room -= tokens
    return tuple(reversed(kept))


class PinNotes:
    """Compares what is pinned with what is sent; looks at the view only when either may have changed."""

    def __init__(self) -> None:
        self._compared: tuple[tuple[PinEntry, ...], CompactionEntry | None, int] | None = None

    def due(self, session: Session, window: int) -> list[DeveloperMessage] | None:
        """Return what has to be told before the next request, to a model with that window; `None`: nothing changed."""
        pins, compaction = session.state.pins, session.reading.compaction
        known = self._compared
        if known is not None and known[0] is pins and known[1] is compaction and known[2] == window:
            return None
        self._compared = (pins, compaction, window)
        told = _told(session)
        active = {entry.text for entry in pins}
        notes = [_pinned(entry) for entry in fitting_pins(pins, window) if not told.get(entry.text)]
        ended = (entry for entry in _all_pins(session) if told.pop(entry.text, False) and entry.text not in active)
        return notes + [_taken_back(entry) for entry in ended]


def _told(session: Session) -> dict[str, bool]:
    """Return by text what the view says of pins: that one holds, or that it was taken back. The newest word counts."""
    told: dict[str, bool] = {}
    for message in session.get_llm_history():
        if isinstance(message, SystemMessage) and message.seq == 0:
            block = _pins_block(message.text)
            if block:
                told.update((entry.text, True) for entry in _all_pins(session) if entry.text in block)
        elif isinstance(message, DeveloperMessage) and message.kind.startswith((_PINNED, _TAKEN_BACK)):
            entry = session.find(int(message.kind.partition(":")[2]))
            if isinstance(entry, PinEntry):
                told[entry.text] = message.kind.startswith(_PINNED)
    return told


def _pins_block(text: str) -> str:
    """Return the part of a compaction's message that has the pins."""
    after = text.partition("</summary>")[2]
    start, end = after.find(_OPENING), after.rfind(_CLOSING)
    return after[start + len(_OPENING) : end] if 0 <= start < end else ""


def _all_pins(session: Session) -> list[PinEntry]:
    return list(of_kind(session.path(), PinEntry))


def _pinned(entry: PinEntry) -> DeveloperMessage:
    text = f"The user pinned this; it holds until they take it back:\n<pin>\n{entry.text}\n</pin>"
    return DeveloperMessage(text=text, kind=f"{_PINNED}{entry.seq}")


def _taken_back(entry: PinEntry) -> DeveloperMessage:
    beginning = shorten(entry.text, _TAKEN_BACK_CHARS)
    text = f"The user took back this pin; it no longer holds:\n<pin>\n{beginning}\n</pin>"
    return DeveloperMessage(text=text, kind=f"{_TAKEN_BACK}{entry.seq}")
