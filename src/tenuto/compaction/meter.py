"""How much of the window is used: one function for footer, `/context`, trigger and ladder (DESIGN section 4, R-024).

The last usage that can be believed plus an estimate of what came after it; where there is none, the estimate of
everything. A usage is believed by its *position* in the log, never by time: made by the present model, on the path,
after every entry that changed what is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from tenuto.compaction.budget import Budget, budget_for
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.entry import BranchEntry, QueuedEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
)
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import ContentPart, ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text.estimate import CHARS_PER_TOKEN, estimate_text

IMAGE_TOKENS = 1_200
MESSAGE_OVERHEAD = 4
"""What role and separators of one message cost."""
CALL_OVERHEAD = 8
"""What the frame of one tool call costs: id, type, braces."""
CALIBRATION_ENTRIES = 5
CALIBRATION_RANGE = (0.5, 4.0)
CALIBRATION_REACH = 400
"""Entries that are looked at for the calibration, so that a log without usage costs nothing to speak of."""
_CACHE_LIMIT = 20_000
_UNSETTLED = 32
"""Messages at the end of a view that may still change places with others."""
_BARRIERS = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, SystemMessage)


class QueueState(Protocol):
    """The part of a session's state that the meter reads."""

    @property
    def queue(self) -> tuple[QueuedEntry, ...]:
        """What is queued, oldest first."""
        ...


class MeasuredSession(Protocol):
    """The part of a session that the meter reads."""

    @property
    def state(self) -> QueueState:
        """The session state."""
        ...

    def get_llm_history(self) -> list[Message]:
        """Return the live view."""
        ...

    def path(self) -> Sequence[HistoryEvent]:
        """Return the entries from root to leaf."""
        ...


class ContextSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the next request in tokens. `estimated`: no provider counted any part of it.

    `system`, `tools` and `queued` are calibrated estimates and are contained in `tokens`. `estimate` is the plain one
    of the request (without what is queued), to be stored as `AssistantMessage.estimate`. `uncounted` is what
    of `tokens` no provider counted.
    """

    tokens: int
    estimated: bool
    system: int
    tools: int
    queued: int
    estimate: int
    calibration: float
    uncounted: int = 0

    @property
    def fixed(self) -> int:
        """What no compaction can make smaller: system prompt and tool schemas."""
        return self.system + self.tools


def estimate_parts(parts: Iterable[ContentPart]) -> int:
    """Return the estimated tokens of user or result parts."""
    return sum(IMAGE_TOKENS if isinstance(part, ImagePart) else estimate_text(part.text) for part in parts)


def estimate_message(message: Message) -> int:
    """Return the estimated tokens of one message: everything of it that a provider is sent."""
    if isinstance(message, SystemMessage | DeveloperMessage):
        return MESSAGE_OVERHEAD + estimate_text(message.text)
    if isinstance(message, AssistantMessage):
        return MESSAGE_OVERHEAD + sum(_estimate_assistant_part(part) for part in message.parts)
    return MESSAGE_OVERHEAD + estimate_parts(message.parts)


def _estimate_assistant_part(part: TextPart | ThinkingPart | ToolCallPart | OpaquePart) -> int:
    if isinstance(part, TextPart):
        return estimate_text(part.text)
    if isinstance(part, ThinkingPart):
        # Encrypted reasoning has no readable text; its block is longer than the tokens that it stands for.
        return estimate_text(part.text) or len(bytes(part.block)) // CHARS_PER_TOKEN
    if isinstance(part, ToolCallPart):
        return CALL_OVERHEAD + estimate_text(part.name) + estimate_text(part.arguments)
    return len(bytes(part.block)) // CHARS_PER_TOKEN


def estimate_tools(tools: Iterable[ToolSchema]) -> int:
    """Return the estimated tokens of the tool schemas as sent with every request (R-025)."""
    return sum(
        CALL_OVERHEAD
        + estimate_text(tool.name)
        + estimate_text(tool.description)
        + len(bytes(tool.parameters)) // CHARS_PER_TOKEN
        for tool in tools
    )


def should_compact_threshold(size: ContextSize, budget: Budget, settings: CompactionSettings) -> bool:
    """Say whether the context is over the trigger; never when compaction is switched off (R-015)."""
    return settings.enabled and size.tokens > budget.trigger


class Meter:
    """Measures a session's context. Keeps estimates by message identity, so that a step costs what it added."""

    def __init__(self) -> None:
        self._estimates: dict[int, tuple[Message, int]] = {}
        self._calibrations: dict[str, tuple[int, float]] = {}
        self._tools: tuple[tuple[ToolSchema, ...], int] | None = None
        self._head: tuple[list[Message], int] = ([], 0)
        self._scanned: tuple[HistoryEvent | None, str, AssistantMessage | None] = (None, "", None)

    def estimate(self, message: Message) -> int:
        """Return the estimated tokens of `message`, computed once per object."""
        known = self._estimates.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        if len(self._estimates) >= _CACHE_LIMIT:
            self._estimates.clear()
        tokens = estimate_message(message)
        # The message itself is kept: an id is only unique while its object lives.
        self._estimates[id(message)] = (message, tokens)
        return tokens

    def estimate_all(self, messages: Iterable[Message]) -> int:
        """Return the estimated tokens of all `messages`."""
        estimate = self.estimate
        return sum(estimate(message) for message in messages)

    def calibration(self, path: Sequence[HistoryEvent], model_id: str) -> float:
        """Return real / estimated tokens of this model's last requests: the median of at most five, within 0.5 to 4."""
        newest = next((entry.seq for entry in reversed(path) if isinstance(entry, AssistantMessage)), 0)
        known = self._calibrations.get(model_id)
        if known is not None and known[0] == newest:
            return known[1]
        ratios: list[float] = []
        for entry in _newest_first(path, CALIBRATION_REACH):
            if isinstance(entry, AssistantMessage) and entry.model == model_id and entry.estimate > 0:
                if entry.usage is not None and _counts(entry):
                    ratios.append(entry.usage.sent / entry.estimate)
                if len(ratios) == CALIBRATION_ENTRIES:
                    break
        low, high = CALIBRATION_RANGE
        factor = min(high, max(low, _median(ratios))) if ratios else 1.0
        self._calibrations[model_id] = (newest, factor)
        return factor

    def measure(self, session: MeasuredSession, model_id: str, tools: tuple[ToolSchema, ...] = ()) -> ContextSize:
        """Return the size of the session's next request to `model_id`, queued texts included."""
        return self.measure_view(
            session.get_llm_history(),
            session.path(),
            model_id=model_id,
            tools_tokens=self._tools_tokens(tools),
            queue=session.state.queue,
        )

    def measure_view(
        self,
        view: Sequence[Message],
        path: Sequence[HistoryEvent],
        *,
        model_id: str,
        tools_tokens: int = 0,
        queue: Sequence[QueuedEntry] = (),
    ) -> ContextSize:
        """Return the size of the next request that sends `view` (system prompt first) and then what is queued.

        `path` is the entries from root to leaf. `tools_tokens` is `estimate_tools(...)`.
        """
        calibration = self.calibration(path, model_id)
        estimate = self._estimate_view(view) + tools_tokens
        system = self.estimate(view[0]) if view and isinstance(view[0], SystemMessage) else 0
        queued = round(sum(MESSAGE_OVERHEAD + estimate_parts(entry.parts) for entry in queue) * calibration)
        anchor = self.believed_usage(path, model_id)
        if anchor is None or anchor.usage is None:
            tokens = uncounted = round(estimate * calibration)
        else:
            uncounted = round(self._after(view, anchor.seq) * calibration)
            tokens = anchor.usage.context_size + uncounted
        return ContextSize(
            tokens=max(0, tokens) + queued,
            estimated=anchor is None,
            system=round(system * calibration),
            tools=round(tools_tokens * calibration),
            queued=queued,
            estimate=estimate,
            calibration=calibration,
            uncounted=uncounted,
        )

    def _tools_tokens(self, tools: tuple[ToolSchema, ...]) -> int:
        """Estimate the schemas once; a session sends the same tuple every time."""
        if self._tools is None or self._tools[0] is not tools:
            self._tools = (tools, estimate_tools(tools))
        return self._tools[1]

    def _estimate_view(self, view: Sequence[Message]) -> int:
        """Return the estimate of a view that mostly is the one of the last call with something more at its end.

        The sum of all but the last messages is kept. They are compared as lists, which costs nothing for identical
        objects; the last ones are counted anew, because results take the places of their stand-ins there.
        """
        head, total = self._head
        if view[: len(head)] != head:
            head, total = [], 0
        end = max(len(head), len(view) - _UNSETTLED)
        grown = view[len(head) : end]
        if grown:
            total += self.estimate_all(grown)
            self._head = ([*head, *grown], total)
        return total + self.estimate_all(view[end:])

    def believed_usage(self, path: Sequence[HistoryEvent], model_id: str) -> AssistantMessage | None:
        """Return the newest assistant entry whose usage still says what the next request starts from, if any.

        Looks only at what was added since the last call: the path up to an entry never changes.
        """
        scanned, scanned_model, found = self._scanned
        for entry in reversed(path):
            if entry is scanned and model_id == scanned_model:
                break
            if isinstance(entry, _BARRIERS):
                found = None
                break
            if isinstance(entry, AssistantMessage) and entry.model == model_id and _counts(entry):
                found = entry
                break
        else:
            found = None
        if path:
            self._scanned = (path[-1], model_id, found)
        return found

    def _after(self, view: Sequence[Message], seq: int) -> int:
        """Return the estimate of what stands in the view behind entry `seq`."""
        total = 0
        for message in reversed(view):
            if message.seq == seq:
                break
            total += self.estimate(message)
        return total


def _counts(entry: AssistantMessage) -> bool:
    """Say whether a provider counted this answer's request to its end (not aborted, not reported as nothing)."""
    return entry.usage is not None and entry.usage.sent > 0 and entry.stop_reason != "interrupted"


def _newest_first(path: Sequence[HistoryEvent], reach: int) -> Iterable[HistoryEvent]:
    """Yield at most `reach` entries from the leaf backwards, without copying the path."""
    for index in range(len(path) - 1, max(-1, len(path) - 1 - reach), -1):
        yield path[index]


__all__ = [
    "Budget",
    "ContextSize",
    "Meter",
    "budget_for",
    "estimate_message",
    "estimate_parts",
    "estimate_tools",
    "should_compact_threshold",
]


def _median(values: list[float]) -> float:
    """Return the middle of the values (`statistics` takes 3 ms to import)."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
