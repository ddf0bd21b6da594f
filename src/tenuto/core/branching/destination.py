"""Where the conversation goes on when the user chooses an entry of the tree (seed 003; DESIGN section 3)."""

from __future__ import annotations

import msgspec

from tenuto.compaction.plan.entries import visible_entry
from tenuto.compaction.summary.branch import common_ancestor
from tenuto.core.errors import TaskFailedError
from tenuto.protocol.entry import (
    BranchEntry,
    HeaderEntry,
    PinEntry,
    PlanEntry,
    TodoEntry,
    UndoEntry,
    UnpinEntry,
    ViewEditEntry,
)
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, HistoryEvent, UserMessage
from tenuto.protocol.part import ContentPart
from tenuto.session.session import Session

USER_ORIGINS = frozenset({"typed", "command", "skill"})
"""Messages that are the user's own words: whoever goes back to one wants to say it differently."""
_PATH_STATE = (CompactionEntry, ViewEditEntry, UndoEntry, PinEntry, UnpinEntry, TodoEntry, PlanEntry)


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """`leaf` is the seq after which the conversation goes on (0: the root), `parts` what goes into the prompt."""

    leaf: int
    parts: tuple[ContentPart, ...] = ()


def find_destination(session: Session, seq: int) -> Destination:
    """Return where choosing the entry `seq` leads. Raises `TaskFailedError` when there is no such entry.

    A message of the user leads to what came before it, with its text to be sent anew; everything else to itself, or
    to the end of its step.
    """
    entry = session.find(seq)
    if entry is None or isinstance(entry, HeaderEntry | BranchEntry):
        raise TaskFailedError(f"there is no entry {seq} to go to; /tree lists them")
    prompt = prompt_of(entry)
    if prompt is None:
        return Destination(leaf=session.end_of_step(seq))
    path = session.path_to(seq)
    before = path[-2].seq if len(path) > 1 else 0
    return Destination(leaf=session.end_of_step(before) if before else 0, parts=prompt.parts)


def prompt_of(entry: HistoryEvent) -> UserMessage | None:
    """Return `entry` if it is something that the user said."""
    return entry if isinstance(entry, UserMessage) and entry.origin in USER_ORIGINS else None


def is_present(session: Session, leaf: int) -> bool:
    """Say whether the conversation stands at `leaf` already: nothing that counts has come after it."""
    path, target = session.path(), session.path_to(leaf)
    ancestor = common_ancestor(path, target)
    return ancestor == (target[-1].seq if target else 0) and not any(
        _is_said(entry) or isinstance(entry, _PATH_STATE) for entry in path.since(ancestor + 1)
    )


def is_anything_left(session: Session, leaf: int) -> bool:
    """Say whether going to `leaf` leaves anything of the conversation behind."""
    path = session.path()
    ancestor = common_ancestor(path, session.path_to(leaf))
    return any(_is_said(entry) for entry in path.since(ancestor + 1))


def _is_said(entry: HistoryEvent) -> bool:
    """Say whether an entry is part of the conversation; what the harness tells the model beside it is not."""
    return visible_entry(entry) is not None and not isinstance(entry, DeveloperMessage)
