"""When a task does not simply go on: calls that are repeated, answers that were cut off or paused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenuto.core.errors import EndedEarlyError, TaskFailedError
from tenuto.protocol.entry import ShellEntry, TodoEntry, TodoItem
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, HistoryEvent, ToolResultMessage, UserMessage
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
    if call.cut_at is not None:
        return (object(),)  # what was cut off is never the same call: nobody knows how it would have ended
    outcome = None if result.is_error else hash(text_of(result.parts))
    return call.name, call.arguments, call.fault, result.is_error, outcome


def _words(calls: Iterable[ToolCallPart]) -> str:
    shown = list(dict.fromkeys(f"{call.name} {call.arguments[:_SHOWN_CHARACTERS]}" for call in calls))
    more = ", …" if len(shown) > _SHOWN_CALLS else ""
    return ", ".join(shown[:_SHOWN_CALLS]) + more


FINAL_CHECK_KIND = "final check"
PROSE = (".md", ".rst", ".txt", ".adoc")
"""Endings of files that no command checks."""
_SHOWN_FILES = 5


def find_unchecked(path: Sequence[HistoryEvent], todo: Sequence[TodoItem], jobs: str = "") -> str:
    """Return what an answer leaves open that ends the turn now, as the model is told it; empty: nothing.

    These are edits of this turn that no command ran after, items of a todo list that was kept in this turn, and what
    `jobs` says of those that run.
    """
    edited: list[str] = []
    is_checked = kept_todo = False
    for entry in reversed(path):
        if isinstance(entry, UserMessage) and entry.origin != "continuation":
            break
        is_checked |= isinstance(entry, ShellEntry)
        kept_todo |= isinstance(entry, TodoEntry)
        if isinstance(entry, ToolResultMessage):
            is_checked |= entry.name == "bash" and not entry.denied
            if not is_checked:
                edited += [use.path for use in entry.files if use.op != "read" and not use.path.endswith(PROSE)]
    left = [item.text for item in todo if item.status in {"pending", "in_progress"}] if kept_todo else []
    said: list[str] = []
    if edited:
        names = list(dict.fromkeys(name.rpartition("/")[2] for name in reversed(edited)))
        more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
        said.append(f"No command ran after your last edits ({', '.join(names[:_SHOWN_FILES])}{more}).")
        said.append("Run what checks them, and put right what it shows; if nothing can be run, say what is unchecked.")
    if left:
        said.append(f"Open on your todo list: {'; '.join(left)}. Do it, or mark it cancelled and say why.")
    if jobs:
        said.append(jobs)
    if said:
        said.append("Then give your whole answer again: the last message is the one that counts.")
    return " ".join(said)


MOST_CONTINUED, MOST_CUT_CALLS, MOST_PAUSES, MOST_SILENCES = 3, 6, 20, 2
"""So many answers in a row may be cut off in their text, be cut off in a call, be paused by the provider, be empty."""
UNFINISHED_KIND = "unfinished"
GO_ON = (
    "Your answer reached its output limit{limit} and was cut off. Go on exactly where it stopped: repeat nothing, and "
    "say nothing about the interruption."
)
BEGIN_SOONER = (
    "Your answer reached its output limit{limit} before it said or did anything. Think less this time, and do the work "
    "in smaller parts."
)


SAY_SOMETHING = (
    "Your answer ended without a word and without a call. If the work is done, say what came of it; if not, go on."
)


class UnfinishedAnswers:
    """Counts the answers in a row that were not finished, and says how to go on with one."""

    def __init__(self) -> None:
        self._texts = self._calls = self._pauses = self._silences = 0

    def note_calls(self, calls: Sequence[ToolCallPart]) -> None:
        """Take in an answer with calls. Raises `EndedEarlyError` when too many in a row were cut off in one."""
        self._texts = self._pauses = self._silences = 0
        self._calls = self._calls + 1 if any(call.cut_at is not None for call in calls) else 0
        if self._calls > MOST_CUT_CALLS:
            raise EndedEarlyError(
                "cut_off",
                f"stopped: {self._calls} answers in a row were cut off at the output limit in the middle of a call; "
                "ask for smaller parts, or raise max_output_tokens",
            )

    def note_pause(self) -> None:
        """Take in an answer that the provider paused. Raises `TaskFailedError` for too many in a row."""
        self._pauses += 1
        if self._pauses > MOST_PAUSES:
            raise TaskFailedError(f"stopped: the provider paused {self._pauses} answers in a row; say how to go on")

    def break_silence(self, answer: AssistantMessage) -> DeveloperMessage:
        """Return what tells the model to say something. Raises `TaskFailedError` for too many such answers in a row."""
        self._silences += 1
        if self._silences > MOST_SILENCES:
            raise TaskFailedError(f"{answer.model} answered with nothing; send the request again or change the model")
        return DeveloperMessage(text=SAY_SOMETHING, kind=UNFINISHED_KIND)

    def go_on(self, answer: AssistantMessage) -> tuple[DeveloperMessage, str]:
        """Return what tells the model to go on with its text, and what tells the user.

        Raises `EndedEarlyError` when too many in a row were cut off.
        """
        self._texts += 1
        tokens = answer.usage.output if answer.usage is not None else 0
        limit = f" of {tokens:,} tokens" if tokens else ""
        if self._texts > MOST_CONTINUED:
            raise EndedEarlyError(
                "cut_off",
                f"The answer was cut off at its output limit{limit} {self._texts} times in a row; say “continue” to go "
                "on, or raise max_output_tokens.",
            )
        text = (GO_ON if text_of(answer.parts).strip() else BEGIN_SOONER).format(limit=limit)
        notice = f"The answer reached its output limit{limit}; it goes on ({self._texts} of {MOST_CONTINUED})."
        return DeveloperMessage(text=text, kind=UNFINISHED_KIND), notice
