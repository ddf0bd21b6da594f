"""What one model's provider counted of a session's messages, and what that tells of others. Pure.

A provider counts whole requests. Two that follow each other differ by an answer and what came after it, so the
difference is the size of just that; an answer's own size is its output. What stays in the view after a compaction was
counted before, nearly all of it, and only the summary is new.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, TypeGuard

import msgspec

from tenuto.compaction.measure.weight import Calibration, Vector, add, vector_of
from tenuto.protocol.entry import BranchEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, Message, SystemMessage
from tenuto.protocol.part import ThinkingPart
from tenuto.session.view.projection import REBUILDS, cancelled_by_undo, show_entry, view_changes_in_effect
from tenuto.session.view.tree import find_on, newest_of_kind
from tenuto.text.estimate import CHARS_PER_TOKEN, estimate_text

REACH = 200
"""Entries that are looked at when a session is opened: the end of it, whatever its length."""
OPENING = 60
"""Entries among which the first request is looked for in a longer one: it tells the size of the fixed parts."""
_PLAUSIBLE = (0.2, 5.0)
"""A count outside these shares of the estimate is of something else."""
_MOST_SIZES = 20_000


class Weighed(NamedTuple):
    """A message's estimate, and the same by kind. Thinking is not in it."""

    tokens: int
    kinds: Vector


Thinks = Callable[[AssistantMessage], bool]
"""Says whether an answer's thinking goes along with the next request."""
Weigh = Callable[[Message], Weighed]


class Counted:
    """Sizes of messages as they were counted, and the calibration that follows from them."""

    def __init__(self, model_id: str, weigh: Weigh) -> None:
        self.calibration = Calibration()
        self._model_id = model_id
        self._weigh = weigh
        self._sizes: dict[int, tuple[int, float]] = {}
        self._last: HistoryEvent | None = None
        self._before: AssistantMessage | None = None
        self._gap: list[Message] = []
        self._regime: tuple[tuple[int, int], ...] | None = None
        self._opened = False
        self._fixed = 0
        self._opening: list[Message] | None = []

    @property
    def has_learned(self) -> bool:
        """Whether anything was counted yet."""
        return bool(self._sizes) or self._regime is not None or self._opened

    def size(self, message: Message) -> float:
        """Return the tokens of a message without its thinking: counted, else estimated by what was counted."""
        weighed = self._weigh(message)
        known = self._sizes.get(message.seq) if message.seq else None
        if known is not None and known[0] == weighed.tokens:  # an edit of the view changes the estimate
            return known[1]
        return self.calibration.tokens(weighed.kinds)

    def learn(self, path: Sequence[HistoryEvent], fixed: int) -> None:
        """Take in what was added to the path since the last call; `fixed` estimates system prompt and tools."""
        self._fixed = fixed
        if self._last is None and len(path) > REACH:
            for entry in islice(path, OPENING):
                if self._opening is None:
                    break
                self._take(entry)
            self._opening = self._before = None
        new: list[HistoryEvent] = []
        for index in range(len(path) - 1, max(-1, len(path) - 1 - REACH), -1):
            entry = path[index]
            if entry is self._last or (self._last is not None and entry.seq <= self._last.seq):
                break
            new.append(entry)
        else:
            self._before = None
        if new and self._last is not None and self._before is not None and new[-1].seq != self._last.seq + 1:
            self._before = None  # another way than the one that was looked at
        for entry in reversed(new):
            self._take(entry)
        if new:
            self._last = new[0]

    def learn_whole(
        self,
        regime: tuple[tuple[int, int], ...],
        view: Sequence[Message],
        anchor: AssistantMessage,
        fixed: int,
        thinks: Thinks,
    ) -> None:
        """Learn from a whole request, once for each time that the view was changed: it tells of the fixed parts.

        `view` has the answer `anchor` to that request in it; `fixed` estimates system prompt and tools.
        """
        if regime == self._regime or anchor.usage is None or not anchor.estimate:
            return
        self._regime = regime
        if self._opened and len(regime) == 1 and regime[0][1] == view[0].seq:
            return  # the opening has told
        left, kinds = float(anchor.usage.sent), [_fixed_vector(fixed)]
        for message in view[1:] if view and isinstance(view[0], SystemMessage) else view:
            if message.seq == anchor.seq:
                break
            weighed = self._weigh(message)
            known = self._sizes.get(message.seq) if message.seq else None
            if known is not None and known[0] == weighed.tokens:
                left -= known[1]
            else:
                kinds.append(weighed.kinds)
            if isinstance(message, AssistantMessage) and thinks(message):
                left -= thinking_tokens(message)
        self.calibration.observe(add(kinds), left)

    def _take(self, entry: HistoryEvent) -> None:
        opening = self._opening
        if isinstance(entry, REBUILDS):
            self._before = None
            if opening or not isinstance(entry, SystemMessage):
                self._opening = None
        elif isinstance(entry, AssistantMessage):
            self._take_answer(entry)
        else:
            message = show_entry(entry)
            if message is not None and self._before is not None:
                self._gap.append(message)
            if message is not None and opening is not None:
                opening.append(message)

    def _take_answer(self, answer: AssistantMessage) -> None:
        """Learn from an answer: its own size, and that of what stands between it and the one before."""
        before, gap = self._before, self._gap
        self._before, self._gap = None, []
        usage = answer.usage
        if usage is None or not is_counted(answer) or answer.model != self._model_id or not answer.estimate:
            if self._opening is not None:
                self._opening.append(answer)
            return
        if before is not None and before.usage is not None and gap:
            self._note(gap, usage.sent - before.usage.context_size)
        thought = any(isinstance(part, ThinkingPart) for part in answer.parts)
        if usage.reasoning or not thought:
            self._note([answer], usage.output - usage.reasoning)
        self._before = answer
        if self._opening is not None:  # the first request of all: what is not in its messages is in the fixed parts
            self.calibration.observe(
                add((_fixed_vector(self._fixed), *(self._weigh(message).kinds for message in self._opening))),
                usage.sent,
            )
            self._opening, self._opened = None, True

    def _note(self, messages: Sequence[Message], counted: int) -> None:
        """Share out a count by the estimates, and learn from it."""
        weighed = [self._weigh(message) for message in messages]
        kinds = [item.kinds for item in weighed]
        expected = [self.calibration.tokens(vector) for vector in kinds]
        whole = sum(expected)
        low, high = _PLAUSIBLE
        if whole <= 0 or not low < counted / sum(item.tokens for item in weighed) < high:
            return
        if len(self._sizes) > _MOST_SIZES:
            self._sizes.clear()
        for message, item, tokens in zip(messages, weighed, expected, strict=True):
            self._sizes[message.seq] = (item.tokens, tokens * counted / whole)
        self.calibration.observe(add(kinds), counted)


def _fixed_vector(fixed: int) -> Vector:
    return vector_of((0.0,) * 5, fixed=float(fixed))


def is_counted(entry: AssistantMessage) -> bool:
    """Say whether a provider counted this answer's request to its end, for us.

    Not an interrupted one, none without numbers, and none that another agent asked for (an imported session): what
    that agent's system prompt and tools took is in its numbers.
    """
    is_ours = bool(entry.prefix or entry.estimate)
    return is_ours and entry.usage is not None and entry.usage.sent > 0 and entry.stop_reason != "interrupted"


def thinking_tokens(message: AssistantMessage) -> float:
    """Return what an answer's thinking takes of a request that sends it back: counted, else estimated."""
    usage = message.usage
    if usage is not None and usage.reasoning:
        return usage.reasoning - usage.unsent_reasoning
    return estimate_thinking(message)


def estimate_thinking(message: AssistantMessage) -> int:
    """Return the estimated tokens of the thinking that can be sent back at all: it has a block of the provider's."""
    thoughts = (part for part in message.parts if isinstance(part, ThinkingPart) and bytes(part.block))
    # Encrypted reasoning has no readable text; its block is longer than the tokens that it stands for.
    return sum(estimate_text(part.text) or len(bytes(part.block)) // CHARS_PER_TOKEN for part in thoughts)


class SentThinking(msgspec.Struct, frozen=True):
    """Which answers of a view have their thinking sent along with the next request to a model.

    Thinking holds for what was sent before it. In each of the `broken` ranges of seqs (both ends excluded) that was
    something else than it is now.
    """

    model_id: str = ""
    broken: tuple[tuple[int, int], ...] = ()

    def goes_along(self, message: AssistantMessage) -> bool:
        """Say whether the thinking of an answer is sent."""
        return message.model == self.model_id and not any(low < message.seq < high for low, high in self.broken)

    def before(self, seq: int) -> SentThinking:
        """Return the same for a view that is changed from the entry `seq` on."""
        return SentThinking(self.model_id, (*self.broken, (seq - 1, sys.maxsize)))


class Basis(msgspec.Struct, frozen=True):
    """What the next request starts from: the answer whose usage is believed, and which thinking goes along.

    `dead` are the ranges of seqs (both ends excluded) with answers to requests that do not begin the next one.
    """

    anchor: AssistantMessage | None = None
    thinking: SentThinking = SentThinking()
    dead: tuple[tuple[int, int], ...] = ()


def basis_of(path: Sequence[HistoryEvent], model_id: str) -> Basis:
    """Look through a whole path, back to the newest entry behind which nothing from before it is sent as it was.

    An undo gives back what was sent before its target was written: only what came between the two is of no use.
    """
    dead: list[tuple[int, int]] = []
    broken: list[tuple[int, int]] = []
    floor = _view_start(path)
    for mark in view_changes_in_effect(path):
        if mark.seq <= floor:
            break
        match mark:
            case CompactionEntry():
                floor = max(floor, mark.seq)
                break
            case ViewEditEntry():
                dead.append((0, mark.seq))
                broken.append((min((edit.target for edit in mark.edits), default=0), mark.seq))
            case UndoEntry():
                dead.append((_start_of_change(path, mark.target), mark.seq))
                broken.append(dead[-1])
    if floor:
        dead.append((0, floor))
        broken.append((0, floor))
    lowest = max((high for low, high in dead if low == 0), default=0)
    anchor: AssistantMessage | None = None
    for entry in newest_of_kind(path, AssistantMessage):
        if entry.seq <= lowest:
            break
        if is_believed(entry, model_id) and not any(low < entry.seq < high for low, high in dead):
            anchor = entry
            break
    return Basis(anchor, SentThinking(model_id, tuple(broken)), tuple(dead))


def _view_start(path: Sequence[HistoryEvent]) -> int:
    """Return the seq of the newest system prompt or branch of a path; what was sent before it is not sent so again."""
    cancelled = cancelled_by_undo(path)
    gone = (
        {
            entry.system_seq
            for entry in newest_of_kind(path, CompactionEntry)
            if entry.seq in cancelled and entry.system_seq
        }
        if cancelled
        else set[int]()
    )
    for entry in newest_of_kind(path, SystemMessage, BranchEntry):
        if entry.seq not in gone:
            return entry.seq
    return 0


def _start_of_change(path: Sequence[HistoryEvent], seq: int) -> int:
    """Return the seq before which nothing was changed by the entry `seq`: its own, or that of its system prompt."""
    entry = find_on(path, seq)
    return entry.system_seq or seq if isinstance(entry, CompactionEntry) else seq


def is_believed(entry: HistoryEvent, model_id: str) -> TypeGuard[AssistantMessage]:
    """Say whether an entry is an answer of this model whose request was counted."""
    return isinstance(entry, AssistantMessage) and entry.model == model_id and is_counted(entry)
