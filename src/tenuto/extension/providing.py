"""A provider of an extension as a model client: its function runs on its lane, and what it yields is checked here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from tenuto.extension.lane import Lane, LaneError, describe_fault
from tenuto.extension.registered import OwnProvider
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import (
    Finished,
    ModelError,
    ModelFacts,
    ModelRequest,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from tenuto.protocol.part import AssistantPart, TextPart, ToolCallPart
from tenuto.protocol.usage import Usage

SILENT_SECONDS = 120.0
"""Without anything yielded for so long, an answer is given up."""
MOST_CHARS = 4_000_000
"""Of one answer."""


class ProvidedClient:
    """Implements `protocol.model.ModelClient` over an extension's `stream(request)`."""

    def __init__(self, provider: OwnProvider, lane: Lane) -> None:
        self._provider = provider
        self._lane = lane

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer. Raises `ModelError`, also for what is no part of an answer."""
        arrived: asyncio.Queue[object] = asyncio.Queue()
        reading = asyncio.ensure_future(self._read(request, arrived))
        reading.add_done_callback(lambda _: arrived.put_nowait(None))
        answer = _Answer(request)
        try:
            while (given := await arrived.get()) is not None:
                for part in self._take(answer, given):
                    yield part
                    if isinstance(part, Finished):
                        return
            await self._end(reading)
            yield Finished(answer.message())
        finally:
            reading.cancel()

    async def models(self) -> list[ModelFacts]:
        """Return the models that were registered."""
        return list(self._provider.models)

    async def count(self, request: ModelRequest) -> int | None:
        """Return `None`: nobody counts."""
        del request

    async def close(self) -> None:
        """Do nothing: the lane belongs to the extension."""

    async def _read(self, request: ModelRequest, arrived: asyncio.Queue[object]) -> None:
        """Go through what the function yields, on its lane."""
        here, seen, looked = asyncio.get_running_loop(), 0, 0

        async def read() -> None:
            nonlocal seen
            stream = cast("Any", self._provider.stream)(request)
            async for given in stream:
                seen += 1
                here.call_soon_threadsafe(arrived.put_nowait, _NOTHING if given is None else given)

        def has_gone_on() -> bool:
            nonlocal looked
            gone_on, looked = seen > looked, seen
            return gone_on

        await self._lane.call(read, timeout=SILENT_SECONDS, is_excused=has_gone_on)

    async def _end(self, reading: asyncio.Future[None]) -> None:
        try:
            await reading
        except ModelError:
            raise
        except LaneError as error:
            raise ModelError("invalid", f"the provider {self._provider.name} gave no answer: {error}") from error
        except Exception as error:
            raise ModelError(
                "unknown", f"the provider {self._provider.name} failed: {describe_fault(error)}"
            ) from error

    def _take(self, answer: _Answer, given: object) -> list[StreamPart]:
        try:
            return answer.take(given)
        except ValueError as error:
            raise ModelError("invalid", f"the provider {self._provider.name} {error}") from error


_NOTHING = object()


class _Answer:
    """What was yielded so far, as the message that it becomes."""

    def __init__(self, request: ModelRequest) -> None:
        self._facts = request.model
        self._texts: list[str] = []
        self._calls: list[ToolCallPart] = []
        self._usage: Usage | None = None
        self._chars = 0

    def take(self, given: object) -> list[StreamPart]:
        """Return the parts that something yielded stands for. Raises `ValueError`."""
        match given:
            case str() | TextDelta():
                text = given if isinstance(given, str) else given.text
                self._count(text)
                self._texts.append(text)
                return [TextDelta(text)]
            case ThinkingDelta():
                self._count(given.text)
                return [given]
            case ToolCallPart():
                self._count(given.arguments)
                self._calls.append(_checked(given))
                place = len(self._calls)
                return [ToolCallDelta(place, name=given.name), ToolCallDelta(place, fragment=given.arguments)]
            case Usage():
                self._usage = given
                return []
            case Finished():
                return [given]
            case _:
                raise ValueError(f"yielded {type(given).__name__}, which is no part of an answer")

    def message(self) -> AssistantMessage:
        """Return the whole answer, with its price where one is known."""
        text = "".join(self._texts)
        parts: tuple[AssistantPart, ...] = (*([TextPart(text=text)] if text else []), *self._calls)
        if not parts:
            raise ModelError("broken_stream", f"{self._facts.id} answered with nothing")
        return AssistantMessage(
            parts=parts,
            model=self._facts.id,
            stop_reason="tool_use" if self._calls else "end_turn",
            usage=self._priced(),
        )

    def _priced(self) -> Usage | None:
        usage, facts = self._usage, self._facts
        if usage is None or usage.cost is not None or facts.input_price is None:
            return usage
        cost = (usage.sent * facts.input_price + usage.output * (facts.output_price or 0.0)) / 1_000_000
        return msgspec.structs.replace(usage, cost=cost)

    def _count(self, text: str) -> None:
        self._chars += len(text)
        if self._chars > MOST_CHARS:
            raise ValueError(f"answered with more than {MOST_CHARS:,} characters")


def _checked(call: ToolCallPart) -> ToolCallPart:
    try:
        is_object = isinstance(json.loads(call.arguments), dict)
    except ValueError:
        is_object = False
    if not (call.id and call.name and is_object):
        raise ValueError("yielded a tool call without an id, a name or one JSON object as its arguments")
    return call
