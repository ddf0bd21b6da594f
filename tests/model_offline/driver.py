"""A conversation with the offline model over the real tools, without the core."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tenuto.model.offline import FACTS, OfflineClient
from tenuto.protocol.message import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.model import Finished, ModelFacts, ModelRequest, StreamPart, TextDelta
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tenuto.session.session import Session
from tenuto.tool.context import ToolContext
from tenuto.tool.registry import ToolRegistry
from tenuto.tool.runner import prepare, run_call


class Talk:
    """Ask, and let the tools run until the model has nothing more to call."""

    def __init__(self, home: Path, cwd: Path, facts: ModelFacts = FACTS) -> None:
        self.client = OfflineClient()
        self.facts = facts
        self.session = Session.create(home, cwd)
        self.registry = ToolRegistry()
        self.context = ToolContext(session=self.session)
        self.messages: list[Message] = [SystemMessage(text="You are an agent.", seq=1)]
        self.deltas: list[StreamPart] = []

    async def ask(self, text: str) -> str:
        """Return the last answer to a request."""
        self.add(UserMessage(parts=(TextPart(text=text),)))
        for _ in range(20):
            message = await self.step()
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            if not calls:
                return text_of(message.parts)
            for call in calls:
                self.add(await self.run(call))
        raise AssertionError("the model does not come to an end")

    def add(self, message: Message) -> None:
        """Append a message with the next seq."""
        self.messages.append(msgspec.structs.replace(message, seq=self.messages[-1].seq + 1))

    async def step(self) -> AssistantMessage:
        """Ask the model once; what it says goes into the conversation."""
        request = ModelRequest(model=self.facts, messages=tuple(self.messages), tools=self.registry.schemas())
        self.deltas = [part async for part in self.client.stream(request)]
        finished = self.deltas.pop()
        assert isinstance(finished, Finished)
        streamed = "".join(part.text for part in self.deltas if isinstance(part, TextDelta))
        assert streamed == text_of(finished.message.parts)
        self.add(finished.message)
        return finished.message

    async def run(self, call: ToolCallPart) -> ToolResultMessage:
        """Run one call with the real tool."""
        prepared = await prepare(call, self.registry, self.context)
        if isinstance(prepared, ToolResultMessage):
            return prepared
        return await run_call(prepared, self.context, emit=lambda _: None)

    @property
    def calls(self) -> list[ToolCallPart]:
        """All calls so far."""
        answers = [message for message in self.messages if isinstance(message, AssistantMessage)]
        return [part for answer in answers for part in answer.parts if isinstance(part, ToolCallPart)]
