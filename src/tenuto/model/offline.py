"""The built-in model that needs no key and no network (DESIGN section 7).

Rule-based, and says so; it drives the real tools, approvals, log and compaction, so that a new user has a working
agent in one command and tests have a deterministic one. The rules are in `offline_rules.py`, loaded at the first call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from tenuto.protocol.message import AssistantMessage, DeveloperMessage, Message, SystemMessage
from tenuto.protocol.model import Finished, ModelError, ModelFacts, ModelRequest, StreamPart, TextDelta, ToolCallDelta
from tenuto.protocol.part import AssistantPart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import CHARS_PER_TOKEN, estimate_text

if TYPE_CHECKING:
    from tenuto.model.offline_rules import Answer

FACTS = ModelFacts(
    provider="offline",
    name="tenuto",
    context_window=128_000,
    max_output_tokens=8_192,
    can_summarise=False,
    images=False,
    input_price=0.0,
    output_price=0.0,
    cache_read_price=0.0,
    cache_write_price=0.0,
    source="provider",
)
"""Importing this module costs next to nothing: the rules come with the first call."""
_DELTA_CHARS = 24
_IMAGE_TOKENS = 1_200


class OfflineClient:
    """Implements `protocol.model.ModelClient`."""

    def __init__(self) -> None:
        # By identity, as the view hands over the same message objects again: one estimate a message, not one a step.
        self._sizes: dict[int, tuple[Message, int]] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the answer in small pieces. Raises `ModelError` (overflow) when the request exceeds the window."""
        from tenuto.model.offline_rules import answer

        size = self._measure(request)
        window = request.model.context_window
        if window is not None and size > window:
            raise ModelError(
                "overflow", f"prompt is too long: {size} tokens > {window} maximum", observed=size, limit=window
            )
        parts = _without_missing_tools(_parts_of(answer(request.messages), request.messages), request)
        for part in parts:
            if isinstance(part, TextPart):
                for start in range(0, len(part.text), _DELTA_CHARS):
                    yield TextDelta(part.text[start : start + _DELTA_CHARS])
                    await asyncio.sleep(0)
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        for index, call in enumerate(calls):
            yield ToolCallDelta(index, name=call.name)
            yield ToolCallDelta(index, fragment=call.arguments)
            await asyncio.sleep(0)
        output = sum(_measure_part(part) for part in parts)
        message = AssistantMessage(
            parts=tuple(parts),
            model=request.model.id,
            stop_reason="tool_use" if calls else "end_turn",
            usage=Usage(input=size, output=output, cost=0.0),
        )
        yield Finished(message)

    async def models(self) -> list[ModelFacts]:
        """Return the one model that there is."""
        return [FACTS]

    async def count(self, request: ModelRequest) -> int | None:
        """Return the estimate that the usage and the window go by, in tokens."""
        return self._measure(request)

    async def close(self) -> None:
        """Forget the sizes; there is no connection."""
        self._sizes.clear()

    def _measure(self, request: ModelRequest) -> int:
        known = self._sizes
        self._sizes = {id(m): known.get(id(m)) or (m, _measure_message(m)) for m in request.messages}
        tools = sum(
            estimate_text(tool.description) + len(bytes(tool.parameters)) // CHARS_PER_TOKEN for tool in request.tools
        )
        return tools + sum(size for _, size in self._sizes.values())


def _parts_of(answer: Answer, messages: Sequence[Message]) -> list[AssistantPart]:
    """Return the parts of an answer. Call ids are made from the place in the log, which never comes twice."""
    place = max((message.seq for message in messages), default=0) or len(messages)
    parts: list[AssistantPart] = [TextPart(text=answer.text)] if answer.text else []
    for index, action in enumerate(answer.actions):
        arguments = msgspec.json.encode(action.arguments).decode()
        parts.append(ToolCallPart(id=f"offline_{place}_{index}", name=action.name, arguments=arguments))
    return parts


def _without_missing_tools(parts: list[AssistantPart], request: ModelRequest) -> list[AssistantPart]:
    """Replace calls of tools that this request does not offer by a word about it."""
    offered = {tool.name for tool in request.tools}
    missing = [part.name for part in parts if isinstance(part, ToolCallPart) and part.name not in offered]
    if not missing:
        return parts
    return [TextPart(text=f"For this I need the {missing[0]} tool, which is not available in this session.")]


def _measure_message(message: Message) -> int:
    if isinstance(message, (SystemMessage, DeveloperMessage)):
        return estimate_text(message.text)
    return sum(_measure_part(part) for part in message.parts)


def _measure_part(part: msgspec.Struct) -> int:
    if isinstance(part, (TextPart, ThinkingPart)):
        return estimate_text(part.text)
    if isinstance(part, ToolCallPart):
        return estimate_text(part.name) + estimate_text(part.arguments)
    return _IMAGE_TOKENS
