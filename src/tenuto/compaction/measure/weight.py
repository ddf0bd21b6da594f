"""Estimates of messages, as one number and by what they are made of. Pure; `text/estimate.py` weighs the texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenuto.protocol.message import AssistantMessage, DeveloperMessage, Message, SystemMessage, ToolResultMessage
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import AssistantPart, ContentPart, ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text.estimate import CHARS_PER_TOKEN, Kinds, estimate_kinds, estimate_text

Vector = tuple[float, ...]
"""Estimated tokens by kind."""

FIXED, LETTERS, DIGITS, MARKS, WIDE, DENSE, IMAGE, FRAME, RESULT, NOTES = range(10)
"""The kinds. `FIXED` is system prompt and tool schemas, `FRAME` what goes around messages and calls.

`RESULT` and `NOTES` are no tokens of their own but those of a tool's result, or of what stands for a summarised part,
once more: by how much such texts differ from others made of the same characters.
"""
_EXPECTED = (1.0,) * 8 + (0.0,) * 2
_DOUBT = (0.15, 0.15, 0.4, 0.25, 0.4, 0.35, 0.7, 0.4, 0.2, 0.1)
"""By how much the estimate of a kind may be wrong before anything is known (one standard deviation of its factor)."""
_NOISE_TOKENS, _NOISE_SHARE = 4.0, 0.02
"""How far a count may be from what right factors give."""
_PLAUSIBLE = (0.1, 10.0)
"""A count outside these shares of its estimate is of something else, and tells nothing."""
_LIMITS = (0.25, 4.0)
"""Real / estimated tokens of any text, whatever it is made of."""
_KIND_LIMITS = (*(_LIMITS,) * 8, (-0.75, 3.0), (-0.75, 3.0))
"""The limits of each kind's factor; those of `RESULT` and `NOTES` come on top of 1."""
ZERO: Vector = (0.0,) * len(_DOUBT)


class Calibration:
    """The factors of one model."""

    def __init__(self) -> None:
        self._factors: list[float] = list(_EXPECTED)
        kinds = range(len(_DOUBT))
        self._doubt = [[_DOUBT[row] ** 2 if row == column else 0.0 for column in kinds] for row in kinds]

    def factor(self, kind: int) -> float:
        """Return real / estimated tokens of a kind."""
        return self._factors[kind]

    def tokens(self, vector: Vector) -> float:
        """Return the tokens that something with these estimates is likely to have."""
        total = estimated(vector)
        low, high = _LIMITS
        likely = sum(weight * self._factors[kind] for kind, weight in enumerate(vector) if weight)
        return min(high * total, max(low * total, likely))

    def observe(self, vector: Vector, counted: float) -> None:
        """Take into account that something with these estimates was counted as `counted` tokens."""
        total = estimated(vector)
        if counted <= 0 or total <= 0 or not _PLAUSIBLE[0] <= counted / total <= _PLAUSIBLE[1]:
            return
        used = [(kind, weight) for kind, weight in enumerate(vector) if weight]
        spread = [sum(row[kind] * weight for kind, weight in used) for row in self._doubt]
        noise = _NOISE_TOKENS + _NOISE_SHARE * counted
        variance = noise * noise + sum(weight * spread[kind] for kind, weight in used)
        error = counted - sum(weight * self._factors[kind] for kind, weight in used)
        for row, share in enumerate(spread):
            gain = share / variance
            self._factors[row] += gain * error
            line = self._doubt[row]
            for column, other in enumerate(spread):
                line[column] -= gain * other
        self._keep_within_limits()

    def _keep_within_limits(self) -> None:
        """Move each factor that no text can have to its limit, and the others as far as they depend on it.

        A negative factor of one kind and a large one of another explain a count as well as the right two do. A text of
        the one alone was then taken for a quarter of its size.
        """
        for kind, (low, high) in enumerate(_KIND_LIMITS):
            line, factor = self._doubt[kind], self._factors[kind]
            beyond = min(high, max(low, factor)) - factor
            if beyond and line[kind] > 0:
                for other, shared in enumerate(line):
                    self._factors[other] += beyond * shared / line[kind]
        for kind, (low, high) in enumerate(_KIND_LIMITS):
            self._factors[kind] = min(high, max(low, self._factors[kind]))


def estimated(vector: Vector) -> float:
    """Return the plain estimate, all kinds together."""
    return sum(vector[:RESULT])


def as_result(vector: Vector) -> Vector:
    """Return the vector of a tool's result."""
    return (*vector[:RESULT], estimated(vector), 0.0)


def as_notes(vector: Vector) -> Vector:
    """Return the vector of what stands for a summarised part."""
    return (*vector[:RESULT], 0.0, estimated(vector))


def add(vectors: Iterable[Vector]) -> Vector:
    """Return the sum of vectors, kind by kind."""
    total = ZERO
    for vector in vectors:
        total = tuple(one + other for one, other in zip(total, vector, strict=True))
    return total


def vector_of(kinds: Sequence[float], *, fixed: float = 0.0, images: float = 0.0, frame: float = 0.0) -> Vector:
    """Return the vector of a text's kinds (`text/estimate.py`) with what is around it."""
    return (fixed, *kinds, images, frame, 0.0, 0.0)


IMAGE_TOKENS = 1_200
MESSAGE_OVERHEAD = 4
"""What role and separators of one message cost."""
CALL_OVERHEAD = 8
"""What the frame of one tool call costs: id, type, braces."""
NO_TEXT = Kinds(0.0, 0.0, 0.0, 0.0, 0.0)


def estimate_parts(parts: Iterable[ContentPart]) -> int:
    """Return the estimated tokens of user or result parts."""
    return sum(IMAGE_TOKENS if isinstance(part, ImagePart) else estimate_text(part.text) for part in parts)


def estimate_message(message: Message) -> int:
    """Return the estimated tokens of one message, without the thinking in it (`estimate_thinking`)."""
    if isinstance(message, SystemMessage | DeveloperMessage):
        return MESSAGE_OVERHEAD + estimate_text(message.text)
    if isinstance(message, AssistantMessage):
        return MESSAGE_OVERHEAD + sum(_estimate_assistant_part(part) for part in message.parts)
    return MESSAGE_OVERHEAD + estimate_parts(message.parts)


def _estimate_assistant_part(part: AssistantPart) -> int:
    match part:
        case TextPart():
            return estimate_text(part.text)
        case ThinkingPart():
            return 0
        case ToolCallPart():
            return CALL_OVERHEAD + estimate_text(part.name) + estimate_text(part.arguments)
        case OpaquePart():
            return len(bytes(part.block)) // CHARS_PER_TOKEN


def weigh_parts(parts: Iterable[ContentPart]) -> Vector:
    """Return the estimate of user or result parts by kind."""
    return add(
        vector_of(NO_TEXT, images=IMAGE_TOKENS) if isinstance(part, ImagePart) else vector_of(estimate_kinds(part.text))
        for part in parts
    )


def weigh_message(message: Message) -> Vector:
    """Return the estimate of one message by kind, without the thinking in it."""
    frame = vector_of(NO_TEXT, frame=MESSAGE_OVERHEAD)
    if isinstance(message, SystemMessage | DeveloperMessage):
        text = vector_of(estimate_kinds(message.text))
        return add((frame, as_notes(text) if isinstance(message, SystemMessage) else text))
    if isinstance(message, AssistantMessage):
        return add((frame, *map(_weigh_assistant_part, message.parts)))
    parts = weigh_parts(message.parts)
    return add((frame, as_result(parts) if isinstance(message, ToolResultMessage) else parts))


def _weigh_assistant_part(part: AssistantPart) -> Vector:
    match part:
        case TextPart():
            return vector_of(estimate_kinds(part.text))
        case ThinkingPart():
            return ZERO
        case ToolCallPart():
            texts = (vector_of(estimate_kinds(text)) for text in (part.name, part.arguments))
            return add((vector_of(NO_TEXT, frame=CALL_OVERHEAD), *texts))
        case OpaquePart():
            dense = len(bytes(part.block)) // CHARS_PER_TOKEN
            return vector_of(NO_TEXT._replace(dense=dense))


def estimate_tools(tools: Iterable[ToolSchema]) -> int:
    """Return the estimated tokens of the tool schemas as sent with every request (R-025)."""
    return sum(
        CALL_OVERHEAD
        + estimate_text(tool.name)
        + estimate_text(tool.description)
        + max(estimate_text(bytes(tool.parameters).decode()), estimate_text(tool.grammar))
        for tool in tools
    )
