"""A plan in an answer: a block between two tags, each on a line of its own, that is shown as a call of `plan`. Pure.

The log keeps an answer as the model wrote it, because so it is sent back. What a user sees of it, on a screen, printed,
exported or found by a search, is what `as_shown` makes of the entry: there are no tags in that.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from tenuto.protocol.message import AssistantMessage, DeveloperMessage, HistoryEvent, PlanMark, ToolResultMessage
from tenuto.protocol.part import AssistantPart, TextPart, ToolCallPart, text_of
from tenuto.text.writable import to_json

OPEN_TAG, CLOSE_TAG = "<proposed_plan>", "</proposed_plan>"
PLAN_CALL = "plan"
"""The name of the call that a plan is shown as; older logs have real ones."""
_LONGEST_TAG_LINE = 80
_ENDS = frozenset({"end_turn", "tool_use", "other", "max_tokens"})
"""How an answer ends whose plan is handed over."""
_GOES_ON = frozenset({"max_tokens", "pause"})
"""How one ends that the next answer goes on with."""
_STOPPED = _GOES_ON | {"interrupted"}
"""How one ends that may have the beginning of a tag at its end."""


class Piece(Struct, frozen=True):
    """A piece of an answer's text without tags. `block` counts the plans from 1; 0: it is in none."""

    text: str
    block: int


class PlanReader:
    """Divides text as it comes. What may become a tag is held back until that is known.

    `before` is what an answer that was cut off has of a plan, from its tag on.
    """

    def __init__(self, before: str = "") -> None:
        self.begun = 0
        """How many plans have begun."""
        self.complete = 0
        """The last complete one; 0: there is none."""
        self.is_inside = False
        self.has_tags = False
        self._held = ""
        self._is_line_start = True
        self.feed(before)

    def feed(self, text: str) -> list[Piece]:
        """Take in more text and return what can be shown."""
        text, self._held = self._held + text, ""
        shown: list[str] = []
        pieces: list[Piece] = []
        while text:
            line, newline, rest = text.partition("\n")
            if self._is_line_start and _may_be_tag(line):
                if not newline:
                    self._held = line
                    break
                if line.strip() in {OPEN_TAG, CLOSE_TAG}:
                    self._put(pieces, shown)
                    self._take_tag(line.strip())
                    text = rest
                    continue
            shown.append(line + newline)
            self._is_line_start = bool(newline)
            text = rest
        self._put(pieces, shown)
        return pieces

    def finish(self) -> list[Piece]:
        """Return what was held back: the text has ended."""
        held, self._held = self._held, ""
        if held.strip() in {OPEN_TAG, CLOSE_TAG}:
            self._take_tag(held.strip())
            return []
        return [Piece(held, self._block)] if held else []

    @property
    def _block(self) -> int:
        return self.begun if self.is_inside else 0

    def _put(self, pieces: list[Piece], shown: list[str]) -> None:
        if shown:
            pieces.append(Piece("".join(shown), self._block))
            shown.clear()

    def _take_tag(self, tag: str) -> None:
        self.has_tags = True
        if tag == OPEN_TAG:
            self.begun += 1
            self.is_inside = True
        elif self.is_inside:
            self.complete = self.begun
            self.is_inside = False


def _may_be_tag(line: str) -> bool:
    """Say whether a line, or its beginning, is or can become one with a tag alone."""
    words = line.strip()
    return len(line) <= _LONGEST_TAG_LINE and (OPEN_TAG.startswith(words) or CLOSE_TAG.startswith(words))


class _Divided(Struct, frozen=True):
    """An answer's parts, each text with its pieces; `earlier` is the text of a plan before this answer.

    `is_cut_in_tag`: it was stopped in what may become a tag, which is in no piece.
    """

    parts: list[tuple[AssistantPart, list[Piece]]]
    reader: PlanReader
    earlier: str
    is_cut_in_tag: bool

    def plan(self) -> str:
        """Return the last complete plan; empty where there is none."""
        block = self.reader.complete
        text = "".join(piece.text for _, pieces in self.parts for piece in pieces if piece.block == block and block)
        return ((self.earlier if block == 1 else "") + text).strip()


def _divide(message: AssistantMessage, before: str) -> _Divided:
    reader = PlanReader()
    earlier = "".join(piece.text for piece in reader.feed(before) if piece.block)
    texts = [at for at, part in enumerate(message.parts) if isinstance(part, TextPart)]
    parts: list[tuple[AssistantPart, list[Piece]]] = []
    is_cut_in_tag = False
    for at, part in enumerate(message.parts):
        pieces = reader.feed(part.text) if isinstance(part, TextPart) else []
        if texts and at == texts[-1]:
            rest = reader.finish()
            is_cut_in_tag = message.stop_reason in _STOPPED and any(piece.text.strip() for piece in rest)
            pieces += [] if is_cut_in_tag else rest
        parts.append((part, pieces))
    return _Divided(parts, reader, earlier, is_cut_in_tag)


def with_mark(message: AssistantMessage, before: str) -> AssistantMessage:
    """Return an answer that was given in plan mode with the mark of what it has of a plan; as it is where it has none.

    `before` is what answers that were cut off have of one.
    """
    divided = _divide(message, before)
    reader = divided.reader
    if not (reader.has_tags or divided.is_cut_in_tag):
        return message
    is_open = reader.is_inside or divided.is_cut_in_tag or message.stop_reason == "pause"
    state = "aside"
    if message.stop_reason in _GOES_ON and is_open and not message.tool_calls:
        state = "begun"
    elif message.stop_reason in _ENDS and divided.plan() and not message.tool_calls:
        state = "proposed"
    return msgspec.structs.replace(message, plan=PlanMark(state=state, before=before))


def unfinished_plan(message: AssistantMessage) -> str:
    """Return what an answer that goes on has of a plan, from its tag or the beginning of that on; else nothing."""
    if message.plan is None or message.plan.state != "begun":
        return ""
    text = message.plan.before + text_of(message.parts)
    lines = text.split("\n")
    first = max((at for at, line in enumerate(lines) if line.strip() == OPEN_TAG), default=-1)
    return "\n".join(lines[first:])


def proposed_plan(message: AssistantMessage) -> str:
    """Return the plan that an answer hands over; empty where it hands none over."""
    if message.plan is None or message.plan.state != "proposed":
        return ""
    return _divide(message, message.plan.before).plan()


def call_id_of(seq: int) -> str:
    """Return the id of the call that the plan in the answer `seq` is shown as."""
    return f"plan-{seq}"


def as_shown(entry: HistoryEvent) -> HistoryEvent:
    """Return an entry as it is shown: a plan in an answer as a call, and what the user said to it as its result."""
    if isinstance(entry, AssistantMessage):
        return shown_answer(entry)
    if isinstance(entry, DeveloperMessage) and entry.plan is not None:
        return ToolResultMessage(
            seq=entry.seq,
            ts=entry.ts,
            call_id=call_id_of(entry.answers),
            name=PLAN_CALL,
            parts=(TextPart(text=entry.text),),
            ui=(entry.plan,),
            interrupted=entry.plan.outcome == "interrupted",
        )
    return entry


def shown_answer(message: AssistantMessage) -> AssistantMessage:
    """Return an answer as it is shown. Only the plan that is handed over is a call; the tags are nowhere."""
    if message.plan is None:
        return message
    divided = _divide(message, message.plan.before)
    block = divided.reader.complete if message.plan.state == "proposed" else -1
    shown: list[AssistantPart] = []
    for part, pieces in divided.parts:
        if not isinstance(part, TextPart):
            shown.append(part)
            continue
        for piece in pieces:
            if piece.block != block:
                shown.append(msgspec.structs.replace(part, text=piece.text))
            elif not any(isinstance(one, ToolCallPart) for one in shown):
                shown.append(_call(message.seq, divided.plan()))
    if block > 0 and not any(isinstance(one, ToolCallPart) for one in shown):  # all of it came before the cut
        shown.insert(0, _call(message.seq, divided.plan()))
    return msgspec.structs.replace(message, parts=tuple(shown), plan=None)


def _call(seq: int, plan: str) -> ToolCallPart:
    return ToolCallPart(id=call_id_of(seq), name=PLAN_CALL, arguments=to_json({"plan": plan}).decode())
