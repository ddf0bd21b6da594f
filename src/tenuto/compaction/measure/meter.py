"""How much of the window is used: one function for footer, `/context`, trigger and ladder (DESIGN section 4, R-024).

The last usage that can be believed plus an estimate of what came after it; where there is none, the estimate of
everything. A usage is believed by its *position* in the log, never by time: made by the present model, on the path,
after every entry that changed what is sent. `/context` shows the window by part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol, get_args

import msgspec

from tenuto.compaction.data.said import UserTexts
from tenuto.compaction.measure.budget import Budget
from tenuto.compaction.measure.counted import (
    Basis,
    Counted,
    SentThinking,
    Weighed,
    basis_of,
    estimate_thinking,
    is_believed,
    is_counted,
    thinking_tokens,
)
from tenuto.compaction.measure.weight import (
    FIXED,
    MESSAGE_OVERHEAD,
    NO_TEXT,
    Vector,
    add,
    estimate_message,
    estimate_tools,
    vector_of,
    weigh_message,
    weigh_parts,
)
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.entry import BranchSummaryEntry, QueuedEntry, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
)
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import TextPart, text_of
from tenuto.protocol.usage import ContextPart, PartName, SizePoint
from tenuto.session.view.projection import REBUILDS, frame_branch_summary
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.estimate import estimate_text
from tenuto.text.late import late

CALIBRATION_ENTRIES = 5
CALIBRATION_RANGE = (0.5, 4.0)
CALIBRATION_REACH = 400
"""Entries that are looked at for the calibration, so that a log without usage costs nothing to speak of."""
_CACHE_LIMIT = 20_000
_UNSETTLED = 32
"""Messages at the end of a view that may still change places with others."""
ROUGH_SHARE = 0.1
"""A size is shown with `~` if more than this share of it is estimated."""


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
    of `tokens` no provider counted. `thinking` says what of it goes along.
    """

    tokens: int
    estimated: bool
    system: int
    tools: int
    queued: int
    estimate: int
    calibration: float
    uncounted: int = 0
    thinking: SentThinking = SentThinking()

    @property
    def is_rough(self) -> bool:
        """Whether so much of it is estimated that it has to be told as such."""
        return self.estimated or (self.uncounted + self.queued) > ROUGH_SHARE * self.tokens

    @property
    def fixed(self) -> int:
        """What no compaction can make smaller: system prompt and tool schemas."""
        return self.system + self.tools


def should_compact_threshold(size: ContextSize, budget: Budget, settings: CompactionSettings) -> bool:
    """Say whether the context is over the trigger; never when compaction is switched off (R-015)."""
    return settings.enabled and size.tokens > budget.trigger


class Meter:
    """Measures a session's context. Keeps estimates by message identity, so that a step costs what it added.

    A meter for another path of the session (`for_other_path`) knows what this one has learned, and learns nothing.
    """

    def __init__(self, learned: dict[str, Counted] | None = None, texts: UserTexts | None = None) -> None:
        self.texts = UserTexts() if texts is None else texts
        self._estimates: dict[int, tuple[Message, int]] = {}
        self._kinds: dict[int, tuple[Message, Vector]] = {}
        self._calibrations: dict[str, tuple[int, float]] = {}
        self._tools: tuple[tuple[ToolSchema, ...], int] | None = None
        self._head: tuple[list[Message], int, SentThinking] = ([], 0, SentThinking())
        self._scanned: tuple[HistoryEvent | None, str, Basis] = (None, "", Basis())
        self._last: tuple[list[Message], str, tuple[ToolSchema, ...], Sequence[QueuedEntry], ContextSize] | None = None
        self._learns = learned is None
        self._counted: dict[str, Counted] = {} if learned is None else learned

    def for_other_path(self) -> Meter:
        """Return a meter for another path of the same session."""
        return Meter(self._counted, self.texts)

    def estimate(self, message: Message) -> int:
        """Return the estimated tokens of `message` without its thinking, computed once per object."""
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
        """Return the estimated tokens of all `messages`, without their thinking."""
        estimate = self.estimate
        return sum(estimate(message) for message in messages)

    def weigh(self, message: Message) -> Weighed:
        """Return the estimate of `message` with its kinds, computed once per object."""
        known = self._kinds.get(id(message))
        if known is None or known[0] is not message:
            if len(self._kinds) >= _CACHE_LIMIT:
                self._kinds.clear()
            known = self._kinds[id(message)] = (message, weigh_message(message))
        return Weighed(self.estimate(message), known[1])

    def tokens_of(self, messages: Iterable[Message], model_id: str, thinking: SentThinking | None = None) -> int:
        """Return what `messages` come to with a model: counted where they were, else estimated by what was counted.

        `thinking` says which answers have theirs along (`None`: none).
        """
        counted = self._counted_for(model_id)
        if not counted.has_learned:
            return self._estimate_sent(messages, thinking or SentThinking())
        total = 0.0
        for message in messages:
            total += counted.size(message)
            if thinking is not None and isinstance(message, AssistantMessage) and thinking.goes_along(message):
                total += thinking_tokens(message)
        return round(total)

    def _counted_for(self, model_id: str) -> Counted:
        known = self._counted.get(model_id)
        if known is None:
            known = self._counted[model_id] = Counted(model_id, self.weigh)
        return known

    def calibration(self, path: Sequence[HistoryEvent], model_id: str) -> float:
        """Return real / estimated tokens of this model's last requests: the median of at most five, within 0.5 to 4."""
        newest = next((entry.seq for entry in reversed(path) if isinstance(entry, AssistantMessage)), 0)
        known = self._calibrations.get(model_id)
        if known is not None and known[0] == newest:
            return known[1]
        ratios: list[float] = []
        for entry in _newest_first(path, CALIBRATION_REACH):
            if isinstance(entry, AssistantMessage) and entry.model == model_id and entry.estimate > 0:
                if entry.usage is not None and is_counted(entry):
                    ratios.append(entry.usage.sent / entry.estimate)
                if len(ratios) == CALIBRATION_ENTRIES:
                    break
        low, high = CALIBRATION_RANGE
        factor = min(high, max(low, _median(ratios))) if ratios else 1.0
        self._calibrations[model_id] = (newest, factor)
        return factor

    def measure(self, session: MeasuredSession, model_id: str, tools: tuple[ToolSchema, ...] = ()) -> ContextSize:
        """Return the size of the session's next request to `model_id`, queued texts included.

        It is asked for several times a step, and known while nothing was appended: then the view is the same list.
        """
        view, queue, last = session.get_llm_history(), session.state.queue, self._last
        if last is not None and last[0] is view and last[1] == model_id and last[2] is tools and last[3] is queue:
            return last[4]
        tools_tokens = self._tools_tokens(tools)
        size = self.measure_view(view, session.path(), model_id=model_id, tools_tokens=tools_tokens, queue=queue)
        self._last = (view, model_id, tools, queue, size)
        return size

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
        basis = self._basis(path, model_id)
        thinking, anchor = basis.thinking, basis.anchor
        system = self.estimate(view[0]) if view and isinstance(view[0], SystemMessage) else 0
        estimate = self._estimate_view(view, thinking) + tools_tokens
        counted = self._counted_for(model_id)
        if self._learns:
            counted.learn(path, system + tools_tokens)
            if anchor is not None:
                counted.learn_whole(basis.dead, view, anchor, system + tools_tokens, thinking.goes_along)
        calibration = counted.calibration
        fixed = calibration.factor(FIXED)
        asked = add((vector_of(NO_TEXT, frame=MESSAGE_OVERHEAD * len(queue)), *(weigh_parts(e.parts) for e in queue)))
        queued = round(calibration.tokens(asked))
        if anchor is None or anchor.usage is None:
            if counted.has_learned:
                conversation = self.tokens_of(view[1:] if system else view, model_id, thinking)
            else:
                conversation = estimate - system - tools_tokens
            tokens = uncounted = round((system + tools_tokens) * fixed) + conversation
        else:
            uncounted = self.tokens_of(_behind(view, anchor.seq), model_id, thinking)
            tokens = anchor.usage.context_size + uncounted
        return ContextSize(
            tokens=max(0, tokens) + queued,
            estimated=anchor is None,
            system=round(system * fixed),
            tools=round(tools_tokens * fixed),
            queued=queued,
            estimate=estimate,
            calibration=self.calibration(path, model_id),
            uncounted=uncounted,
            thinking=thinking,
        )

    def _tools_tokens(self, tools: tuple[ToolSchema, ...]) -> int:
        """Estimate the schemas once; a session sends the same tuple every time."""
        if self._tools is None or self._tools[0] is not tools:
            self._tools = (tools, estimate_tools(tools))
        return self._tools[1]

    def _estimate_view(self, view: Sequence[Message], thinking: SentThinking) -> int:
        """Return the estimate of a view that mostly is the one of the last call with something more at its end.

        The sum of all but the last messages is kept. They are compared as lists, which costs nothing for identical
        objects; the last ones are counted again, because results take the places of their stand-ins there.
        """
        head, total, known = self._head
        if known != thinking or view[: len(head)] != head:
            head, total = [], 0
        end = max(len(head), len(view) - _UNSETTLED)
        grown = view[len(head) : end]
        if grown:
            total += self._estimate_sent(grown, thinking)
            self._head = ([*head, *grown], total, thinking)
        return total + self._estimate_sent(view[end:], thinking)

    def _estimate_sent(self, messages: Iterable[Message], thinking: SentThinking) -> int:
        """Return the estimate of messages with the thinking that goes along."""
        total = 0
        for message in messages:
            total += self.estimate(message)
            if isinstance(message, AssistantMessage) and thinking.goes_along(message):
                total += estimate_thinking(message)
        return total

    def _basis(self, path: Sequence[HistoryEvent], model_id: str) -> Basis:
        """Return what the next request starts from.

        Looks only at what was added since the last call: the path up to an entry never changes.
        """
        scanned, scanned_model, known = self._scanned
        newest: AssistantMessage | None = None
        for entry in reversed(path):
            if entry is scanned and model_id == scanned_model:
                found = known if newest is None else msgspec.structs.replace(known, anchor=newest)
                break
            if isinstance(entry, REBUILDS):
                found = basis_of(path, model_id)
                break
            if newest is None and is_believed(entry, model_id):
                newest = entry
        else:
            found = basis_of(path, model_id)
        if path:
            self._scanned = (path[-1], model_id, found)
        return found


def _behind(view: Sequence[Message], seq: int) -> list[Message]:
    """Return what stands in the view behind entry `seq`."""
    found: list[Message] = []
    for message in reversed(view):
        if message.seq == seq:
            break
        found.append(message)
    return found


def _newest_first(path: Sequence[HistoryEvent], reach: int) -> Iterable[HistoryEvent]:
    """Yield at most `reach` entries from the leaf backwards, without copying the path."""
    for index in range(len(path) - 1, max(-1, len(path) - 1 - reach), -1):
        yield path[index]


def _median(values: list[float]) -> float:
    """Return the middle of the values (`statistics` takes 3 ms to import)."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


ORDER: tuple[PartName, ...] = get_args(PartName)
MAX_POINTS = 2_000
"""Entries that the curve is made of, at most."""
_BLOCKS: dict[str, PartName] = {
    "pins": "pins",
    "user-messages": "user",
    "approved-plan": "notes",
    "todo": "notes",
    "running-jobs": "notes",
}
_BRANCH_NOTES = frame_branch_summary(BranchSummaryEntry(summary="", from_seq=0)).partition("\n")[0]
"""How notes on a part that was left begin in the view."""
_BLOCK = late(r"^<(pins|user-messages|approved-plan|todo|running-jobs)>$.*?^</\1>$", re.DOTALL | re.MULTILINE)


def divide(view: Sequence[Message], size: ContextSize, *, tools: int, instructions: int = 0) -> tuple[ContextPart, ...]:
    """Return the parts of a request whose size is known; they add up to `size.tokens`.

    `tools` and `instructions` (a part of the system prompt) are plain estimates.
    """
    shares: Counter[PartName] = Counter({"tools": tools})
    for place, message in enumerate(view):
        if place == 0 and isinstance(message, SystemMessage):
            whole = estimate_message(message)
            shares["instructions"] += min(instructions, whole)
            shares["system"] += whole - min(instructions, whole)
        else:
            shares.update(_shares_of(message, size.thinking))
    tokens = _scaled(shares, max(0, size.tokens - size.queued))
    tokens["queued"] = size.queued
    return tuple(ContextPart(name=name, tokens=tokens[name]) for name in ORDER if tokens[name] > 0)


def _shares_of(message: Message, thinking: SentThinking) -> Counter[PartName]:
    """Return the estimated tokens of a message by kind; together they are the estimate of the message."""
    if isinstance(message, SystemMessage):
        return _shares_of_summary(message)
    if isinstance(message, AssistantMessage):
        return _shares_of_answer(message, thinking)
    if isinstance(message, ToolResultMessage):
        name: PartName = "results"
    elif isinstance(message, DeveloperMessage):
        name = "pins" if message.kind.startswith("pin:") else "notes"
    else:
        name = "summary" if text_of(message.parts).startswith(_BRANCH_NOTES) else "user"
    return Counter({name: estimate_message(message)})


def _shares_of_summary(message: SystemMessage) -> Counter[PartName]:
    """Divide what a compaction put before the kept tail; what is in none of its blocks belongs to the summary."""
    shares: Counter[PartName] = Counter()
    behind = message.text.rpartition("</summary>")[2] if "</summary>" in message.text else ""
    for block in _BLOCK.finditer(behind):
        shares[_BLOCKS[block[1]]] += estimate_text(block[0])
    whole = estimate_message(message)
    return _fitted(shares, whole, "summary")


def _shares_of_answer(message: AssistantMessage, thinking: SentThinking) -> Counter[PartName]:
    texts = tuple(part for part in message.parts if isinstance(part, TextPart))
    answers = estimate_message(msgspec.structs.replace(message, parts=texts))
    calls = estimate_message(message) - answers
    thoughts = estimate_thinking(message) if thinking.goes_along(message) else 0
    return Counter({"answers": answers, "calls": calls, "thinking": thoughts})


def _fitted(shares: Counter[PartName], whole: int, rest: PartName) -> Counter[PartName]:
    """Give `rest` what the other shares leave of the whole; they are cut where they are more than it."""
    found = shares.total()
    if found > whole:
        shares = _scaled(shares, whole)
    shares[rest] += max(0, whole - shares.total())
    return shares


def _scaled(shares: Counter[PartName], total: int) -> Counter[PartName]:
    """Return the shares in the same proportions, as whole numbers that add up to `total`."""
    weight = shares.total()
    if weight <= 0:
        return Counter({"notes": total})
    exact: dict[PartName, float] = {name: total * share / weight for name, share in shares.items()}
    scaled: dict[PartName, int] = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(exact, key=lambda name: exact[name] - int(exact[name]), reverse=True)
    for name in by_rest[: total - sum(scaled.values())]:
        scaled[name] += 1
    return Counter(scaled)


def sizes_over_time(path: Sequence[HistoryEvent]) -> tuple[SizePoint, ...]:
    """Return the context's size at every counted answer, and before and after everything that made it smaller.

    Of a very long session it is the later part.
    """
    points: list[SizePoint] = []
    newest = list(islice(newest_of_kind(path, AssistantMessage, CompactionEntry, ViewEditEntry), MAX_POINTS))
    for entry in reversed(newest):
        if isinstance(entry, AssistantMessage):
            if entry.usage is not None and entry.usage.sent:
                points.append(SizePoint(seq=entry.seq, tokens=entry.usage.context_size))
        elif isinstance(entry, CompactionEntry) or entry.rung:
            if entry.tokens_before:
                points.append(SizePoint(seq=entry.seq, tokens=entry.tokens_before))
            points.append(SizePoint(seq=entry.seq, tokens=entry.tokens_after or 0, compacted=True))
    return tuple(points)
