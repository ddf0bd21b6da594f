"""Small makers of entries for the tests of this room."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import msgspec

from tenuto.protocol.entry import (
    BranchEntry,
    BranchSummaryEntry,
    ExtensionEntry,
    ModelEntry,
    QueuedEntry,
    ShellEntry,
    TodoEntry,
    TodoItem,
    UndoEntry,
    ViewEdit,
    ViewEditEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    ProviderItems,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, TextPart, ToolCallPart
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session


def text(value: str) -> tuple[TextPart, ...]:
    return (TextPart(text=value),)


def user(value: str = "hello", **more: Any) -> UserMessage:
    return UserMessage(parts=text(value), **more)


def answer(value: str = "ok", calls: tuple[str, ...] = (), **more: Any) -> AssistantMessage:
    asked = tuple(ToolCallPart(id=call, name="read", arguments='{"path":"a"}') for call in calls)
    return AssistantMessage(parts=(*text(value), *asked), model="offline/offline", **more)


def result(call: str, value: str = "result", **more: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id=call, name="read", parts=text(value), **more)


def new_session(home: Path, **more: Any) -> Session:
    return Session.create(home, home, clock=itertools.count(1_700_000_000).__next__, durability="none", **more)


def reopen(session: Session, **more: Any) -> Session:
    session.close()
    return Session.open(session.directory, durability="none", **more)


def log_of(session: Session) -> Path:
    return session.directory / LOG_NAME


def as_data(messages: list[Message]) -> list[Message]:
    """What a provider gets to see of a view: the messages without our bookkeeping."""
    return [msgspec.structs.replace(message, seq=0, ts=0.0) for message in messages]


def check_pairs(messages: list[Message]) -> None:
    """Every call is followed by its results, once, in call order; no result stands anywhere else (R-048)."""
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        assert not isinstance(message, ToolResultMessage), f"result without call: {message.call_id}"
        if isinstance(message, AssistantMessage):
            calls = [part.id for part in message.parts if isinstance(part, ToolCallPart)]
            following = messages[position : position + len(calls)]
            assert [one.call_id if isinstance(one, ToolResultMessage) else None for one in following] == calls
            position += len(calls)


PICTURE = ImagePart(sha256="0" * 64, media_type="image/png", size=9)


class RandomHistory:
    """Makes the next entry of a wild but possible session, from a source of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def next(self, history: list[HistoryEvent]) -> HistoryEvent:
        """Return an entry that could follow `history`."""
        self.count = len(history)
        makers = [self.answer, self.result, self.result, self.result, self.small, self.small, self.mark]
        return self.source.choice(makers)(history)

    def answer(self, history: list[HistoryEvent]) -> HistoryEvent:
        # Identifiers repeat from answer to answer, and sometimes within one, as some providers' do.
        calls = tuple(f"call_{self.source.randrange(4)}" for _ in range(self.source.randrange(4)))
        return answer(f"answer {self.count}", calls)

    def result(self, history: list[HistoryEvent]) -> HistoryEvent:
        return result(f"call_{self.source.randrange(4)}", f"result {self.count} " + "x" * self.source.randrange(60))

    def small(self, history: list[HistoryEvent]) -> HistoryEvent:
        number = self.count
        seqs = [entry.seq for entry in history if entry.seq] or [1]
        waiting = [entry.seq for entry in history if isinstance(entry, QueuedEntry)] or [0]
        return self.source.choice(
            [
                user(f"user {number}"),
                UserMessage(parts=(*text(f"shows {number}"), PICTURE, PICTURE)),
                user(f"sent {number}", from_queued=self.source.choice(waiting)),
                DeveloperMessage(text=f"note {number}"),
                ShellEntry(command=f"ls {number}", output="a\n", exit_code=0, excluded=number % 3 == 0),
                ExtensionEntry(extension="x", in_view=number % 2 == 0, parts=text(f"extension {number}")),
                BranchSummaryEntry(summary=f"left {number}", from_seq=self.source.choice(seqs)),
                QueuedEntry(parts=text(f"queued {number}")),
                TodoEntry(items=(TodoItem(text=f"todo {number}"),)),
                ModelEntry(model=self.source.choice(["a/one", "b/two"])),
            ]
        )

    def mark(self, history: list[HistoryEvent]) -> HistoryEvent:
        seqs = [entry.seq for entry in history if entry.seq] or [1]
        marks = [e.seq for e in history if isinstance(e, (CompactionEntry, ViewEditEntry, UndoEntry))] or [0]
        prompts = [entry.seq for entry in history if isinstance(entry, SystemMessage)] or [0]
        choice = self.source.choice
        edits = tuple(
            ViewEdit(
                target=choice(seqs),
                kind=choice(["hidden", "truncated", "omitted"]),
                text="(cut)",
                keep_head=4,
                image_text=choice(["", "(images)"]),
                keep_images=self.source.randrange(2),
            )
            for _ in range(self.source.randrange(3))
        )
        items = ProviderItems(provider="a", model="one", items=()) if self.count % 4 == 0 else None
        replacement = (SystemMessage(text=f"summary {self.count}"),) if self.count % 2 else ()
        return choice(
            [
                SystemMessage(text=f"system {self.count}"),
                CompactionEntry(
                    summary=f"summary {self.count}",
                    first_kept_index=choice([*seqs, len(seqs) + 6]),
                    replacement=replacement,
                    edits=edits,
                    system_seq=choice([0, choice(prompts)]),
                    provider_items=items,
                ),
                ViewEditEntry(edits=edits),
                UndoEntry(target=choice(marks)),
                UndoEntry(target=choice(marks)),
                BranchEntry(parent=choice([0, *seqs])),
            ]
        )
