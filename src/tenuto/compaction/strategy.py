"""What the author of a strategy needs, in one place: the types of seed 004, and a way to write new messages.

from tenuto.compaction.strategy import CompactionContext, CompactionOutput, Message, system
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.strategies import (
    DigestCompaction,
    HidingThenSummaryCompaction,
    LLMSummaryCompaction,
    RemoteCompaction,
    ToolResultHidingCompaction,
)
from tenuto.protocol.compaction import (
    CompactionContext,
    CompactionOutcome,
    CompactionOutput,
    CompactionStrategy,
    SessionView,
    StrategyError,
)
from tenuto.protocol.message import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart

Role = Literal["system", "user", "assistant", "tool"]


def system(text: str) -> TextPart:
    """Return a text that speaks for the harness and not for a tool or a user."""
    return TextPart(text=f"<system>{text}</system>")


def Message(  # noqa: N802 - the name under which strategies are written
    *, role: Role, content: str | Sequence[TextPart], tool_call_id: str = ""
) -> SystemMessage | UserMessage | AssistantMessage | ToolResultMessage:
    """Return a new message for a view. A result needs the id of its call. Raises `StrategyError` for another role."""
    parts = (TextPart(text=content),) if isinstance(content, str) else tuple(content)
    match role:
        case "system":
            return SystemMessage(text="".join(part.text for part in parts))
        case "user":
            return UserMessage(parts=parts, origin="extension")
        case "assistant":
            return AssistantMessage(parts=parts)
        case "tool":
            return ToolResultMessage(call_id=tool_call_id, name="", parts=parts)
    raise StrategyError(f"there is no role {role!r}; the roles are system, user, assistant and tool")


__all__ = [
    "CompactionContext",
    "CompactionOutcome",
    "CompactionOutput",
    "CompactionStrategy",
    "DigestCompaction",
    "HidingThenSummaryCompaction",
    "LLMSummaryCompaction",
    "LadderCompaction",
    "Message",
    "RemoteCompaction",
    "SessionView",
    "ToolResultHidingCompaction",
    "system",
]
