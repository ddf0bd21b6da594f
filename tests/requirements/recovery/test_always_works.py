"""Compaction cannot fail (T-01 to T-06, R-001 to R-003, R-006, R-010, R-012): seen from the server."""

from __future__ import annotations

import re

import pytest

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import CompactionEntry
from tests.core.harness import PROTOCOLS, agent
from tests.requirements.compaction.support import SUMMARY, compact, ends, log_of, reads, starts, write_big_file
from tests.requirements.recovery.ladder import (
    REASONS,
    SUMMARISED,
    answering,
    asks_for_summary,
    check_all_providers,
    made_smaller,
    options_for,
    provoke,
    step_answer,
    step_requests,
    summary_requests,
    told,
    with_history,
    words,
)
from tests.requirements.recovery.test_ladder_failures import FAULTS
from tests.server import HttpError, Reply, Request, Tokens

TOO_LONG = HttpError(400, "Your input exceeds the context window of this model.")


def output_of(request: Request) -> int:
    body = request.body
    return body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens") or 0


# --- T-01, R-001 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t01_r001_a_history_of_80k_in_a_window_of_32k_is_compacted_within_it(tmp_path, protocol):
    script = answering(Reply("fine"), Reply(SUMMARY))
    model = f"{protocol}/test"
    async with with_history(tmp_path, script, 50, size=800, model=model, options={"window": 21_334}) as running:
        assert running.runtime.live.measure().tokens >= 80_000
        assert (await compact(running)).outcome == "completed"
        (entry,) = made_smaller(running)
        assert isinstance(entry, CompactionEntry)
        assert entry.rung == "serialised", "in parts"
        assert len(summary_requests(running.server)) >= 3
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals
        for request in running.server.requests:
            assert request.tokens + output_of(request) <= 21_334
        await check_all_providers(running)


async def test_r001_a_prompt_into_such_a_history_compacts_first_and_is_answered(tmp_path):
    script = answering(Reply("fine"), Reply(SUMMARY))
    async with with_history(tmp_path, script, 50, size=800, options={"window": 21_334}) as running:
        assert (await running.ask("go on")).outcome == "completed"
        assert [entry.rung for entry in made_smaller(running)] == ["serialised"]
        assert max(request.tokens + output_of(request) for request in running.server.requests) <= 21_334
        assert not running.server.refusals


# --- T-02, R-002 ---


@pytest.mark.parametrize("reason", REASONS)
async def test_t02_r002_what_is_refused_as_too_long_is_asked_for_again_with_less(tmp_path, reason):
    refused: list[Request] = []

    def summary(request: Request) -> Reply | HttpError:
        if len(refused) == 2:
            return Reply(SUMMARY)
        refused.append(request)
        return TOO_LONG

    script = answering(step_answer(reason), summary)
    turns = 24 if reason == "overflow" else 12
    async with with_history(tmp_path, script, turns, options=options_for(reason)) as running:
        assert await provoke(running, reason) == "completed"
        (entry,) = made_smaller(running)
        assert entry.rung == "serialised"
        first, second, third, *_ = summary_requests(running.server)
        assert len({first.raw, second.raw, third.raw}) == 3, "never the same bytes"
        assert first.tokens > second.tokens > third.tokens
        assert not told(running), "it worked in the end"
        assert (await running.ask("go on")).outcome == "completed"


async def test_r002_at_most_three_times_with_less_and_then_without_a_model(tmp_path):
    script = answering(Reply("fine"), TOO_LONG)
    async with with_history(tmp_path, script, 12, options={"window": 21_334}) as running:
        assert await provoke(running, "manual") == "completed"
        asked = [request for request in summary_requests(running.server) if not request.body.get("tools")]
        assert 2 <= len(asked) <= 4
        sizes = [request.tokens for request in asked]
        assert sizes == sorted(set(sizes), reverse=True)
        assert [entry.rung for entry in made_smaller(running)] == ["digest"]


# --- T-03, R-003, R-010, R-012 ---


async def test_t03_r003_a_quota_that_is_used_up_is_no_loop_and_one_notice(tmp_path):
    script = answering(Reply("fine"), FAULTS["quota"])
    async with with_history(tmp_path, script, 20, options={"window": 21_334}) as running:
        for number in range(6):
            assert (await running.ask(f"question {number} {words(900)}")).outcome == "completed"
        made = made_smaller(running)
        assert made
        assert {entry.rung for entry in made} == {"digest"}
        assert len(summary_requests(running.server)) == len(made), "each compaction asks once"
        assert len([text for text in told(running) if "without a model" in text]) == len(made)
        assert len(made) <= 2
        assert not running.server.refusals


@pytest.mark.parametrize("fault", ["empty", "truncated", "refusal"])
async def test_r010_a_summary_that_is_none_is_asked_for_once_more_with_the_fault_named(tmp_path, fault):
    failed: list[Request] = []

    def summary(request: Request) -> Reply | HttpError:
        if failed:
            return Reply(SUMMARY)
        failed.append(request)
        answer = FAULTS[fault]
        assert isinstance(answer, Reply)
        return answer

    async with with_history(tmp_path, answering(Reply("fine"), summary), 12, options={"window": 21_334}) as running:
        before = log_of(running)
        assert await provoke(running, "manual") == "completed"
        first, second = summary_requests(running.server)
        assert len(second.raw) > len(first.raw), "the same request, and what was wrong"
        assert {entry.rung for entry in made_smaller(running)} <= SUMMARISED
        assert log_of(running).startswith(before)
        assert not told(running)


# --- T-04, R-006 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t04_r006_fixed_parts_of_30k_in_a_window_of_32k_cost_one_call_and_are_named(tmp_path, protocol):
    """They fit the window: the prompt is sent. They are over the trigger: no compaction could help, and it says so."""
    rules = "Follow this rule always. " * 4_300
    options = {"window": 32_000}
    script = answering(Reply("ok"), Reply(SUMMARY))
    async with agent(tmp_path, script, model=f"{protocol}/test", options=options, extra_prompt=rules) as running:
        await running.ask("hello")
        assert running.runtime.live.measure().fixed >= 28_000
        assert not starts(running), "it waits for the window"
        await compact(running)
        assert len(running.server.requests) <= 1
        said = [end.error or "" for end in ends(running)] + [event.text for event in running.of(NoticeEvent)]
        assert any(re.search(r"system prompt 2\d,\d{3}, tools [\d,]{3,}", text) for text in said), said
        assert not made_smaller(running)


# --- T-05 ---


async def test_t05_fifty_turns_at_99_percent_compact_at_most_twice_and_say_why(tmp_path):
    summaries: list[Request] = []

    def summary(request: Request) -> Reply:
        summaries.append(request)
        return Reply(SUMMARY)

    def step(request: Request) -> Reply:
        return Reply("fine", usage=Tokens(input=63_360 if summaries else request.tokens, output=10))

    async with with_history(tmp_path, answering(step, summary), 60, options={"listed_window": 64_000}) as running:
        for number in range(50):
            settled = await running.ask(f"turn {number}")
            assert settled.outcome == "completed", settled.error
        assert 1 <= len(starts(running)) <= 2
        assert len(made_smaller(running)) <= 2
        said = [text for text in told(running) if "twice in a row" in text]
        assert len(said) == 1
        for part in ("system prompt", "tools", "conversation"):
            assert part in said[0]
        assert len(step_requests(running.server)) == 50


async def test_r005_long_answers_are_not_held_against_the_compaction_before_them(tmp_path):
    """What counts is the request that came after it; the answer is new, and the next compaction's business."""
    script = answering(Reply(words(7_000), chunk_size=4_000), Reply(SUMMARY))
    async with with_history(tmp_path, script, 14, options={"window": 32_000}) as running:
        for number in range(12):
            settled = await running.ask(f"turn {number} {words(2_500)}")
            assert settled.outcome == "completed", settled.error
        assert len(made_smaller(running)) >= 6
        assert not [text for text in told(running) if "twice in a row" in text]
        assert not running.server.refusals


# --- T-06 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t06_r007_a_listed_output_as_large_as_the_window_does_not_stop_a_task_of_ten_steps(tmp_path, protocol):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(f'[models."{protocol}/test"]\nmax_output_tokens = 65536\n')
    write_big_file(tmp_path)
    options = {"window": 65_536, "max_output": 65_536}
    script = answering(reads(10), Reply(SUMMARY))
    async with agent(tmp_path, script, model=f"{protocol}/test", options=options) as running:
        settled = await running.ask("read it in ten steps")
        assert settled.outcome == "completed", settled.error
        assert len(step_requests(running.server)) == 11
        assert not any(map(asks_for_summary, running.server.requests)), "nothing has to make room"
        assert not running.server.refusals
        assert all(request.tokens + output_of(request) <= 65_536 for request in running.server.requests)
