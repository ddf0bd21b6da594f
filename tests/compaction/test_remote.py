"""Rung 2 over random histories, mixed with summaries made here, edits, undos and branches.

Every request is encoded by the real client and judged by the rules that the scripted server has from the real APIs.
"""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.view import SessionData
from tenuto.compaction.ways.environment import BoundContext, CompactionEnvironment
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.remote import RUNG, compact_remotely, request_before_cut
from tenuto.compaction.ways.validate import CurrentContext, evaluate
from tenuto.model.anthropic import encoder
from tenuto.model.openai import responses_encoder
from tenuto.protocol.compaction import CompactionModel, CompactionOutcome, RungError
from tenuto.protocol.message import AssistantMessage, CompactionEntry, Message, ToolResultMessage
from tenuto.protocol.model import CompactedItems, ModelError, ModelRequest, ServerContext
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import OpaquePart
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tests.compaction.build import budget
from tests.compaction.test_provider_requests import RULES, Conversation, Wires, reload
from tests.examples import few_examples
from tests.model.bodies import Recording
from tests.model.views import TOOLS, facts
from tests.server import Reply
from tests.server.anthropic_compaction import compaction_block
from tests.server.openai_compaction import compaction_item
from tests.server.options import Options
from tests.session.build import check_pairs

PROVIDERS = ("anthropic", "openai")
PIN = "never touch legacy/"


class RemoteWires(Wires):
    """The same clients; what they name in their headers counts as well."""

    async def send(self, provider: str, view: list[Message]) -> dict[str, Any]:
        recording = self.clients[provider]
        body = await recording.body(self.request(provider, view))
        RULES[provider](body, recording.headers, self.options, 0, counting=False)
        return body


class Sealer:
    """What the provider would answer to the real client's request, if it takes it."""

    def __init__(self, provider: str, recording: Recording, options: Options) -> None:
        self.provider, self.recording, self.options = provider, recording, options
        self.asked: list[dict[str, Any]] = []

    @property
    def ways(self) -> frozenset[str]:
        return self.recording.client.ways  # pyright: ignore[reportAttributeAccessIssue]

    async def compact(self, request: ModelRequest, *, instructions: str, focus: str) -> CompactedItems:
        with pytest.raises(ModelError, match="recorded"):
            await self.recording.client.compact(request, instructions=instructions, focus=focus)  # pyright: ignore
        _, headers, raw = self.recording.recorder.calls[-1]
        body = json.loads(raw)
        RULES[self.provider](body, headers, self.options, 0, counting=False)
        self.asked.append(body)
        number = len(self.asked)
        if self.provider == "anthropic":
            block = compaction_block(Reply(f"summary {number}"), body, self.options)
            assert block is not None
            items = encoder.compacted_items([block])
            assert items is not None
            return items
        item = compaction_item(f"summary {number}", body, number, self.options)
        return responses_encoder.compacted_items([item])


class RemoteConversation(Conversation):
    """A session whose provider compacts now and then, between turns and within them."""

    def __init__(self, session: Session, provider: str, source: random.Random) -> None:
        super().__init__(session, provider, source)
        self.wires = RemoteWires(self.wires.options)
        self.sealer = Sealer(provider, self.wires.clients[provider], self.wires.options)
        self.compacted = 0

    async def step(self, calls: int) -> None:
        await super().step(calls)
        if self.source.random() < 0.25:
            await self.compact(self.source.choice([None, 1, 400, 2_000]))

    async def compact(self, keep: int | None) -> None:
        """Let the provider compact, as the core does."""
        session = self.session
        ctx = context(session, self.provider, self.sealer, keep)
        plan = ctx.environment.plan()
        if not isinstance(plan, CompactionPlan):
            return
        try:
            outcome = await compact_remotely(ctx, plan)
        except RungError as error:
            assert "smaller" in str(error), error
            return
        assert outcome is not None
        self.compacted += 1
        session.append(evaluate(outcome, ctx.environment.current).to_entry("threshold"))
        self.check(outcome)

    def check(self, outcome: CompactionOutcome) -> None:
        """Pins are in the view, the items once and first, and nothing of them for another model."""
        view = self.session.get_llm_history()
        assert f"<pins>\n{PIN}\n</pins>" in outcome.replacement[0].text  # pyright: ignore[reportAttributeAccessIssue]
        opaque = [
            place
            for place, message in enumerate(view)
            if isinstance(message, AssistantMessage) and any(isinstance(part, OpaquePart) for part in message.parts)
        ]
        assert len(opaque) == 1
        first = next(place for place, message in enumerate(view) if isinstance(message, AssistantMessage))
        assert opaque == [first]
        for message in project(self.session.path(), "other/model"):
            assert not isinstance(message, AssistantMessage) or not any(
                isinstance(part, OpaquePart) for part in message.parts
            )


def context(session: Session, provider: str, compactor: Any, keep: int | None = None) -> BoundContext:
    """What the core would hand to the rung."""
    model, meter, path, view = facts(provider), Meter(), session.path(), session.get_llm_history()
    size = meter.measure_view(view, path, model_id=model.id)
    current = CurrentContext(path=path, view=view, size=size, budget=budget(), meter=meter, model_id=model.id)
    request = ModelRequest(
        model=model,
        messages=tuple(view),
        tools=TOOLS,
        cache_key="s",
        server=ServerContext(compaction="request"),
    )

    async def nobody() -> list[Any]:
        return []

    return BoundContext(
        history=current.view,
        token_count=size.tokens,
        max_context_size=32_000,
        reserved_context_size=8_000,
        llm=CompactionModel(model, compactor),
        reason="manual",
        environment=CompactionEnvironment(
            current=current,
            request=request,
            summarisers=nobody,
            progress=lambda *_told: None,
            session_data=SessionData(pins=(PIN,)),
            keep_tokens=keep,
            compactor=compactor,
        ),
    )


@pytest.mark.parametrize("provider", PROVIDERS)
@few_examples(suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
async def test_a_strict_provider_takes_every_request_around_its_own_compactions(provider: str, seed: int):
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        session = Session.create(Path(home), Path(home), durability="none")
        talk = RemoteConversation(session, provider, source)
        for _ in range(10):
            await talk.turn()
            check_pairs(talk.session.get_llm_history())
            if source.random() < 0.3:
                talk.change()
            if source.random() < 0.2:
                talk.session = reload(talk.session)
        talk.session.close()
        assume(talk.compacted)  # a few histories stay too short


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_request_ends_where_the_kept_tail_begins(tmp_path: Path, provider: str):
    source = random.Random(7)
    session = Session.create(tmp_path, tmp_path, durability="none")
    talk = RemoteConversation(session, provider, source)
    while not talk.compacted:
        await talk.turn()
    entry = next(entry for entry in session.path() if isinstance(entry, CompactionEntry) and entry.rung == RUNG)
    assert entry.provider_items is not None
    assert (entry.provider_items.provider, entry.provider_items.model) == (provider, "m")
    plan, ctx = None, context(session, provider, talk.sealer, 400)
    while not isinstance(plan, CompactionPlan):
        await talk.turn()
        ctx = context(session, provider, talk.sealer, 400)
        plan = ctx.environment.plan()
    request = request_before_cut(ctx.environment, plan)
    rest = ctx.environment.request.messages[len(request.messages) :]
    assert ctx.environment.request.messages[: len(request.messages)] == request.messages
    assert [message.seq for message in rest] == [kept.seq for kept in plan.kept]
    assert not isinstance(request.messages[-1], ToolResultMessage) or request.messages[-1].seq < plan.cut
    session.close()


@pytest.mark.parametrize("reason", ["manual", "threshold", "overflow", "model_switch"])
async def test_the_provider_is_asked_where_the_session_stays_with_it(tmp_path: Path, reason: CompactionReason):
    session = Session.create(tmp_path, tmp_path, durability="none")
    talk = Conversation(session, "openai", random.Random(3))
    for _ in range(8):
        await talk.turn()
    ctx = replace(context(session, "openai", Refusing(), 400), reason=reason)
    outcome = await LadderCompaction().compact(ctx)
    expected = {"manual": "remote", "threshold": "remote"}
    assert outcome.rung in {expected.get(reason, "digest"), "hide"}
    assert outcome.rung != "remote" or outcome.provider_items is not None
    session.close()


class Refusing:
    """A provider that fails a number of times, then answers."""

    ways = frozenset({"request"})

    def __init__(self, *errors: ModelError) -> None:
        self.errors = list(errors)

    async def compact(self, request: ModelRequest, *, instructions: str, focus: str) -> CompactedItems:
        if self.errors:
            raise self.errors.pop(0)
        return responses_encoder.compacted_items([{"type": "compaction", "encrypted_content": "x"}])


@pytest.mark.parametrize(
    ("errors", "waits", "succeeds"),
    [
        ([ModelError("overloaded", "busy")] * 2, [2.0, 4.0], True),
        ([ModelError("overloaded", "busy")] * 3, [2.0, 4.0], False),
        ([ModelError("rate_limit", "slow down", retry_after=31.0)], [], False),
        ([ModelError("quota", "no money")], [], False),
        ([ModelError("bad_thinking", "signature")], [], True),
        ([ModelError("output_budget", "too many", limit=4_000)], [], True),
        ([ModelError("output_budget", "too many")] * 8, [], False),
        ([ModelError("bad_thinking", "signature")] * 2, [], False),
    ],
)
async def test_passing_failures_are_tried_twice_within_half_a_minute(
    tmp_path: Path, errors: list[ModelError], waits: list[float], succeeds: bool
):
    session = Session.create(tmp_path, tmp_path, durability="none")
    talk = Conversation(session, "openai", random.Random(3))
    for _ in range(8):
        await talk.turn()
    ctx = context(session, "openai", Refusing(*errors), 400)
    plan = ctx.environment.plan()
    assert isinstance(plan, CompactionPlan)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    if succeeds:
        outcome = await compact_remotely(ctx, plan, sleep=sleep)
        assert outcome is not None
        assert outcome.usage is None, "nothing was reported"
    else:
        with pytest.raises(RungError) as caught:
            await compact_remotely(ctx, plan, sleep=sleep)
        assert caught.value.notice
    assert slept == waits
    session.close()
