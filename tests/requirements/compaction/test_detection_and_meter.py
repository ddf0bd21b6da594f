"""Overflow is recognised, nothing else is taken for it, and the meter tells the truth (R-019 to R-029)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest

from tenuto.command.runtime import CommandRuntime
from tenuto.protocol.event import (
    AssistantMessageEvent,
    CompactionEndEvent,
    ContextUsageEvent,
    NoticeEvent,
    RetryEvent,
)
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ModelClient, ModelError, ModelFacts, ModelRequest, StreamPart
from tenuto.protocol.part import ImagePart, TextPart
from tenuto.tui.chrome import footer_line
from tenuto.tui.machine.step import step
from tenuto.tui.state.state import UiState
from tests.core.harness import PROTOCOLS, Agent, agent, make_start, reopened
from tests.requirements.compaction.support import (
    LONG_ANSWER,
    compact,
    compactions,
    ends,
    fill,
    in_turn,
    is_summary_request,
    last_instruction,
    reads,
    starts,
    step_requests,
    summary_requests,
    talk,
    write_big_file,
    write_settings,
)
from tests.server import Call, HttpError, RawStream, Reply, ScriptedServer, StreamError, Tokens

TOUCH = Call("bash", {"command": "touch ran"})
TOO_LONG = "prompt is too long: 205030 tokens > 200000 maximum"

# --- R-019 ---


class RaisingClient:
    """A client whose first request fails with an exception before anything is sent; then the real one."""

    def __init__(self, real: ModelClient) -> None:
        self._real = real
        self._raised = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        if not self._raised:
            self._raised = True
            raise ModelError("overflow", "input is too long for requested model")
        async for part in self._real.stream(request):
            yield part

    async def models(self) -> list[ModelFacts]:
        return await self._real.models()

    async def count(self, request: ModelRequest) -> int | None:
        return await self._real.count(request)

    async def close(self) -> None:
        await self._real.close()


FORMS = {
    "http error": HttpError(400, TOO_LONG),
    "stream event": StreamError(5, "context_length_exceeded", Reply("I will look. " * 4, tool_calls=[TOUCH])),
    "error with status 200": RawStream(
        [json.dumps({"error": {"message": TOO_LONG, "type": "invalid_request_error"}}).encode()],
        content_type="application/json",
    ),
    "stop reason": Reply("I will look. " * 4, tool_calls=[TOUCH], stop="window_exceeded"),
    "no room for an answer": Reply("", stop="max_tokens", usage=Tokens(input=199_500)),
}
STOP_REASON_ONLY = {"stop reason": "anthropic"}
"""The other protocols have no stop reason of their own for a full window."""


async def check_recovery(running: Agent) -> None:
    """The same for every form: one compaction, the same step once more, nothing of the failed attempt left."""
    settled = await running.ask("go on with the last step")
    assert settled.outcome == "completed", settled.error
    assert [start.reason for start in starts(running)] == ["overflow"]
    assert [end.will_retry for end in ends(running)] == [True]
    assert len(compactions(running)) == 1
    assert not (running.session.cwd / "ran").exists(), "no tool of the failed attempt runs"
    assert not running.of(RetryEvent)
    kept = [entry for entry in running.session.entries() if isinstance(entry, AssistantMessage)]
    assert all("I will look" not in str(entry.parts) for entry in kept)
    last = step_requests(running)[-1]
    assert last_instruction(last) == "go on with the last step"
    assert b"I will look" not in last.raw
    assert not running.server.refusals, "calls and results are still pairs"
    assert (await running.ask("and now?")).outcome == "completed"
    assert len(starts(running)) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", FORMS)
async def test_r019_every_form_of_overflow_leads_to_the_same_recovery(tmp_path, protocol, form):
    if STOP_REASON_ONLY.get(form, protocol) != protocol:
        pytest.skip("this protocol has no such form")
    answers = [Reply(LONG_ANSWER)] * 6 + [FORMS[form]]
    script = talk(in_turn(*answers))
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        await fill(running)
        await check_recovery(running)


async def test_r019_an_exception_leads_to_the_same_recovery(tmp_path):
    async with agent(tmp_path, talk()) as running:
        await fill(running)
        models = running.runtime.live.models
        models._clients["openai-chat"] = RaisingClient(models.client("openai-chat"))
        await check_recovery(running)


async def test_r019_a_finished_answer_is_kept_and_not_asked_for_again(tmp_path):
    """The answer is complete, and only its usage is over the window: R-022 looks after the next request."""
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, Reply("the answer", usage=Tokens(input=210_000, output=5))))
    async with agent(tmp_path, script, options={"listed_window": 200_000}) as running:
        await fill(running)
        await running.ask("question")
        assert len(step_requests(running)) == 7
        assert running.of(AssistantMessageEvent)[-1].message.stop_reason == "end_turn"
        assert not starts(running)


# --- R-022 ---


@pytest.mark.parametrize("status", [400, 413])
async def test_r020_a_refusal_without_a_body_at_two_percent_is_no_overflow(tmp_path, status):
    """T-16"""
    async with agent(tmp_path, [HttpError(status)], options={"listed_window": 200_000}) as running:
        settled = await running.ask("hello")
        assert settled.outcome == "failed"
        assert str(status) in settled.error
        assert not starts(running)
        assert len(running.server.requests) == 1


@pytest.mark.parametrize("status", [400, 413])
async def test_r020_a_refusal_without_a_body_at_ninety_percent_is_one(tmp_path, status):
    nearly_full = Reply(LONG_ANSWER, usage=Tokens(input=180_000, output=100))
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 5, nearly_full, HttpError(status)))
    async with agent(tmp_path, script, options={"listed_window": 200_000}) as running:
        await fill(running)
        settled = await running.ask("question")
        assert settled.outcome == "completed", settled.error
        assert [start.reason for start in starts(running)] == ["overflow"]


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat"])
async def test_r021_a_refused_output_limit_is_lowered_once_and_nothing_is_compacted(tmp_path, protocol):
    """The list says 16 384, the server takes 4 000; it is asked for too much once, and never again."""
    write_big_file(tmp_path, 20)
    write_settings(tmp_path, f'[models."{protocol}/test"]\nmax_output_tokens = 16384\n')
    async with agent(tmp_path, talk(reads(5)), model=f"{protocol}/test", options={"max_output": 4_000}) as running:
        settled = await running.ask("read it")
        assert settled.outcome == "completed", settled.error
        assert len(running.server.refusals) == 1
        asked = [
            request.body.get("max_tokens") or request.body.get("max_completion_tokens")
            for request in running.server.requests
        ]
        assert asked[0] > 4_000
        assert asked[1:] == [4_000] * 6
        assert not starts(running)


async def test_r021_an_output_refusal_that_calls_itself_a_full_context_compacts_nothing(tmp_path):
    """T-17: 135 tokens of input, a million asked for."""
    text = (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 1000135 tokens "
        "(135 of text input, 1000000 in the output). Please reduce the length of either one."
    )
    script = in_turn(HttpError(400, {"error": {"message": text, "code": 400}}))
    async with agent(tmp_path, script, options={"listed_window": 1_000_000}) as running:
        settled = await running.ask("hello")
        assert settled.outcome == "completed", settled.error
        assert not starts(running)
        assert len(running.server.requests) == 2
        assert running.runtime.live.facts.context_window == 131_072


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r022_a_usage_over_the_window_is_an_overflow_before_the_next_step(tmp_path, protocol):
    """The provider accepts what does not fit and says nothing."""
    write_big_file(tmp_path, 20)
    step = Call("read", {"path": "big.txt"})
    over = Reply("looking", tool_calls=[step], usage=Tokens(input=40_000, output=10))
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 4, over))
    model = f"{protocol}/test"
    async with agent(tmp_path, script, model=model, options={"listed_window": 32_000}) as running:
        await fill(running, 4)
        settled = await running.ask("look")
        assert settled.outcome == "completed", settled.error
        assert len(starts(running)) == 1
        order = [is_summary_request(request) for request in running.server.requests]
        assert order == [False] * 5 + [True, False], "compacted between the steps"
        assert running.server.requests[-1].tokens < running.server.requests[-3].tokens


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r022_no_output_and_a_full_window_is_an_overflow(tmp_path, protocol):
    nothing = Reply("", stop="max_tokens", usage=Tokens(input=31_900))
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 4, nothing))
    model = f"{protocol}/test"
    async with agent(tmp_path, script, model=model, options={"listed_window": 32_000}) as running:
        await fill(running, 4)
        settled = await running.ask("question")
        assert settled.outcome == "completed", settled.error
        assert [start.reason for start in starts(running)] == ["overflow"]


async def test_r022_no_output_in_a_window_that_is_not_full_is_none(tmp_path):
    nothing = Reply("", stop="max_tokens", usage=Tokens(input=9_000))
    async with agent(tmp_path, talk(nothing), options={"listed_window": 32_000}) as running:
        await running.ask("question")
        assert not starts(running)
        assert len(running.server.requests) == 4, "it is asked to go on, and nothing is compacted"


# --- R-023 ---

STATED = {
    "both numbers": "prompt is too long: 60100 tokens > 50000 maximum",
    "the limit alone": "This model's maximum context length is 50000 tokens. Please reduce the length of the messages.",
}


@pytest.mark.parametrize("text", STATED.values(), ids=STATED)
async def test_r023_a_stated_limit_lowers_the_window_and_is_kept(tmp_path, text):
    script = talk(in_turn(*[Reply("fine", usage=Tokens(input=48_000, output=10))] * 6, HttpError(400, text)))
    async with ScriptedServer(script, listed_window=200_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            settled = await running.ask("question")
            assert settled.outcome == "completed", settled.error
            assert running.runtime.live.budget().window == 50_000
            assert any("50,000" in event.text for event in running.of(NoticeEvent))
        async with reopened(tmp_path, server) as another:
            assert another.runtime.live.budget().window == 50_000
        async with reopened(tmp_path, server, model="openai-chat/test-small") as other_model:
            assert other_model.runtime.live.budget().window == 200_000


@pytest.mark.parametrize(
    "text",
    [
        "invalid params, context window exceeds limit (2013)",
        "The context window was exceeded. Request id 4711, see https://example.org/errors/8192",
        "Error 2048: input is too long for requested model",
    ],
)
async def test_r023_a_stray_number_leaves_the_window_alone(tmp_path, text):
    """T-18"""
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, HttpError(400, text)))
    async with ScriptedServer(script, listed_window=200_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            await running.ask("question")
            assert running.runtime.live.budget().window > 8_192
        async with reopened(tmp_path, server) as another:
            assert another.runtime.live.budget().window == 200_000


# --- the meter ---


async def test_r024_footer_context_and_trigger_use_one_number(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        for number in range(12):
            before = running.runtime.live.measure()
            due = before.tokens > running.runtime.live.budget().trigger
            assert running.runtime.live.is_compaction_due() == due
            await running.ask(f"question {number} " + "because " * 900)
            live = running.runtime.live
            shown = running.of(ContextUsageEvent)[-1]
            usage = running.of(AssistantMessageEvent)[-1].message.usage
            assert shown.tokens == live.measure().tokens == usage.context_size
            assert (shown.window, shown.trigger) == (live.budget().window, live.budget().trigger)
            assert not shown.estimated
        assert starts(running), "the trigger was reached on the way"


async def test_r024_context_says_what_the_footer_says(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        runtime = CommandRuntime(make_start(tmp_path, server.environ()))
        running = Agent(runtime, server)
        runtime.subscribe(running.events.append)
        await runtime.open()
        await runtime.opener.wait_for_facts()
        await fill(running, 2)
        (said,) = await runtime.run_command("/context")
        shown = running.of(ContextUsageEvent)[-1]
        assert f"{shown.tokens:,}" in said.text.splitlines()[0]
        assert f"{shown.trigger:,}" in said.text
        await runtime.close()


async def test_r025_tools_rules_and_images_are_in_the_estimate(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Write small functions. " * 400)
    async with agent(tmp_path, talk(), options={"window": 100_000}) as running:
        live = running.runtime.live
        pixel = live.session.store.save_image(b"\x89PNG\r\n\x1a\n" + b"0" * 9_000, "image/png")
        assert isinstance(pixel, ImagePart)
        await running.runtime.submit_prompt((TextPart(text="what is this?"), pixel))
        await running.runtime.wait_settled()
        request = running.server.requests[0]
        estimate = running.of(AssistantMessageEvent)[0].message.estimate
        assert request.tokens > 4_000
        assert estimate == pytest.approx(request.tokens, rel=0.2)
        size = live.measure()
        assert size.system > 2_000, "the rules"
        assert size.tools > 500


async def test_r026_an_unknown_window_is_said_and_shows_no_percentage(tmp_path):
    async with ScriptedServer(talk()) as server:
        runtime = CommandRuntime(make_start(tmp_path, server.environ(), model="openai-chat/nobody-knows"))
        running = Agent(runtime, server)
        runtime.subscribe(running.events.append)
        await runtime.open()
        await runtime.opener.wait_for_facts()
        await fill(running, 1)
        assert running.of(ContextUsageEvent)[-1].window is None
        (said,) = await runtime.run_command("/context")
        assert "%" not in said.text
        assert "128,000, assumed" in said.text
        assert "%" not in footer_of(running)
        await runtime.close()


def footer_of(running: Agent) -> str:
    """Return the footer of the full-screen front-end after all that has happened."""
    state = UiState()
    for number, event in enumerate(running.events):
        step(state, event, float(number), 120)
    return "".join(text for text, _style in footer_line(state, 120, "/nowhere").spans)


async def test_r027_the_meter_is_never_over_the_window_without_the_word(tmp_path):
    script = talk(Reply("fine", usage=Tokens(input=40_000, output=10)))
    environ = {"TENUTO_COMPACTION__ENABLED": "false"}
    async with ScriptedServer(script, listed_window=32_000) as server:
        runtime = CommandRuntime(make_start(tmp_path, server.environ() | environ))
        running = Agent(runtime, server)
        runtime.subscribe(running.events.append)
        await runtime.open()
        await runtime.opener.wait_for_facts()
        await running.ask("hello")
        assert running.of(ContextUsageEvent)[-1].tokens == 40_010
        (said,) = await runtime.run_command("/context")
        assert re.search(r"\bover\b", said.text.splitlines()[0]), said.text.splitlines()[0]
        assert re.search(r"\bover\b", footer_of(running)), footer_of(running)
        await runtime.close()


@pytest.mark.parametrize("compacted", [False, True])
async def test_r028_after_a_restart_the_meter_is_right_before_the_first_call(tmp_path, compacted):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            if compacted:
                await compact(running)
            before = running.of(ContextUsageEvent)[-1]
            exported = running.session.path()
            entries = list(exported)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            after = running.of(ContextUsageEvent)[-1]
            assert (after.tokens, after.window, after.estimated) == (before.tokens, before.window, before.estimated)
            assert after.tokens > 2_000
            assert list(running.session.path())[: len(entries)] == entries
            calls = len(server.requests)
            assert not running.of(CompactionEndEvent) or compacted
            await running.ask("next")
            assert len(server.requests) == calls + 1


# --- R-029 ---


async def test_r029_an_allowance_smaller_than_the_request_is_said_and_not_waited_for(tmp_path):
    text = (
        "Request too large for model `test` in organization `org_1` service tier `on_demand` on tokens per minute "
        "(TPM): Limit 6000, Requested 8150, please reduce your message size and try again."
    )
    script = talk(HttpError(413, {"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}}))
    async with agent(tmp_path, script) as running:
        settled = await running.ask("hello")
        assert settled.outcome == "failed"
        assert "6,000 tokens a minute" in settled.error
        assert "8,150" in settled.error
        assert "/compact" in settled.error
        assert len(running.server.requests) == 1
        assert not running.of(RetryEvent)
        assert not starts(running)
        assert not summary_requests(running)
