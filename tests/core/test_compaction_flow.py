"""Compaction in the running agent: threshold, overflow, manual, cancel, and what is typed meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.protocol.event import (
    AssistantMessageEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionStartEvent,
    NoticeEvent,
    PromptReturnedEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import SystemMessage
from tenuto.protocol.operation import CompactSessionOperation, InterruptOperation
from tenuto.protocol.part import text_of
from tests.core.compacting import (
    SUMMARY,
    check_requests,
    compact,
    compactions,
    fill,
    is_summary_request,
    log_of,
    reads,
    step_requests,
    talk,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.examples import one_of
from tests.server import Call, Hang, HttpError, Reply, Request, ScriptedServer, Tokens


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_manual_compaction_makes_the_next_request_smaller(tmp_path, protocol):
    options = {"window": 32_000}
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=options) as running:
        await fill(running)
        before = running.server.requests[-1]
        finished = await compact(running, "keep the API names")
        assert finished.outcome == "completed"
        (entry,) = compactions(running)
        assert entry.focus == "keep the API names"
        assert entry.tokens_after < entry.tokens_before
        asked = running.server.requests[-1]
        assert "Additional focus: keep the API names" in asked.items[-1].text
        await running.ask("and now?")
        after = running.server.requests[-1]
        assert len(after.raw) < len(before.raw)
        assert not any(request.refused for request in running.server.requests)
        assert "Keep the tests green" in after.raw.decode()


async def test_r057_the_transcript_stays_and_the_end_event_names_the_sizes(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        shown = len(running.of(AssistantMessageEvent))
        await compact(running)
        assert len(running.of(AssistantMessageEvent)) == shown
        start, end = running.of(CompactionStartEvent)[0], running.of(CompactionEndEvent)[0]
        assert start.submission_id == end.submission_id != ""
        assert end.tokens_before > end.tokens_after > 0
        assert end.kept_from_index == compactions(running)[0].first_kept_index
        kinds = [type(event) for event in running.events]
        assert kinds.index(CompactionEndEvent) < len(kinds) - 1 - kinds[::-1].index(TaskFinishedEvent)


async def test_runner_threshold_compaction_happens_before_the_prompt_is_sent(tmp_path):
    """Seed 000, phase 4: Compact, wait, then Run; the input is submitted once."""
    async with agent(tmp_path, talk("fine " * 2500), options={"window": 16_000}) as running:
        turns = 0
        while not running.of(CompactionStartEvent) and turns < 12:
            await fill(running, 1)
            turns += 1
        start = running.of(CompactionStartEvent)[0]
        assert start.reason == "threshold"
        kinds = [event.kind for event in running.of(TaskStartedEvent)]
        assert kinds[-2:] == ["compaction", "agent"]
        assert len(running.of(UserMessageEvent)) == turns
        assert not any(request.refused for request in running.server.requests)


async def test_the_threshold_is_checked_between_steps(tmp_path):
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(25), options={"window": 16_000}) as running:
        settled = await running.ask("read it many times", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert compactions(running)
        assert {entry.reason for entry in compactions(running)} == {"threshold"}
        check_requests(running.server, 16_000)
        assert len(running.of(TaskSettledEvent)) == 1


async def test_r015_switched_off_is_off(tmp_path):
    environ = {"TENUTO_COMPACTION__ENABLED": "false"}
    async with ScriptedServer(talk("fine " * 2500), window=12_000) as server:
        async with reopened(tmp_path, server, environ=environ) as running:
            outcome = None
            for number in range(8):
                outcome = await running.ask(f"question {number} " + "because " * 900)
                if outcome.outcome == "failed":
                    break
            assert outcome.outcome == "failed"
            assert not running.of(CompactionStartEvent)


async def test_nothing_to_compact_says_why_and_writes_nothing(tmp_path):
    async with agent(tmp_path, talk("short")) as running:
        await running.ask("hello")
        before = log_of(running)
        await compact(running)
        assert log_of(running) == before
        assert "nothing to compact" in running.of(CompactionEndEvent)[0].error


async def test_r046_a_cancelled_compaction_appends_nothing(tmp_path):
    def script(request: Request):
        return Hang() if is_summary_request(request) else Reply("fine " * 600)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        before = log_of(running)
        submission = await running.runtime.submit(CompactSessionOperation(session_id=running.runtime.session_id))
        await running.until(CompactionProgressEvent)
        await asyncio.sleep(0.2)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 60)
        assert finished.outcome == "interrupted"
        assert running.of(CompactionEndEvent)[0].aborted
        assert log_of(running) == before
        assert (await running.ask("go on")).outcome == "completed"


async def test_r013_a_second_compaction_is_refused_with_a_notice(tmp_path):
    def script(request: Request):
        return Reply(SUMMARY, delay=0.5) if is_summary_request(request) else Reply("fine " * 600)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        first = await running.runtime.submit(CompactSessionOperation(session_id=running.runtime.session_id))
        await running.runtime.submit(CompactSessionOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_for(first), 60)
        assert len(compactions(running)) == 1
        assert any("running already" in event.text for event in running.of(NoticeEvent))


async def test_r013_compact_while_the_agent_streams_stops_it_and_runs_once(tmp_path):
    def script(request: Request):
        if is_summary_request(request):
            return Reply(SUMMARY)
        slow = "keep going" in request.items[-1].text
        return Reply("fine " * 600, delay_per_event=0.05 if slow else 0)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await running.send("keep going")
        await running.until(StepStartedEvent, 7)
        await asyncio.sleep(0.3)
        finished = await compact(running)
        assert finished.outcome == "completed"
        assert len(running.of(CompactionStartEvent)) == 1
        outcomes = [event.outcome for event in running.of(TaskFinishedEvent)]
        assert outcomes[-2:] == ["interrupted", "completed"]
        await asyncio.sleep(0.2)
        assert running.runtime.executor.tasks.running(running.runtime.session_id) is None


async def test_r043_what_is_typed_during_a_compaction_is_sent_afterwards_in_order(tmp_path):
    def script(request: Request):
        return Reply(SUMMARY, delay=0.6) if is_summary_request(request) else Reply("fine " * 600)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await running.runtime.submit(CompactSessionOperation(session_id=running.runtime.session_id))
        await running.until(CompactionProgressEvent)
        for text in ("one", "two", "three"):
            await running.send(text)
        summary_request = running.server.requests[-1]
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [text_of(event.parts) for event in running.of(UserMessageEvent)][-3:] == ["one", "two", "three"]
        assert b"three" not in summary_request.raw, "R-045: queued text never enters the summary request"


async def test_what_was_cancelled_before_holds_nothing_back_that_is_typed_later(tmp_path):
    def script(request: Request):
        return Reply(SUMMARY, delay=0.6) if is_summary_request(request) else Reply("fine " * 600)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        session_id = running.runtime.session_id
        await running.runtime.submit(CompactSessionOperation(session_id=session_id))
        await running.until(CompactionProgressEvent)
        await running.runtime.submit(InterruptOperation(session_id=session_id))
        await running.until(CompactionEndEvent)
        await running.runtime.submit(CompactSessionOperation(session_id=session_id))
        await running.until(CompactionStartEvent, 2)
        await running.send("typed in the second")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert text_of(running.of(UserMessageEvent)[-1].parts) == "typed in the second"


async def test_r043_a_failed_compaction_leaves_the_texts_queued_or_sent(tmp_path):
    def script(request: Request):
        broken = HttpError(500, "broken", headers={"retry-after-ms": "50"})
        return broken if is_summary_request(request) else Reply("fine " * 600)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await running.runtime.submit(CompactSessionOperation(session_id=running.runtime.session_id))
        await running.send("still here")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        texts = [text_of(event.parts) for event in running.of(UserMessageEvent)]
        texts += [text_of(entry.parts) for entry in running.session.state.queue]
        assert "still here" in texts


@pytest.mark.parametrize(
    "bad",
    [
        Reply(""),
        Reply("## Goal\ncut", stop="max_tokens"),
        Reply("I will look", tool_calls=[Call("read", {"path": "x"})]),
        Reply("no", stop="refusal"),
        Reply("I'm sorry, but I can't help with that."),
        Reply("## Goal\n" + "a summary that is longer than all that it stands for " * 1500),
        HttpError(429, "You exceeded your current quota, please check your plan and billing details."),
        HttpError(400, "something else is wrong"),
    ],
)
async def test_r003_whatever_the_summariser_does_the_session_goes_on(tmp_path, bad):
    def script(request: Request):
        return bad if is_summary_request(request) else Reply("fine " * 600)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "digest"
        assert "## Goal" in entry.summary
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.requests[-1].refused
        assert any("condensed without a model" in event.text for event in running.of(NoticeEvent))


async def test_f14_no_words_meant_for_the_model_reach_the_user_or_the_log(tmp_path):
    advice = "do not go on with the work"
    async with agent(tmp_path, talk(summary="Ok, I run the tests now."), options={"window": 32_000}) as running:
        await fill(running)
        await compact(running)
        assert any(advice in request.items[-1].text for request in running.server.requests), "the model reads it"
        (notice,) = [event.text for event in running.of(NoticeEvent) if "condensed without a model" in event.text]
        assert "does not have the headings that were asked for" in notice
        assert not any(advice in repr(event) for event in running.events)
        assert advice.encode() not in log_of(running)


async def test_esc_during_a_threshold_compaction_gives_the_prompt_back(tmp_path):
    def script(request: Request):
        return Hang() if is_summary_request(request) else Reply("fine " * 2500)

    async with agent(tmp_path, script, options={"window": 16_000}) as running:
        for number in range(12):
            sending = asyncio.ensure_future(running.send(f"question {number} " + "because " * 300))
            await asyncio.sleep(0.1)
            if running.of(CompactionProgressEvent):
                break
            await sending
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(sending, 30)
        returned = running.of(PromptReturnedEvent)
        assert text_of(returned[-1].parts).startswith("question")
        assert not running.session.state.queue
        assert not compactions(running)


async def test_r028_after_compaction_and_restart_the_request_is_the_same(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            await compact(running)
            view = running.session.get_llm_history()
            await running.ask("one more")
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert not running.of(CompactionStartEvent), "R-101: resuming compacts nothing"
            resumed = running.session.get_llm_history()
            assert resumed[: len(view)] == view
            await running.ask("and again")
        before, after = server.requests[-2].body["messages"], server.requests[-1].body["messages"]
        assert after[: len(before)] == before


async def test_r005_compactions_that_are_of_no_use_stop(tmp_path):
    """T-05"""

    def script(request: Request):
        if is_summary_request(request):
            return Reply(SUMMARY)
        size = len(request.raw) // 4
        crowded = bool(crowded_already) or size > 40_000
        crowded_already.extend([True] * crowded)
        return Reply("fine", usage=Tokens(input=50_000 if crowded else size, output=10))

    crowded_already = []
    async with agent(tmp_path, script, options={"listed_window": 64_000}) as running:
        for number in range(20):
            await running.ask(f"question {number} " + "because " * (3000 if number < 9 else 3))
        assert len(running.of(CompactionStartEvent)) <= 3
        assert any("twice in a row" in event.text for event in running.of(NoticeEvent))


async def test_the_summary_is_a_system_message_and_old_texts_are_gone_from_the_view(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running, 8)
        await compact(running)
        view = running.session.get_llm_history()
        assert [type(message) for message in view[:2]] == [SystemMessage, SystemMessage]
        assert "Keep the tests green" in view[1].text
        first = compactions(running)[0].first_kept_index
        assert all(message.seq >= first for message in view[2:] if message.seq)


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_a_long_task_in_a_small_window_finishes_unattended(tmp_path, protocol):
    """100 steps in 16k: no request over the window, none refused, the request of the turn in each exactly once."""
    write_big_file(tmp_path, lines=300)
    options = {"window": 16_384}
    async with agent(tmp_path, reads(100), model=f"{protocol}/test", options=options) as running:
        settled = await running.ask("THE-LONG-TASK", timeout=240)
        assert settled.outcome == "completed", settled.error
        steps = step_requests(running.server)
        assert len(steps) == 101
        check_requests(running.server, 16_384)
        assert len(compactions(running)) >= 5
        assert {entry.rung for entry in compactions(running)} <= {"prepared", "same prefix", "serialised"}
        assert all(request.raw.count(b"THE-LONG-TASK") == 1 for request in steps)
        assert len(running.of(UserMessageEvent)) == 1
        assert len(running.of(TaskSettledEvent)) == 1


@pytest.mark.parametrize("again", ["prompt", "compaction"])
async def test_the_session_is_free_for_whoever_hears_of_the_end(tmp_path, again):
    """What a listener of the end submits is carried out, not refused."""
    submitted: list[asyncio.Task[str]] = []

    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:

        def listen(event):
            if not isinstance(event, CompactionEndEvent) or submitted:
                return
            operation = CompactSessionOperation(session_id=running.runtime.session_id, focus="more")
            work = running.send("at once") if again == "prompt" else running.runtime.submit(operation)
            submitted.append(asyncio.ensure_future(work))

        running.runtime.subscribe(listen)
        await fill(running)
        finished = await compact(running)
        kinds = [type(event) for event in running.events]
        assert kinds.index(CompactionEndEvent) < running.events.index(finished)
        served = await asyncio.wait_for(running.runtime.wait_for(await submitted[0]), 60)
        assert served is not None
        assert served.outcome == "completed"
        assert not any("running already" in event.text for event in running.of(NoticeEvent))
        if again == "prompt":
            assert [text_of(event.parts) for event in running.of(UserMessageEvent)][-1] == "at once"
        else:
            assert len(running.of(CompactionStartEvent)) == 2
