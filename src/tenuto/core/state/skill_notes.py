"""What the model has yet to be told of loaded skills: they stand in the view word for word as long as they hold.

A loaded skill is told in the gap before the next request. A compaction copies those that have room into its
`replacement`; whatever else takes one out of the view (a foreign strategy, an undo, going back) has it told again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from tenuto.protocol.entry import SKILL_KIND, ApprovalEntry, SkillEntry
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, SystemMessage
from tenuto.session.session import Session
from tenuto.text.estimate import estimate_text

MAX_TOKENS = 25_000
"""What all loaded skills may have in the view together."""
UNLOADED = "The user has unloaded the skill {name}: it holds no longer."
_SHARE = 6
"""Of the window, at most this part is spent on them."""


def room_for_skills(window: int) -> int:
    """Return the estimated tokens that loaded skills may have in a window of so many."""
    return min(MAX_TOKENS, window // _SHARE)


def fitting_skills(skills: Sequence[SkillEntry], window: int) -> tuple[SkillEntry, ...]:
    """Return the loaded skills that have room in the view: all, or where they are too many the newest."""
    room = room_for_skills(window)
    kept: list[SkillEntry] = []
    for entry in reversed(skills):
        tokens = estimate_text(entry.text)
        if tokens <= room:
            kept.append(entry)
            room -= tokens
    return tuple(reversed(kept))


def readable_skills(skills: Sequence[SkillEntry]) -> Iterator[ApprovalEntry]:
    """Yield what lets the files of loaded skills be read, wherever they lie: the model was told to read them.

    Where a link in such a folder leads is judged by itself.
    """
    for entry in skills:
        if entry.folder:
            yield ApprovalEntry(tool="read", pattern=f"{os.path.realpath(entry.folder)}/**")


class SkillNotes:
    """Compares what is loaded with what is sent; looks at the view only when either may have changed."""

    def __init__(self) -> None:
        self._compared: tuple[tuple[SkillEntry, ...], CompactionEntry | None, int, tuple[SkillEntry, ...]] | None = None

    def due(self, session: Session, window: int) -> list[DeveloperMessage]:
        """Return what has to be told before the next request, to a model with that window."""
        skills, unloaded, compaction = session.state.skills, session.state.unloaded, session.reading.compaction
        known = self._compared
        if known is not None and known[0] is skills and known[1] is compaction and known[2:] == (window, unloaded):
            return []
        self._compared = (skills, compaction, window, unloaded)
        fitting = fitting_skills(skills, window)
        if not fitting and not unloaded:
            return []
        view = session.get_llm_history()
        told = {message.kind for message in view if isinstance(message, DeveloperMessage)}
        frozen = [message.text for message in view if isinstance(message, SystemMessage) and message.seq == 0]
        return [
            DeveloperMessage(text=entry.text, kind=f"{SKILL_KIND}{entry.seq}")
            for entry in fitting
            if f"{SKILL_KIND}{entry.seq}" not in told and not any(entry.text in text for text in frozen)
        ] + [
            DeveloperMessage(text=UNLOADED.format(name=entry.name), kind=f"{SKILL_KIND}{entry.seq}")
            for entry in unloaded
            if f"{SKILL_KIND}{entry.seq}" not in told
            and (
                f"{SKILL_KIND}{entry.unloads}" in told or any(f'<skill name="{entry.name}">' in text for text in frozen)
            )
        ]
