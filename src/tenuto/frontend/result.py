"""What came of a headless run, gathered from its events, and as the JSON object that scripts read."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from tenuto.exit_codes import CALLS_REFUSED, CUT_OFF, DECLINED, FAILED, INTERRUPTED, LIMIT_REACHED, OK
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    CallRefusedEvent,
    Outcome,
    ReplayFinishedEvent,
    SessionOpenedEvent,
    StepStartedEvent,
    TaskSettledEvent,
    ToolResultEvent,
)
from tenuto.protocol.message import AssistantMessage, PlanView, ToolResultMessage
from tenuto.protocol.part import WebSource, cited_in, text_of
from tenuto.protocol.usage import Usage

EXIT_CODES: dict[Outcome, int] = {
    "completed": OK,
    "failed": FAILED,
    "cut_off": CUT_OFF,
    "limit_reached": LIMIT_REACHED,
    "declined": DECLINED,
    "interrupted": INTERRUPTED,
}
SUBTYPES = {
    OK: "success",
    CUT_OFF: "error_cut_off",
    LIMIT_REACHED: "error_limit_reached",
    CALLS_REFUSED: "error_calls_refused",
    DECLINED: "error_declined",
    INTERRUPTED: "error_interrupted",
}
"""What the result calls an exit code; every other one is `error_during_execution`."""


def exit_code(settled: TaskSettledEvent) -> int:
    """Return the exit code of a run that ended so."""
    return EXIT_CODES[settled.outcome] or (CALLS_REFUSED if settled.refused else OK)


class RunResult(Struct):
    """What a run has come to so far. Events of what an earlier run did leave it alone."""

    session_id: str = ""
    text: str = ""
    """The last answer that says something, with what of it came before the output limit cut it off."""
    sources: dict[str, WebSource] = field(default_factory=dict[str, WebSource])
    """The web pages that `text` cites, by address."""
    stop_reason: str = ""
    """How the last answer ended, as `StopReason` names it."""
    turns: int = 0
    """Calls of the model."""
    refused: list[CallRefusedEvent] = field(default_factory=list[CallRefusedEvent])
    changed_files: list[str] = field(default_factory=list[str])
    """Paths that write and edit have changed, each once."""
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
        self.text, self.stop_reason, self.turns, self._is_cut_off = "", "", 0, False
        self.sources.clear()
        self.refused.clear()
        self.changed_files.clear()

    def describe(self, code: int, error: str, usage: Usage, seconds: float, value: Any = None) -> dict[str, Any]:
        """Return the object that ends a run: for `--output-format json` and the last line of `stream-json`.

        Names that other agents use mean the same here. `value` is the answer read as JSON, where a schema asked for it.
        """
        described: dict[str, Any] = {
            "type": "result",
            "subtype": SUBTYPES.get(code, "error_during_execution"),
            "is_error": code != OK,
            "exit_code": code,
            "result": self.text,
            "sources": [{"title": source.title, "url": source.url} for source in self.sources.values()],
            "error": error or None,
            "stop_reason": self.stop_reason or None,
            "session_id": self.session_id,
            "num_turns": self.turns,
            "duration_ms": round(seconds * 1000),
            "total_cost_usd": usage.cost,
            "usage": describe_usage(usage),
            "permission_denials": [
                {"tool_name": call.name, "tool_use_id": call.call_id, "summary": call.summary, "reason": call.reason}
                for call in self.refused
            ],
            "changed_files": self.changed_files,
        }
        if value is not None:
            described["structured_output"] = value
        return described


def describe_usage(usage: Usage) -> dict[str, Any]:
    """Return tokens, and web searches if there were any, under the names that the Messages API gave them."""
    searches = {"server_tool_use": {"web_search_requests": usage.searches}} if usage.searches else {}
    return searches | {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


def _unasked_plan(result: ToolResultMessage) -> str:
    """Return the plan that a result stands for where nobody could be asked about it, else nothing."""
    plans = (view for view in result.ui if isinstance(view, PlanView) and view.outcome == "unasked")
    return next((plan.text for plan in plans), "")
