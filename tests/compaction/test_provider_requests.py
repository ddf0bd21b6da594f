"""Random histories with compactions, edits, undos and branches: every provider takes every request that they make.

The requests are encoded by the real clients and judged by the rules that the scripted server has from the real APIs:
each call with its result, in its place, once; roles in turn; nothing empty (R-048, R-049).
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.plan.plan import NothingToCompact, plan_compaction
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.view import SessionData
from tenuto.compaction.ways.rungs import propose_digest, propose_summary
from tenuto.protocol.entry import BranchEntry, ModelEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import ModelRequest
from tenuto.protocol.part import AssistantPart, TextPart, ThinkingPart, ToolCallPart
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tests.compaction.build import SUMMARY, budget, gated, text, words
from tests.examples import few_examples
from tests.model.bodies import Recording
from tests.model.views import PROVIDERS, TOOLS, facts, thinking
from tests.server.anthropic_rules import check as check_anthropic
from tests.server.anthropic_wire import prefix_digests, sign
from tests.server.openai_rules import check_chat, check_responses
from tests.server.options import Options
from tests.server.responses_wire import ENCRYPTED
from tests.session.build import RandomHistory, answer, as_data, check_pairs, result

RULES = {"anthropic": check_anthropic, "openai": check_responses, "openai-chat": check_chat}


class Wires:
    """One client of each kind, kept from request to request as the core keeps them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clients = {provider: Recording(provider) for provider in PROVIDERS}

    def request(self, provider: str, view: list[Message]) -> ModelRequest:
        messages = tuple(view)
        if not messages or isinstance(messages[-1], AssistantMessage | SystemMessage):
            messages = (*messages, UserMessage(parts=text("go on")))
        return ModelRequest(model=facts(provider), messages=messages, tools=TOOLS, cache_key="s")

    async def send(self, provider: str, view: list[Message]) -> dict[str, Any]:
        """Encode the view; raises what the provider would refuse it with."""
        recording = self.clients[provider]
        body = await recording.body(self.request(provider, view))
        RULES[provider](body, {"anthropic-version": "2023-06-01"}, self.options, 0, counting=False)
        return body


def compact(session: Session, keep: int | None, *, by_model: bool) -> None:
    """Compact as the core does, with a summary or with the digest."""
    meter, model = Meter(), session.state.model
    path, view = session.path(), session.get_llm_history()
    size = meter.measure_view(view, path, model_id=model)
    plan = plan_compaction(path, view, size=size, budget=budget(), meter=meter, model_id=model, keep_tokens=keep)
    if isinstance(plan, NothingToCompact):
        return
    assert not plan.kept or not isinstance(plan.kept[0], ToolResultMessage), "the cut never lands on a result"
    if by_model:
        outcome = propose_summary(plan, SUMMARY, SessionData(), Prompts(), None)
    else:
        outcome = propose_digest(plan, SessionData(), Prompts())
    proposal, flaw = gated(outcome, plan, model)
    if not flaw:
        session.append(proposal.to_entry("threshold"))


def reload(session: Session) -> Session:
    """Reopen the session: the view of what is on disk is the live view, but for results that were still to come."""
    view = session.get_llm_history()
    assert project(session.path(), session.state.model) == view
    session.close()
    session = Session.open(session.directory, durability="none")
    again = session.get_llm_history()
    assert project(session.path(), session.state.model) == again
    assert as_data(again) == as_data(view)
    return session


class Wild(RandomHistory):
    """Results are missing, double, late or of no call at all; ids of calls are unique, as the clients store them."""

    def answer(self, history: list[HistoryEvent]) -> HistoryEvent:
        calls = tuple(f"call_{self.count}_{place}" for place in range(self.source.randrange(4)))
        return answer(f"answer {self.count}", calls)

    def result(self, history: list[HistoryEvent]) -> HistoryEvent:
        answers = [entry for entry in history[-8:] if isinstance(entry, AssistantMessage)]
        ids = [part.id for entry in answers for part in entry.parts if isinstance(part, ToolCallPart)]
        return result(self.source.choice([*ids, *ids, "call_of_nobody"]), f"result {self.count} " + words(60))


@few_examples(suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
async def test_every_provider_takes_the_requests_of_any_history(seed: int):
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        session = Session.create(Path(home), Path(home), durability="none")
        wild, wires = Wild(source), Wires(Options(check_thinking=True, one_system=True))
        session.append(SystemMessage(text="You are an agent."))
        for step in range(80):
            session.append(wild.next(list(session.entries())[1:]))
            if source.random() < 0.06:
                compact(session, source.choice([None, 1, 100, 1_000]), by_model=source.random() < 0.5)
            if step % 4 == 0:
                check_pairs(session.get_llm_history())
                for provider in PROVIDERS:
                    await wires.send(provider, session.get_llm_history())
            if source.random() < 0.04:
                session = reload(session)
        session.close()


class Conversation:
    """A session as the core leads it with one provider: turns of steps, thinking that the provider signed."""

    def __init__(self, session: Session, provider: str, source: random.Random) -> None:
        self.session, self.provider, self.source = session, provider, source
        self.wires = Wires(Options(check_thinking=True, one_system=True, alternate=True))
        self.model = facts(provider).id
        self.steps = 0
        self.thoughts = 0
        session.append(ModelEntry(model=self.model))
        session.append(SystemMessage(text="You are an agent."))

    async def turn(self) -> None:
        """Say something, let the model call tools, and end with an answer."""
        self.session.append(DeveloperMessage(text=f"note {self.steps}"))
        self.session.append(UserMessage(parts=text(f"request {self.steps} " + words(self.source.randrange(1, 400)))))
        for _ in range(self.source.randrange(5)):
            await self.step(self.source.randrange(1, 4))
            if self.source.random() < 0.3:
                compact(self.session, self.source.choice([None, 1, 400, 2_000]), by_model=self.source.random() < 0.5)
        await self.step(0)

    async def step(self, calls: int) -> None:
        """Make the request, and append what comes back: signed thinking, calls, results."""
        self.steps += 1
        view = self.session.get_llm_history()
        body = await self.wires.send(self.provider, view)
        encoded = self.wires.clients[self.provider].client._wire.cache.encode(self.wires.request(self.provider, view))
        parts: list[AssistantPart] = [self.think(body)] if self.source.random() < 0.6 else []
        ids = [f"toolu_{self.steps}_{place}" for place in range(calls)]
        parts += [TextPart(text=f"step {self.steps}"), *(ToolCallPart(id=one, name="read") for one in ids)]
        self.session.append(AssistantMessage(parts=tuple(parts), model=self.model, prefix=encoded.prefix))
        for one in ids:
            size = self.source.choice([5, 300, 3_000, 20_000])
            self.session.append(ToolResultMessage(call_id=one, name="read", parts=text(words(size))))

    def think(self, body: dict[str, Any]) -> ThinkingPart:
        """Return thinking that the provider can check when it comes back."""
        self.thoughts += 1
        said = f"t{self.thoughts}"
        if self.provider == "openai-chat":
            return thinking(self.provider, said)
        if self.provider == "openai":
            item = {"id": f"rs_{said}", "type": "reasoning", "summary": [], "encrypted_content": f"{ENCRYPTED}{said}"}
            return ThinkingPart(text=said, provider="openai", block=msgspec.Raw(msgspec.json.encode(item)))
        *_, (_, _, digest, previous) = prefix_digests(body)
        block = {"type": "thinking", "thinking": said, "signature": sign(body["model"], digest, previous, said)}
        return ThinkingPart(text=said, provider="anthropic", block=msgspec.Raw(msgspec.json.encode(block)))

    def change(self) -> None:
        """Edit the view, take a compaction back, or go back to an earlier turn."""
        path = self.session.path()
        results = [entry.seq for entry in path if isinstance(entry, ToolResultMessage)]
        marks = [e.seq for e in path if isinstance(e, CompactionEntry | ViewEditEntry | UndoEntry)]
        ends = [e.seq for e in path if isinstance(e, AssistantMessage) and not any_calls(e)]
        kind = self.source.choice(["edit", "undo", "branch"])
        if kind == "edit" and results:
            edit = ViewEdit(target=self.source.choice(results), kind="hidden", text="[hidden]")
            self.session.append(ViewEditEntry(edits=(edit,)))
        elif kind == "undo" and marks:
            self.session.append(UndoEntry(target=self.source.choice(marks)))
        elif kind == "branch" and ends:
            self.session.append(BranchEntry(parent=self.source.choice(ends)))


def any_calls(message: AssistantMessage) -> bool:
    return any(isinstance(part, ToolCallPart) for part in message.parts)


@pytest.mark.parametrize("provider", PROVIDERS)
@few_examples(suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
async def test_a_strict_provider_takes_every_step_of_a_session_with_thinking(provider: str, seed: int):
    """Alternating roles, one system message, signatures held against the exact prefix (R-050, T-12)."""
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        session = Session.create(Path(home), Path(home), durability="none")
        talk = Conversation(session, provider, source)
        for _ in range(12):
            await talk.turn()
            check_pairs(talk.session.get_llm_history())
            if source.random() < 0.3:
                talk.change()
            if source.random() < 0.2:
                talk.session = reload(talk.session)
        talk.session.close()
