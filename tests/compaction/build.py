"""Histories for the tests of this room, and a scripted model client for the summariser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from tenuto.compaction.measure.budget import Budget, budget_for
from tenuto.compaction.measure.meter import ContextSize, Meter
from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact, plan_compaction
from tenuto.compaction.ways.validate import CurrentContext, Proposal, evaluate, find_flaw
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import Finished, ModelError, ModelFacts, ModelRequest, StreamPart, TextDelta
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.view.projection import project

MODEL = "test/model"
FACTS = ModelFacts(provider="test", name="model", context_window=32_000, max_output_tokens=8_000)
SUMMARY = """## Goal
Mend the parser.

## Constraints & Preferences
- Keep the API names.

## Progress
### Done
- [x] Read the parser.

## Key Decisions
- **Recursive descent**: the grammar is small.

## Next Steps
1. Write the test.

## Critical Context
- Tests run with `pytest -q`.
- what was learned on the way: the first tests were slow because of the large files
- the others are quick, and nobody else works on this part at the moment
- so nothing has to be agreed with others before it is changed, and the work can go on at once"""


def words(tokens: int) -> str:
    """Return prose of about this many estimated tokens."""
    return ("word and " * (tokens * 4 // 9 + 1))[: tokens * 4]


def text(value: str) -> tuple[TextPart, ...]:
    return (TextPart(text=value),)


class History:
    """A path that grows; every entry gets the next seq."""

    def __init__(self, system: str = "You are an agent.") -> None:
        self.path: list[HistoryEvent] = []
        self.add(SystemMessage(text=system))

    def add(self, entry: Any) -> Any:
        stored = msgspec.structs.replace(entry, seq=len(self.path) + 1, ts=1_000.0 + len(self.path))
        self.path.append(stored)
        return stored

    def user(self, value: str, **more: Any) -> UserMessage:
        return self.add(UserMessage(parts=text(value), **more))

    def developer(self, value: str) -> DeveloperMessage:
        return self.add(DeveloperMessage(text=value))

    def answer(self, value: str = "Done.", **more: Any) -> AssistantMessage:
        more.setdefault("prefix", "00.0")  # every answer to a request of ours has one
        return self.add(AssistantMessage(parts=text(value), model=MODEL, **more))

    def step(self, *results: str, thinking: str = "", arguments: str = '{"path": "a.py"}', **more: Any) -> list[Any]:
        """Add an answer with one call for each result, and the results."""
        first = len(self.path)
        ids = [f"call-{first}-{number}" for number in range(len(results))]
        calls = tuple(ToolCallPart(id=call_id, name="read", arguments=arguments) for call_id in ids)
        thought = (ThinkingPart(text=thinking),) if thinking else ()
        more.setdefault("prefix", "00.0")
        self.add(AssistantMessage(parts=(*thought, *calls), model=MODEL, stop_reason="tool_use", **more))
        for call_id, value in zip(ids, results, strict=True):
            self.add(ToolResultMessage(call_id=call_id, name="read", parts=text(value)))
        return self.path[first:]

    def view(self) -> list[Message]:
        return project(self.path, MODEL)

    def size(self, **more: Any) -> ContextSize:
        return Meter().measure_view(self.view(), self.path, model_id=MODEL, **more)

    def plan(self, window: int = 32_000, **more: Any) -> CompactionPlan | NothingToCompact:
        size = more.pop("size", None) or self.size()
        meter = more.pop("meter", None) or Meter()
        return plan_compaction(
            self.path, self.view(), size=size, budget=budget(window), meter=meter, model_id=MODEL, **more
        )

    def planned(self, window: int = 32_000, **more: Any) -> CompactionPlan:
        plan = self.plan(window, **more)
        assert isinstance(plan, CompactionPlan), plan
        return plan


def current(plan: CompactionPlan, model: str = MODEL) -> CurrentContext:
    """The context that a plan was made from."""
    return CurrentContext(
        path=plan.path,
        view=project(plan.path, model),
        size=plan.size,
        budget=plan.budget,
        meter=Meter(),
        model_id=model,
    )


def gated(outcome: CompactionOutcome, plan: CompactionPlan, model: str = MODEL) -> tuple[Proposal, str]:
    """What the outcome comes to, and what is wrong with it."""
    present = current(plan, model)
    proposal = evaluate(outcome, present)
    return proposal, find_flaw(proposal, present)


def budget(window: int = 32_000, **settings: Any) -> Budget:
    facts = msgspec.structs.replace(FACTS, context_window=window)
    return budget_for(facts, CompactionSettings(**settings))


def reply(value: str, **more: Any) -> AssistantMessage:
    return AssistantMessage(parts=text(value), model=MODEL, usage=Usage(input=100, output=10), **more)


class ScriptedClient:
    """A model client that answers from a list (or from a function) and keeps the requests.

    An error in the list is raised, an event is waited for.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.requests.append(request)
        item = self.script[0] if callable(self.script[0]) else self.script.pop(0)
        if callable(item):
            item = item(request)
        if isinstance(item, ModelError):
            raise item
        try:
            if hasattr(item, "wait"):
                yield TextDelta("## Goal")
                await item.wait()
            else:
                yield TextDelta("## Goal\n")
                yield Finished(item)
        finally:
            self.closed += 1

    async def models(self) -> list[ModelFacts]:
        return []

    async def count(self, request: ModelRequest) -> int | None:
        return None

    async def close(self) -> None:
        pass


def prompt_of(request: ModelRequest) -> str:
    message = request.messages[-1]
    assert isinstance(message, UserMessage)
    assert isinstance(message.parts[0], TextPart)
    return message.parts[0].text


Script = Callable[[ModelRequest], AssistantMessage | ModelError]
