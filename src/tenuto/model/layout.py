"""How a view is laid out for a wire: the head, then gaps and answers in turn (DESIGN section 3). Pure.

A gap is what stands between two answers: tool results first, then what the user said. Developer texts of the gap
are attached to its last message, so nothing before them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)

NOTE_TAG = "harness-note"
EMPTY_TEXT = "(empty)"


class Gap(Struct, frozen=True):
    """The messages of one gap. `notes` belong to the last user message, else to the last result, else stand alone."""

    results: tuple[ToolResultMessage, ...]
    users: tuple[UserMessage, ...]
    notes: tuple[str, ...]

    @property
    def note_text(self) -> str:
        """The developer texts, each in its tag; empty when there are none."""
        return "\n\n".join(frame_note(note) for note in self.notes)


def frame_note(text: str) -> str:
    """Return a developer text as the model sees it: told by the harness, not by the user."""
    return f"<{NOTE_TAG}>\n{text}\n</{NOTE_TAG}>"


def gap_of(messages: Iterable[Message]) -> Gap:
    """Return the gap that these messages, none of them an answer, form."""
    results: list[ToolResultMessage] = []
    users: list[UserMessage] = []
    notes: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
        elif isinstance(message, UserMessage):
            users.append(message)
        elif isinstance(message, DeveloperMessage) and message.text:
            notes.append(message.text)
    return Gap(tuple(results), tuple(users), tuple(notes))


def head_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the system prompt and, after it, every further system text (the summary), empty ones left out."""
    return tuple(message.text for message in messages if isinstance(message, SystemMessage) and message.text)


def next_boundary(messages: Sequence[Message], start: int) -> int:
    """Return where the run of messages that begins at `start` ends: one answer, or everything up to the next one."""
    if isinstance(messages[start], AssistantMessage):
        return start + 1
    end = start + 1
    while end < len(messages) and not isinstance(messages[end], AssistantMessage):
        end += 1
    return end
