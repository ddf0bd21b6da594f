"""Estimates of messages, as one number and by what they are made of. Pure; `text/estimate.py` weighs the texts."""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.compaction.calibration import ZERO, Vector, add, as_notes, as_result, vector_of
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, Message, SystemMessage, ToolResultMessage
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import AssistantPart, ContentPart, ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text.estimate import CHARS_PER_TOKEN, Kinds, estimate_kinds, estimate_text

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
        + estimate_text(bytes(tool.parameters).decode())
        for tool in tools
    )
