"""What the user said in a session, remembered from one compaction to the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile

import msgspec

from tenuto.compaction.images import image_placeholder
from tenuto.protocol.message import HistoryEvent, UserMessage
from tenuto.protocol.part import ContentPart, TextPart
from tenuto.session.path import find_on, newest_of_kind

PERSON_ORIGINS = frozenset({"typed", "command"})
MAX_TEXTS = 5_000
"""So many of the newest texts are looked at; a budget of 20 000 tokens cannot hold more."""
MAX_REMEMBERED = 8_000_000
"""Characters; of a session with more than that the log is read again."""


class Said(msgspec.Struct, frozen=True):
    """A text of the user and the entry that has it."""

    seq: int
    text: str


class UserTexts:
    """The user's texts on a path. What was read once is not read again: entries never change."""

    def __init__(self) -> None:
        self._last: HistoryEvent | None = None
        self._said: tuple[Said, ...] = ()

    def of(self, path: Sequence[HistoryEvent]) -> tuple[Said, ...]:
        """Return the newest texts of the user on a path, in time order."""
        known = self._known(path)
        last = self._last.seq if known and self._last is not None else 0
        newer = takewhile(lambda entry: entry.seq > last, newest_of_kind(path, UserMessage))
        found = islice((entry for entry in newer if entry.origin in PERSON_ORIGINS), MAX_TEXTS)
        said = (*known, *(Said(entry.seq, plain_text(entry)) for entry in reversed(list(found))))[-MAX_TEXTS:]
        if path and sum(len(one.text) for one in said) <= MAX_REMEMBERED:
            self._last, self._said = path[-1], said
        return said

    def _known(self, path: Sequence[HistoryEvent]) -> tuple[Said, ...]:
        """Return what is remembered, if the path begins with that: an entry has one way to the root."""
        last = self._last
        return self._said if last is not None and find_on(path, last.seq) == last else ()


def plain_text(message: UserMessage) -> str:
    """Return a message as text, with placeholders for its images."""
    return "\n".join(_part_text(part) for part in message.parts)


def _part_text(part: ContentPart) -> str:
    return part.text if isinstance(part, TextPart) else image_placeholder(part)
