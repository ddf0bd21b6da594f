"""Whether the model goes round in circles. Pure bookkeeping, per task.

Counted are answers whose calls are the same as those of the answer before, with nothing else in between: calls that
failed (R-096), and behind a compaction calls with the same results as well, because the model does not know any more
that it has seen them. A call between two equal ones, or another result, is work. The model is told first; only when it
does the same once more the task ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenuto.protocol.message import DeveloperMessage, ToolResultMessage
from tenuto.protocol.part import ToolCallPart, text_of

TOLD_AT = 3
"""So many equal answers in a row: the model is told. With the next one the task ends."""
WAITING_SECONDS = 5.0
"""A call that takes this long waits for something: to look again is its purpose."""
_SHOWN_CALLS, _SHOWN_CHARACTERS = 3, 120


class Repetition(Struct, frozen=True):
    """An answer whose calls were made so often in a row."""

    times: int
    words: str
    failing: bool

    @property
    def is_last(self) -> bool:
        """Whether the model has been told before."""
        return self.times > TOLD_AT

    @property
    def note(self) -> DeveloperMessage:
        """What the model is told."""
        what = "and each time it failed" if self.failing else "with the same result each time"
        return DeveloperMessage(
            text=f"You have made the same call {self.times} times in a row {what}, with nothing else in between "
            f"({self.words}). The same again will not change anything: do something else, or say what you have found "
            "out or what stops you. Making it once more ends your work here."
        )

    @property
    def reason(self) -> str:
        """What the user is told when the task ends."""
        what = "the same failing call" if self.failing else "the same call with the same result"
        return f"stopped: the model made {what} {self.times} times in a row, also after it was told ({self.words})"


class RepeatedCalls:
    """Compares each answer's calls with those of the one before, since the user's last message."""

    def __init__(self) -> None:
        self._last: frozenset[tuple[object, ...]] = frozenset()
        self._times = 0
        self._compactions = 0

    def clear(self) -> None:
        """The user said something: what comes now is a new attempt."""
        self._last, self._times = frozenset(), 0

    def find(
        self, calls: Sequence[ToolCallPart], results: Sequence[ToolResultMessage], compactions: int
    ) -> Repetition | None:
        """Take in an answer's calls with their results; return the repetition that has to be told or ends the task.

        `compactions` is how many the session has had in this run. Equal calls of one answer count as one.
        """
        pairs = list(zip(calls, results, strict=True))
        failing = all(result.is_error for result in results)
        if not failing and compactions != self._compactions:
            self.clear()
        self._compactions = compactions
        signature = frozenset(_sign(call, result) for call, result in pairs)
        waits = any(result.duration >= WAITING_SECONDS for result in results)
        if not (failing or (compactions and not waits)):
            self.clear()
            return None
        self._times = self._times + 1 if signature == self._last else 1
        self._last = signature
        if self._times < TOLD_AT:
            return None
        return Repetition(self._times, _words(call for call, _ in pairs), failing)


def _sign(call: ToolCallPart, result: ToolResultMessage) -> tuple[object, ...]:
    """Return what makes two calls equal: of failed ones not how the failure is told, of broken ones what was broken."""
    outcome = None if result.is_error else hash(text_of(result.parts))
    return call.name, call.arguments, call.fault, result.is_error, outcome


def _words(calls: Iterable[ToolCallPart]) -> str:
    shown = list(dict.fromkeys(f"{call.name} {call.arguments[:_SHOWN_CHARACTERS]}" for call in calls))
    more = ", …" if len(shown) > _SHOWN_CALLS else ""
    return ", ".join(shown[:_SHOWN_CALLS]) + more
