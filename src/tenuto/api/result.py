"""What came of one prompt, gathered from the events of its run; print mode and the Python API read the same."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar

from msgspec import Struct, field

from tenuto.core.errors import TaskFailedError
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    CallRefusedEvent,
    CompactionEndEvent,
    CompactionProposedEvent,
    Outcome,
    PromptReturnedEvent,
    ReplayFinishedEvent,
    SessionOpenedEvent,
    StepStartedEvent,
    TaskSettledEvent,
    ToolResultEvent,
)
from tenuto.protocol.message import AssistantMessage, PlanView, StopReason, ToolResultMessage
from tenuto.protocol.part import WebSource, cited_in, text_of
from tenuto.protocol.usage import Usage

T = TypeVar("T")


class AnswerError(TaskFailedError):
    """A prompt did not come to its end; `answer` has what came of it, and `str(error)` is one line that says why."""

    def __init__(self, answer: Answer[Any]) -> None:
        super().__init__(answer.error or f"the run ended as {answer.outcome}")
        self.answer = answer


class Answer(Struct, Generic[T], frozen=True, kw_only=True):
    """What came of a prompt.

    Attributes:
        text: The last answer. With a schema it is the JSON as the model wrote it.
        value: The answer as the schema's type, or as plain JSON values for a schema that is a dict; else `None`.
        outcome: How the run ended: `completed`, `interrupted`, `failed`, `cut_off` (by the model's output limit),
            `limit_reached` (turns, cost or time) or `declined` (by the model or its provider).
        error: Why, in one line; empty when it completed.
        usage: Tokens and US dollars of this prompt alone; `cost` is `None` where no price is known.
        turns: Calls of the model.
        refused: Calls that nobody allowed, each with its reason.
        changed_files: Paths that tools have changed, each once; what commands change is not among them.
        sources: Web pages that the answer cites.
        session_id: The session; `Agent(resume=…)` takes it.

    """

    text: str
    value: T | None = None
    outcome: Outcome = "completed"
    error: str = ""
    usage: Usage = Usage()
    turns: int = 0
    refused: tuple[CallRefusedEvent, ...] = ()
    changed_files: tuple[str, ...] = ()
    sources: tuple[WebSource, ...] = ()
    session_id: str = ""

    def raise_for_outcome(self) -> Self:
        """Return the answer if the run completed. Raises `AnswerError` otherwise."""
        if self.outcome != "completed":
            raise AnswerError(self)
        return self


class Asked(Struct, frozen=True):
    """How a prompt ended, with the answer's `value` where a schema asked for one, or what was wrong with it."""

    settled: TaskSettledEvent
    value: Any = None
    problem: str = ""


class RunResult(Struct):
    """What a run has come to so far. Events of what an earlier run did leave it alone."""

    session_id: str = ""
    text: str = ""
    """The last answer that says something, with what of it came before the output limit cut it off."""
    sources: dict[str, WebSource] = field(default_factory=dict[str, WebSource])
    """The web pages that `text` cites, by address."""
    stop_reason: StopReason | None = None
    """How the last answer ended; `None`: there is none."""
    turns: int = 0
    """Calls of the model."""
    refused: list[CallRefusedEvent] = field(default_factory=list[CallRefusedEvent])
    changed_files: list[str] = field(default_factory=list[str])
    """Paths that write and edit have changed, each once."""
    compaction: CompactionEndEvent | None = None
    """The last compaction's end; `None`: there was none."""
    returned: str | None = None
    """Why a prompt was not sent; `None`: none came back."""
    settled: TaskSettledEvent | None = None
    """How the session became idle; `None`: it did not, or nothing has begun."""
    is_replaying: bool = False
    _is_cut_off: bool = False

    def take(self, event: AnyEvent) -> None:
        """Take in one event."""
        if isinstance(event, SessionOpenedEvent | ReplayFinishedEvent):
            self.session_id = event.session_id
            self.is_replaying = isinstance(event, SessionOpenedEvent) and event.resumed
        if self.is_replaying:
            return
        match event:
            case StepStartedEvent():
                self.turns += 1
            case AssistantMessageEvent():
                self._take_answer(event.message)
            case ToolResultEvent():
                self.text = _unasked_plan(event.message) or self.text
                changed = [use.path for use in event.message.files if use.op != "read"]
                self.changed_files += [path for path in changed if path not in self.changed_files]
            case CallRefusedEvent():
                self.refused.append(event)
            case CompactionEndEvent():
                self.compaction = event
            case CompactionProposedEvent():
                from tenuto.api.words import describe_proposal

                self.text = describe_proposal(event)
            case PromptReturnedEvent():
                self.returned = event.reason
            case TaskSettledEvent():
                self.settled = event
            case _:
                pass

    def _take_answer(self, message: AssistantMessage) -> None:
        text = text_of(message.parts)
        if text and not self._is_cut_off:
            self.sources.clear()
        self.sources.update((source.url, source) for source in cited_in(message.parts))
        self.text = self.text + text if self._is_cut_off else text or self.text
        self._is_cut_off = message.is_cut_off
        self.stop_reason = message.stop_reason

    def begin(self) -> None:
        """Forget what came before: another prompt has a result of its own."""
        self.text, self.stop_reason, self.turns, self._is_cut_off = "", None, 0, False
        self.compaction = self.returned = self.settled = None
        self.sources.clear()
        self.refused.clear()
        self.changed_files.clear()


def _unasked_plan(result: ToolResultMessage) -> str:
    """Return the plan that a result stands for where nobody could be asked about it, else nothing."""
    plans = (view for view in result.ui if isinstance(view, PlanView) and view.outcome == "unasked")
    return next((plan.text for plan in plans), "")
