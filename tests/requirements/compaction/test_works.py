"""Compaction always works (R-004 to R-016)."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator

import pytest

from tenuto.compaction.measure.budget import budget_for
from tenuto.compaction.ways.strategies import ToolResultHidingCompaction
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.event import CompactionProgressEvent, NoticeEvent, PromptReturnedEvent
from tenuto.protocol.message import NoticeEntry
from tenuto.protocol.model import ModelClient, ModelFacts, ModelRequest, StreamPart
from tenuto.protocol.operation import ChangeModeOperation, SetTitleOperation
from tenuto.protocol.part import text_of
from tenuto.text.estimate import estimate_text
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.program import TENUTO
from tests.requirements.compaction.support import (
    IN_PLACE,
    LONG_ANSWER,
    SUMMARY,
    begin_compaction,
    change_model,
    compact,
    compactions,
    ends,
    fill,
    in_turn,
    is_summary_request,
    last_instruction,
    log_of,
    reads,
    starts,
    step_requests,
    summary_requests,
    talk,
    until,
    write_big_file,
    write_settings,
)
from tests.server import Cut, Hang, HttpError, Reply, Request, ScriptedServer, ServerThread, Tokens

FIXED = "Follow this rule always. " * 4_350
"""About 30 000 tokens that no compaction can shorten."""


# --- R-006 ---


async def test_r004_compacted_is_said_only_of_a_request_under_the_trigger(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        await compact(running)
        (end,) = ends(running)
        trigger = running.runtime.live.budget().trigger
        assert end.error is None
        assert end.tokens_after <= trigger
        await running.ask("next")
        assert step_requests(running)[-1].tokens <= trigger


async def test_r004_a_compaction_that_leaves_too_much_says_so_with_the_sizes(tmp_path):
    """The fixed parts are just under the trigger: what nothing brings under it has to come under a higher limit."""
    rules = "Follow this rule always. " * 3_450
    async with agent(tmp_path, talk(), options={"window": 32_000}, extra_prompt=rules) as running:
        live = running.runtime.live
        for number in range(6):
            await running.ask(f"question {number} " + "because " * 300)
            if starts(running):
                break
        assert live.measure().fixed < live.budget().trigger
        assert ends(running)
        for end in ends(running):
            assert end.entry is not None
            limit = end.entry.trigger
            assert live.budget().trigger < limit < 32_000
            under = end.tokens_after <= limit
            assert under == (end.error is None), (end.tokens_after, end.error)
            assert under or f"{limit:,}" in end.error


async def test_r005_at_most_two_compactions_of_no_use_and_the_message_names_what_is_too_big(tmp_path):
    """T-05: after each compaction the provider reports 99 % of the window, for 50 turns."""

    def answer(request: Request) -> Reply:
        full = len(request.raw) > 4 * 40_000 or bool(summaries)
        return Reply("fine", usage=Tokens(input=63_000 if full else len(request.raw) // 4, output=10))

    def summary(_request: Request) -> Reply:
        summaries.append(True)
        return Reply(SUMMARY)

    summaries: list[bool] = []
    write_settings(tmp_path, "")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Be careful. " * 200)
    async with agent(tmp_path, talk(answer, summary), options={"listed_window": 64_000}) as running:
        for number in range(50):
            await running.ask(f"question {number} " + "because " * (2_500 if number < 16 else 1))
        assert 1 <= len(starts(running)) <= 2
        said = [event.text for event in running.of(NoticeEvent) if "twice in a row" in event.text]
        assert len(said) == 1
        for part in ("system prompt", "instruction", "tools", "conversation"):
            assert part in said[0]
        assert str(summaries.count(True)) == "2"
        await compact(running)
        assert not running.runtime.live.compaction.automatic.is_stopped, "the user acted"


async def test_r006_fixed_parts_over_the_usable_window_are_named_and_not_compacted(tmp_path):
    """T-04: system and tools take 30 000 of 32 000 tokens."""
    async with agent(tmp_path, talk(Reply("ok")), options={"window": 32_000}, extra_prompt=FIXED) as running:
        assert (await running.ask("hello")).outcome == "completed"
        assert not summary_requests(running)
        assert len(running.server.requests) == 1
        assert not running.server.requests[0].refused
        assert running.runtime.live.measure().fixed > running.runtime.live.budget().trigger
        assert not starts(running), "over the trigger by themselves: it waits for the window"
        await compact(running)
        (end,) = ends(running)
        assert end.needless
        assert re.search(r"system prompt 2\d,\d{3}, tools [\d,]{3,}", end.error), end.error
        assert not summary_requests(running)


async def test_r006_fixed_parts_over_the_whole_window_make_no_call_at_all(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 24_000}, extra_prompt=FIXED) as running:
        assert (await running.ask("hello")).outcome == "failed"
        assert not running.server.requests
        assert "system prompt" in running.of(PromptReturnedEvent)[-1].reason


async def test_r006_a_prompt_over_the_trigger_is_no_fixed_part_where_compacting_makes_room_for_it(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running, 9)
        assert not compactions(running)
        live = running.runtime.live
        prompt = "because " * 12_600
        settled = await running.ask(prompt)
        assert live.budget().trigger < 25_200, "two tokens a word"
        assert settled.outcome == "completed", settled.error
        assert compactions(running)[0].rung == "same prefix"
        assert not running.server.refusals
        assert any(last_instruction(request) == prompt.strip() for request in step_requests(running))


# --- R-007, R-009 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("window", "output"), [(65_536, 65_536), (16_384, 16_000)])
async def test_r007_a_model_whose_output_limit_is_its_window_finishes_a_task(tmp_path, protocol, window, output):
    """T-06"""
    write_big_file(tmp_path)
    write_settings(tmp_path, f'[models."{protocol}/test"]\nmax_output_tokens = {output}\n')
    options = {"window": window, "max_output": output}
    async with agent(tmp_path, talk(reads(10)), model=f"{protocol}/test", options=options) as running:
        settled = await running.ask("read it in ten steps")
        assert settled.outcome == "completed", settled.error
        assert len(step_requests(running)) == 11
        assert not running.server.refusals
        assert running.runtime.live.budget().trigger >= window // 2
        for request in running.server.requests:
            asked = request.body.get("max_tokens") or request.body.get("max_completion_tokens")
            asked = asked or request.body.get("max_output_tokens") or 0
            assert asked
            assert request.tokens + asked <= window


def test_r007_no_listed_output_limit_makes_the_usable_window_small():
    for window in (1_000, 8_192, 32_768, 65_536, 1_000_000):
        for output in (1, window // 2, window, 4 * window):
            facts = ModelFacts(provider="p", name="m", context_window=window, max_output_tokens=output)
            assert budget_for(facts, CompactionSettings(), 10**9).trigger >= window // 2


@pytest.mark.parametrize("length", [40_000, 400_000])
async def test_r009_a_summary_over_its_budget_cannot_reach_the_trigger(tmp_path, length):
    lines = "".join(f"- fact number {number} about the work\n" for number in range(length // 36))
    huge = SUMMARY.replace("- what was learned", f"{lines}- what was learned")
    async with agent(tmp_path, talk(summary=Reply(huge, chunk_size=4_000)), options={"window": 64_000}) as running:
        await fill(running, 12, words=900)
        await compact(running)
        budget = running.runtime.live.budget()
        (entry,) = compactions(running)
        assert estimate_text(entry.summary) <= budget.max_summary
        assert entry.tokens_after < budget.trigger
        await fill(running, 2)
        assert len(compactions(running)) == 1
        assert not running.server.refusals


# --- another model with a smaller window ---

SMALL = '[models."openai-chat/test-small"]\ncontext_window = 16000\n'


def limit_small(request: Request) -> HttpError | None:
    """The refusal of what does not fit the small model."""
    if request.body["model"] != "test-small" or request.tokens <= 16_000:
        return None
    text = f"maximum context length is 16000 tokens. However, your messages resulted in {request.tokens} tokens."
    return HttpError(400, f"This model's {text}")


async def test_r011_after_a_switch_to_a_smaller_window_the_old_model_summarises_the_whole(tmp_path):
    write_settings(tmp_path, SMALL)
    refused: list[HttpError] = []

    def answer(request: Request):
        refusal = limit_small(request)
        refused.extend([refusal] if refusal else [])
        return refusal or Reply(LONG_ANSWER)

    async with agent(tmp_path, talk(answer), options={"listed_window": 128_000}) as running:
        await fill(running, 14)
        assert step_requests(running)[-1].tokens > 16_000
        await change_model(running, "openai-chat/test-small")
        settled = await running.ask("and now with the small one")
        assert settled.outcome == "completed", settled.error
        assert [request.body["model"] for request in summary_requests(running)] == ["test"]
        assert step_requests(running)[-1].body["model"] == "test-small"
        assert not refused
        assert compactions(running)[0].rung == "same prefix"


async def test_r011_with_the_old_model_gone_the_new_one_summarises_in_pieces(tmp_path):
    write_settings(tmp_path, SMALL)
    refused: list[HttpError] = []

    def answer(request: Request):
        refusal = limit_small(request)
        refused.extend([refusal] if refusal else [])
        return refusal or Reply(LONG_ANSWER)

    def summary(request: Request):
        if request.body["model"] == "test":
            return HttpError(404, "The model `test` does not exist")
        refusal = limit_small(request)
        refused.extend([refusal] if refusal else [])
        return refusal or Reply(SUMMARY)

    async with agent(tmp_path, talk(answer, summary), options={"listed_window": 128_000}) as running:
        await fill(running, 24)
        await change_model(running, "openai-chat/test-small")
        settled = await running.ask("and now with the small one")
        assert settled.outcome == "completed", settled.error
        pieces = [request for request in summary_requests(running) if request.body["model"] == "test-small"]
        assert len(pieces) > 1
        assert not refused
        assert compactions(running)[0].rung == "serialised"


# --- R-012, R-014 ---


async def test_r012_a_failed_automatic_compaction_waits_and_is_shown_once_not_per_turn(tmp_path):
    """A strategy that only hides results has nothing to hide."""
    only_hiding = ToolResultHidingCompaction()
    async with agent(tmp_path, talk(Reply("ok")), options={"window": 32_000}, compaction=only_hiding) as running:
        await running.ask("hello" + " please" * 12_400)
        for number in range(6):
            assert (await running.ask(f"hello {number}" + " please" * 50)).outcome == "completed"
        assert len(step_requests(running)) == 7
        assert len(starts(running)) == len(ends(running)) == 1
        assert ends(running)[0].error


async def test_r012_within_a_task_it_waits_until_there_is_a_tenth_more_and_is_shown_once_each(tmp_path):
    write_big_file(tmp_path)
    only_hiding, options = ToolResultHidingCompaction(), {"window": 32_000}
    async with agent(tmp_path, talk(reads(5)), options=options, compaction=only_hiding) as running:
        settled = await running.ask("read it" + " please" * 11_800, timeout=30)
        assert settled.outcome == "completed", settled.error
        assert sum(not request.refused for request in step_requests(running)) == 6
        before, between, *_ = ends(running)
        assert before.error
        assert before.entry is None
        assert between.tokens_before >= 1.1 * before.tokens_before
        told = [event.text for event in running.of(NoticeEvent) if before.error in event.text]
        assert not told, "the end event shows it; a notice as well would be twice"
        kept = [entry.text for entry in running.session.entries() if isinstance(entry, NoticeEntry)]
        assert len(kept) == len(set(kept)) > 0, "for a resumed transcript, each once"


async def test_r014_what_happens_during_a_compaction_does_not_throw_its_summary_away(tmp_path):
    async with agent(tmp_path, talk(summary=Reply(SUMMARY, delay=0.4)), options={"window": 32_000}) as running:
        await fill(running)
        session_id = running.runtime.session_id
        submission = await begin_compaction(running)
        await running.until(CompactionProgressEvent)
        await running.send("typed meanwhile")
        await running.runtime.submit(ChangeModeOperation(session_id=session_id, mode="plan"))
        await running.runtime.submit(SetTitleOperation(session_id=session_id, title="meanwhile"))
        await change_model(running, "openai-chat/test-small")
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 60)
        assert finished.outcome == "completed"
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [entry.rung for entry in compactions(running)] == ["same prefix"]
        assert len(summary_requests(running)) == 1, "paid for once"
        last = step_requests(running)[-1]
        assert "Keep the tests green" in last.raw.decode()
        assert last_instruction(last) == "typed meanwhile"


# --- R-015 ---

OFF = {"TENUTO_COMPACTION__ENABLED": "false"}


async def test_r015_switched_off_an_overflow_starts_none_and_the_error_offers_the_choices(tmp_path):
    options = {"window": 12_000, "listed_window": 200_000}
    async with agent(tmp_path, talk(), model="openai/test", options=options, environ=OFF) as running:
        for number in range(8):
            settled = await running.ask(f"question {number} " + "because " * 600)
            if settled.outcome == "failed":
                break
        assert running.server.refusals
        assert settled.outcome == "failed"
        assert not starts(running)
        assert "/compact" in settled.error
        assert "/model" in settled.error


async def test_r015_switched_off_a_full_window_starts_none_and_the_reason_offers_the_choices(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 12_000}, environ=OFF) as running:
        for number in range(8):
            settled = await running.ask(f"question {number} " + "because " * 600)
            if settled.outcome == "failed":
                break
        assert settled.outcome == "failed"
        assert not starts(running)
        assert "/compact" in settled.error
        assert "/model" in settled.error
        await compact(running)
        assert compactions(running), "by hand it works"
        assert (await running.ask("go on")).outcome == "completed"


# --- R-016 ---


@pytest.mark.parametrize(
    "failure",
    [Cut(Reply(SUMMARY), 4), HttpError(400, "no such thing")],
    ids=["cut", "error"],
)
async def test_r016_an_error_in_the_middle_leaves_no_half_compaction(tmp_path, failure):
    """Each failure is followed by one that is final, so that nothing waits for retries."""
    script = talk(summary=in_turn(failure, then=HttpError(401, "invalid x-api-key")))
    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        before = log_of(running)
        await compact(running)
        (entry,) = compactions(running)
        assert log_of(running).startswith(before)
        assert entry.rung == "digest", "the half answer is not taken for a summary"
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals


class FaultyClient:
    """The real client, except that summary requests meet a fault of the program itself."""

    def __init__(self, real: ModelClient) -> None:
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        if not request.tools or IN_PLACE in text_of(request.messages[-1].parts):
            raise KeyError("a fault of ours")
        return self._real.stream(request)


async def test_r016_a_fault_in_the_middle_ends_what_was_begun_and_changes_nothing(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        models = running.runtime.live.models
        models._clients["openai-chat"] = FaultyClient(models.client("openai-chat"))
        before = log_of(running)
        assert (await compact(running)).outcome == "failed"
        assert len(starts(running)) == len(ends(running)) == 1
        assert "internal error" in ends(running)[0].error
        assert log_of(running) == before
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals


async def test_r016_killed_in_the_middle_the_session_is_as_before(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            view = list(running.session.get_llm_history())
            log = running.session.directory / "events.jsonl"
        before = log.read_bytes()
    with ServerThread(talk(summary=Hang()), window=32_000) as slow:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        command = [*TENUTO, "-p", "/compact", "-c", "--model", "openai-chat/test"]
        process = subprocess.Popen(
            [*command, "--mode", "auto"],
            cwd=tmp_path / "work",
            env=environ | slow.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await until(lambda: any(map(is_summary_request, slow.requests)), 20)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(120)
    assert log.read_bytes() == before
    async with ScriptedServer(talk(), window=32_000) as server, reopened(tmp_path, server, resume_latest=True) as again:
        assert list(again.session.get_llm_history()) == view
        assert not starts(again), "nothing is pending"
        assert (await again.ask("go on")).outcome == "completed"
        assert not summary_requests(again)
        await compact(again)
        assert len(compactions(again)) == 1
