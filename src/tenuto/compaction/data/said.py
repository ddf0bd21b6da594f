"""What the user said in a session, remembered from one compaction to the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

import msgspec

from tenuto.compaction.images import image_placeholder
from tenuto.protocol.entry import USER_ORIGINS
from tenuto.protocol.message import HistoryEvent, UserMessage
from tenuto.protocol.part import ContentPart, TextPart
from tenuto.session.view.tree import find_on, newest_of_kind

MAX_TEXTS = 5_000
"""So many of the newest texts are looked at; a budget of 20 000 tokens cannot hold more."""
MAX_REMEMBERED = 8_000_000
"""Characters; of a session with more than that the log is read again."""


SLICE = 0.01
"""Seconds of reading after which others run."""


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
        return self._with(known, list(self._newer(path, known)), path[-1] if path else None)

    async def read(self, path: Sequence[HistoryEvent]) -> None:
        """Read what `of` will return, and let others run meanwhile: of a long log that takes seconds."""
        known, last = self._known(path), path[-1] if path else None
        found: list[UserMessage] = []
        begun = time.monotonic()
        for entry in self._newer(path, known):
            found.append(entry)
            if time.monotonic() - begun >= SLICE:
                await asyncio.sleep(0)
                begun = time.monotonic()
        self._with(known, found, last)

    def _newer(self, path: Sequence[HistoryEvent], known: Sequence[Said]) -> Iterator[UserMessage]:
        """Yield the messages that are not known yet, the newest first."""
        last = self._last.seq if known and self._last is not None else 0
        newer = takewhile(lambda entry: entry.seq > last, newest_of_kind(path, UserMessage))
        return islice((entry for entry in newer if entry.origin in USER_ORIGINS), MAX_TEXTS)

    def _with(
        self, known: Sequence[Said], newest_first: Sequence[UserMessage], last: HistoryEvent | None
    ) -> tuple[Said, ...]:
        """Return what is known with what was read up to the entry `last`, and remember it."""
        said = (*known, *(Said(entry.seq, plain_text(entry)) for entry in reversed(newest_first)))[-MAX_TEXTS:]
        if last is not None and sum(len(one.text) for one in said) <= MAX_REMEMBERED:
            self._last, self._said = last, said
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
