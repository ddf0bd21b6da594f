"""Rung 3 by itself: when it applies, what it says, and what becomes of answers that are no summary."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.budget import SUMMARY_SHARE
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.summarise import SummaryError
from tenuto.compaction.summary.summary import add_identifiers
from tenuto.compaction.ways.environment import BoundContext, CompactionEnvironment, SummaryModel
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.same_prefix import RUNG, describe_kept, same_prefix_rungs
from tenuto.protocol.compaction import CacheState, CompactionModel, CompactionOutcome, RungError
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ModelError, ModelRequest, ServerContext, ToolSchema
from tenuto.protocol.part import ImagePart, ToolCallPart
from tests.compaction.build import FACTS, SUMMARY, History, ScriptedClient, budget, current, prompt_of, reply, words

TOOL = ToolSchema(name="read", description="Reads a file.", parameters=msgspec.Raw(b'{"type":"object"}'))
OTHER = msgspec.structs.replace(FACTS, name="other")


def conversation(turns: int = 12) -> History:
    history = History()
    for turn in range(turns):
        history.user(f"request {turn}")
        history.step(f"output {turn} " + words(1_500))
        history.answer(f"answer {turn}")
    return history


def context(client: ScriptedClient, plan: CompactionPlan, window: int = 32_000, **changes) -> BoundContext:
    """The context of a compaction of this plan; changes go where they belong."""
    present = current(plan)
    request = ModelRequest(
        model=msgspec.structs.replace(FACTS, context_window=window),
        messages=tuple(present.view),
        tools=(TOOL,),
        max_output_tokens=changes.pop("max_output", 4_000),
        effort="high",
        cache_key="session",
        server=changes.pop("server", ServerContext()),
    )
    models = changes.pop("models", None) or [SummaryModel(CompactionModel(request.model, client), budget(window))]

    async def summarisers() -> list[SummaryModel]:
        return models

    settings = {name: changes.pop(name) for name in ("prompts", "shares_prefix", "observed") if name in changes}
    return BoundContext(
        history=present.view,
        token_count=present.size.tokens,
        max_context_size=window,
        reserved_context_size=8_000,
        llm=CompactionModel(request.model, client),
        cache=changes.pop("cache", CacheState(True, 10.0)),
        environment=CompactionEnvironment(
            current=present,
            request=request,
            summarisers=summarisers,
            progress=lambda *_told: None,
            **settings,
        ),
        **changes,
    )


async def run(ctx: BoundContext, plan: CompactionPlan) -> CompactionOutcome | None:
    rungs = await same_prefix_rungs(ctx)
    return await rungs[0](ctx, plan) if rungs else None


def counted(plan: CompactionPlan, uncounted: int = 0) -> CompactionPlan:
    """The plan where the provider has counted all but so many tokens."""
    return msgspec.structs.replace(plan, size=msgspec.structs.replace(plan.size, uncounted=uncounted))


async def test_the_request_is_the_last_steps_and_one_message():
    plan = counted(conversation().planned())
    client = ScriptedClient(reply(SUMMARY))
    ctx = context(client, plan, focus="the API names", max_output=budget().planned_output)
    outcome = await run(ctx, plan)
    assert outcome is not None
    assert (outcome.rung, outcome.first_kept_index) == (RUNG, plan.cut)
    assert "Mend the parser." in outcome.summary
    assert outcome.usage == ctx.environment.spending.usage
    (asked,) = client.requests
    before = ctx.environment.request
    assert asked.messages[:-1] == before.messages
    assert all(one is other for one, other in zip(asked.messages[:-1], before.messages, strict=True))
    assert msgspec.structs.replace(asked, messages=before.messages) == before, "nothing else differs"
    prompt = prompt_of(asked)
    assert prompt.startswith(Prompts().same_prefix)
    assert prompt.endswith("Additional focus: the API names")
    assert describe_kept(plan, asked) in prompt


async def test_names_that_the_program_added_make_no_longer_notes_necessary():
    names = [f"orders_export_{number:02}_{'x7' * 25}" for number in range(60)]
    plan = counted(conversation().planned())
    plan = msgspec.structs.replace(plan, previous_summary=add_identifiers("## Goal\nMend the parser.", names))
    client = ScriptedClient(reply(SUMMARY), reply(SUMMARY))
    assert await run(context(client, plan), plan) is not None
    assert len(client.requests) == 1


async def test_what_the_provider_has_not_read_is_sent_only_where_it_does_not_stay():
    """A large result behind the last request: it stays word for word, so the notes need not cover it."""
    history = conversation()
    history.step(words(2_000))
    stays = history.planned(keep_tokens=6_000)
    goes = msgspec.structs.replace(stays, cut=stays.kept[-1].seq + 1, kept=())
    for plan, new in ((stays, 0), (goes, 2)):
        client = ScriptedClient(reply(SUMMARY))
        ctx = context(client, plan)
        await run(ctx, plan)
        messages = ctx.environment.request.messages
        assert client.requests[0].messages[:-1] == messages[: len(messages) - 2 + new]


async def test_what_the_server_does_by_itself_does_not_happen_to_the_summary():
    plan = conversation().planned()
    client = ScriptedClient(reply(SUMMARY))
    server = ServerContext(compaction="request", compact_over=5, clear_over=7, clear_at_least=3)
    await run(context(client, plan, server=server), plan)
    assert client.requests[0].server == ServerContext(clear_over=7, clear_at_least=3)


async def test_the_prompt_can_be_replaced_and_what_stays_is_named_all_the_same():
    plan = conversation().planned()
    client = ScriptedClient(reply(SUMMARY))
    await run(context(client, plan, prompts=Prompts(same_prefix="MY WORDS")), plan)
    prompt = prompt_of(client.requests[0])
    assert prompt.startswith("MY WORDS")
    assert describe_kept(plan, client.requests[0]) in prompt


NO_WAY = {
    "a cold cache": {"cache": CacheState(False, 400.0)},
    "switched off": {"shares_prefix": False},
    "another model first": {"models": [SummaryModel(CompactionModel(OTHER, ScriptedClient()), budget())]},
    "no model": {"models": []},
    "after a refusal": {"reason": "overflow"},
    "no room by the observed number": {"reason": "overflow", "observed": 31_000},
}


@pytest.mark.parametrize("why", NO_WAY)
async def test_it_does_not_apply(why):
    plan = conversation().planned()
    client = ScriptedClient(reply(SUMMARY))
    ctx = context(client, plan, **NO_WAY[why])
    if why == "no model":

        async def nobody() -> list[SummaryModel]:
            return []

        ctx = replace(ctx, environment=replace(ctx.environment, summarisers=nobody))
    assert await run(ctx, plan) is None
    assert not client.requests


async def test_it_does_not_apply_with_images_in_the_view():
    """R-052: megabytes are not sent a second time for a text."""
    history = conversation()
    history.add(
        msgspec.structs.replace(history.user("look"), parts=(ImagePart(sha256="a" * 64, media_type="image/png"),))
    )
    history.answer("I see.")
    plan = history.planned()
    client = ScriptedClient(reply(SUMMARY))
    assert await run(context(client, plan), plan) is None
    assert not client.requests


async def test_it_does_not_apply_without_room_for_the_summary_in_the_window():
    plan = conversation().planned(window=64_000, keep_tokens=2_000)
    client = ScriptedClient(reply(SUMMARY), reply(SUMMARY))
    assert await run(context(client, plan, window=plan.size.tokens + 1_000), plan) is None
    assert not client.requests
    assert await run(context(client, plan, window=64_000), plan) is not None


async def test_an_output_limit_that_a_queue_has_lowered_does_not_bound_the_notes():
    """A prompt over the trigger left its step 256 tokens, and the notes, which do not have it, as little."""
    plan = conversation().planned(window=64_000, keep_tokens=2_000)
    client = ScriptedClient(reply(SUMMARY))
    assert await run(context(client, plan, window=64_000, max_output=256), plan) is not None
    assert client.requests[0].max_output_tokens >= min(plan.allowance.summary, budget(64_000).planned_output) - 1 > 256


@given(
    spare=st.integers(0, 16_000) | st.integers(13_500, 18_000),
    before=st.sampled_from([0, 400, 1_000]),
    reasons=st.booleans(),
    uncounted=st.integers(0, 8_000),
)
def test_where_the_window_leaves_less_than_planned_the_notes_are_asked_for_shorter(spare, before, reasons, uncounted):
    """Found at 16k: results near the trigger left 1 500 of 1 900 tokens, and all of it was sent again at full price."""
    plan = conversation().planned(window=64_000, keep_tokens=2_000)
    plan = counted(msgspec.structs.replace(plan, previous_summary=words(before) if before else ""), uncounted)
    window = plan.size.tokens + spare
    client = ScriptedClient(reply(SUMMARY + "".join(f"\n- value {n} is {n * n}" for n in range(20))))
    present = context(client, plan, window=window, max_output=16_000)
    model = msgspec.structs.replace(present.environment.request.model, thinking=reasons)
    present = replace(
        present,
        environment=replace(
            present.environment,
            request=msgspec.structs.replace(present.environment.request, model=model),
        ),
    )
    planned, margin, question = plan.allowance.summary, budget(window).margin, 1_400
    usual = min(planned, int(SUMMARY_SHARE * plan.allowance.free))
    least = max(1_000, before * 5 // 4, usual // (2 if reasons else 5))
    assert least < usual, "the test would say nothing"
    outcome = asyncio.run(run(present, plan))
    left = spare - margin - question
    if left - min(uncounted // 4, left // 2) >= least:
        assert outcome is not None
    for request in client.requests:
        (_, _, named) = prompt_of(request).rpartition("Keep the notes under ")
        length = int(named.split()[0]) * 3 // 2
        assert least - 2 <= length <= min(planned, request.max_output_tokens)
        free = window - margin - plan.size.tokens - request.max_output_tokens
        assert free >= 0
        if request.max_output_tokens != int(usual * plan.size.calibration):
            assert free >= min(uncounted // 4, request.max_output_tokens), "an estimate may be too low"


async def test_after_an_answer_that_ran_into_the_window_the_observed_number_counts():
    plan = conversation().planned()
    client = ScriptedClient(reply(SUMMARY))
    ctx = context(client, plan, window=64_000, reason="overflow", observed=20_000)
    assert await run(ctx, plan) is not None


BAD = {
    "it was empty": reply(""),
    "it was cut off": reply(SUMMARY, stop_reason="max_tokens"),
    "it was a refusal": reply("I'm sorry, I cannot help with that."),
    "it called a tool": AssistantMessage(parts=(ToolCallPart(id="1", name="read"),), stop_reason="tool_use"),
}


@pytest.mark.parametrize("fault", BAD)
async def test_r010_one_retry_names_the_fault_behind_the_same_conversation_and_then_it_is_an_error(fault):
    plan = conversation().planned()
    client = ScriptedClient(BAD[fault], reply(SUMMARY))
    ctx = context(client, plan)
    assert await run(ctx, plan) is not None
    first, second = client.requests
    assert second.messages[:-1] == first.messages[:-1]
    assert f"could not be used: {fault}" in prompt_of(second)
    assert ctx.environment.spending.usage.input >= 100, "both attempts are paid for"
    client = ScriptedClient(BAD[fault], BAD[fault])
    with pytest.raises(SummaryError, match="could not be used"):
        await run(context(client, plan), plan)
    assert len(client.requests) == 2


async def test_a_failing_model_is_a_typed_error_and_the_next_rung_asks_with_less():
    plan = conversation().planned()

    def answer(request: ModelRequest):
        return ModelError("overflow", "prompt is too long") if request.tools else reply(SUMMARY)

    client = ScriptedClient(answer)
    with pytest.raises(RungError, match="prompt is too long"):
        await run(context(client, plan), plan)
    outcome = await LadderCompaction().compact(context(client, plan))
    assert outcome.rung == "serialised"
    asked = [bool(request.tools) for request in client.requests]
    assert asked[:2] == [True, True], "in place once by hand, once by the ladder"
    assert not any(asked[2:])


@pytest.mark.parametrize("kind", ["quota", "auth"])
async def test_a_model_that_cannot_be_reached_is_not_asked_again_on_the_next_rung(kind):
    plan = conversation().planned()
    client = ScriptedClient(lambda _request: ModelError(kind, "no"))
    outcome = await LadderCompaction().compact(context(client, plan))
    assert outcome.rung == "digest"
    assert len(client.requests) == 1
    assert len(outcome.notes) == 1


async def test_all_rungs_together_wait_half_a_minute_at_most():
    plan = conversation().planned()
    client = ScriptedClient(lambda _request: ModelError("server", "broken", retry_after=12.0))
    ctx = context(client, plan)
    ctx.environment.patience.waited = 25.0
    outcome = await asyncio.wait_for(LadderCompaction().compact(ctx), 30)
    assert outcome.rung == "digest"
    assert len(client.requests) == 2, "one on each rung, and no waiting"


def test_what_stays_is_named_by_its_first_words():
    history = conversation(4)
    history.user("The last request, which is long: " + words(100))
    history.answer("done")
    plan = history.planned(keep_tokens=100, manual=True)
    asked = request_of(history)
    assert "from the user's message “The last request, which is long: word and" in describe_kept(plan, asked)
    assert "like the" not in describe_kept(plan, asked)
    split = conversation(1)
    split.user("mend it")
    for _ in range(10):
        split.step(words(1_500))
    plan = split.planned(keep_tokens=2_000)
    asked = request_of(split)
    assert 'your call of read “{"path": "a.py"}”' in describe_kept(plan, asked)
    assert "like this turn's request" in describe_kept(plan, asked)
    empty = msgspec.structs.replace(plan, kept=())
    assert "nothing of it stays" in describe_kept(empty, asked)
    left_out = msgspec.structs.replace(asked, messages=asked.messages[: -2 * len(plan.kept)])
    assert "Cover all of it" in describe_kept(plan, left_out)


def request_of(history: History) -> ModelRequest:
    """All that the next step would send of a conversation."""
    messages = tuple(current(history.planned(keep_tokens=1_000, manual=True)).view)
    return ModelRequest(model=FACTS, messages=messages, max_output_tokens=1_000)
