"""What was typed in Claude Code while it worked. Pure.

Such a text stands in `queue-operation` lines: `enqueue` has it, and what takes it out names none. `dequeue` makes it
the next prompt, which has a line of its own. `remove` puts it into the running turn, where it often stands nowhere
else. `popAll` gives all texts back to the editor.
"""

from __future__ import annotations

import msgspec

from tenuto.protocol.entry import Origin
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.importers.claude_words import NOTIFICATION
from tenuto.session.importers.json_access import Fields, seconds, text


class Typed(msgspec.Struct, frozen=True):
    """A text that waited, and when it was taken out (seconds since the epoch)."""

    words: str
    ts: float

    @property
    def message(self) -> UserMessage:
        """The text as a message."""
        origin: Origin = "typed"
        if self.words.startswith(NOTIFICATION):
            origin = "extension"
        elif self.words.startswith("/"):
            origin = "command"
        return UserMessage(parts=(TextPart(text=self.words),), origin=origin)


class TypedQueue:
    """Follows the queue through the file."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._taken: list[Typed] = []

    def note(self, fields: Fields) -> None:
        """Take a line about the queue."""
        match text(fields, "operation"):
            case "enqueue":
                self._waiting.append(text(fields, "content").strip())
            case "popAll":
                self._waiting.clear()
            case "dequeue" | "remove" if self._waiting:
                self._taken.append(Typed(self._waiting.pop(0), seconds(fields.get("timestamp"))))
            case _:
                return

    def deliver(self, spoken: str = "") -> list[Typed]:
        """Return what went into the turn since the last time, but for a text that the next line says itself."""
        taken, self._taken = self._taken, []
        for typed in taken:
            if typed.words == spoken.strip():
                taken.remove(typed)
                break
        return [typed for typed in taken if typed.words]

    def left(self) -> list[str]:
        """Return what waits at the end of the file."""
        return [words for words in self._waiting if words and not words.startswith(NOTIFICATION)]
