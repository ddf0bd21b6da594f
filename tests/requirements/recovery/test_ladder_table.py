"""Which rung holds: each one of the ladder in turn is the first that can, and it is the one that is recorded."""

from __future__ import annotations

import re
import time

import msgspec
import pytest

from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.session import Session
from tests.core.harness import Agent, reopened
from tests.requirements.compaction.support import SUMMARY, ends, write_settings
from tests.requirements.recovery.ladder import (
    MODEL,
    SUMMARISED,
    answering,
    check_all_providers,
    made_smaller,
    provoke,
    step_requests,
    summary_requests,
    told,
    with_history,
    words,
    write_history,
)
from tests.requirements.recovery.test_ladder_failures import FAULTS
from tests.server import HttpError, Reply, Request, ScriptedServer

WIDE = {"window": 64_000}
HOPELESS = {"quota", "no such model", "auth", "rate limit for an hour"}
LATER = 3_600.0
"""Seconds after which no provider has the prefix in its cache any more."""


def write_steps(tmp_path, steps: int, size: int) -> None:
    """Leave a session with so many steps of one call each, its results of `size` tokens."""
    write_history(tmp_path, 1)
    (directory,) = (tmp_path / "home" / "sessions").glob("*/*/events.jsonl")
    session = Session.open(directory.parent, durability="none")
    session.append(UserMessage(parts=(TextPart(text="read it all"),)))
    for number in range(steps):
        call = ToolCallPart(id=f"call-{number}", name="read", arguments=f'{{"path": "part-{number}.txt"}}')
        session.append(AssistantMessage(parts=(call,), model=MODEL, stop_reason="tool_use"))
        result = f"RESULT-{number} {words(size)}"
        session.append(ToolResultMessage(call_id=call.id, name="read", parts=(TextPart(text=result),)))
    session.append(AssistantMessage(parts=(TextPart(text="read"),), model=MODEL))
    session.close()


def in_place(request: Request) -> bool:
    """Say whether a summary is asked for behind the conversation itself (rung 3)."""
    return bool(request.body.get("tools"))


async def check_request(running: Agent, window: int) -> Request:
    """One more prompt is answered by a request under the window that every provider would take."""
    assert (await running.ask("what is next?")).outcome == "completed"
    last = step_requests(running.server)[-1]
    assert last.tokens <= window
    assert not running.server.refusals
    assert not running.server.faults
    await check_all_providers(running)
    return last


# --- rung 1 ---


@pytest.mark.parametrize("cache", ["cold", "warm"])
async def test_hiding_alone_where_it_brings_enough_or_the_cache_is_cold(tmp_path, cache):
    """Cold: what the five newest groups leave is enough. Warm: the saving is over 12 500 tokens."""
    write_steps(tmp_path, 20, 2_200)
    clock = {"clock": lambda: time.time() + LATER} if cache == "cold" else {}
    async with ScriptedServer(answering(Reply("fine"), Reply(SUMMARY)), **WIDE) as server:
        async with reopened(tmp_path, server, resume_latest=True, **clock) as running:
            assert (await running.ask("and now? " + words(4_000))).outcome == "completed"
            (entry,) = made_smaller(running)
            assert isinstance(entry, ViewEditEntry)
            assert (entry.rung, entry.reason, len(entry.edits)) == ("hide", "threshold", 15)
            assert not summary_requests(server), "it costs no call"
            assert len(ends(running)) == 1
            assert not told(running)
            raw = (await check_request(running, 64_000)).raw
            assert len(re.findall(rb"RESULT-\d+ word", raw)) == 5
            assert b"RESULT-19" in raw


async def test_with_a_warm_cache_a_small_saving_is_not_worth_a_changed_prefix(tmp_path):
    write_steps(tmp_path, 8, 4_000)
    async with ScriptedServer(answering(Reply("fine"), Reply(SUMMARY)), **WIDE) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert (await running.ask("and now? " + words(15_000))).outcome == "completed"
            (entry,) = made_smaller(running)
            assert entry.rung in SUMMARISED
            await check_request(running, 64_000)


# --- rungs 3 and 4, and 7 below them ---


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_fails_in_place_is_asked_for_serialised(tmp_path, fault):
    """Only a model that cannot be used at all is not asked a second time: then the digest holds."""
    script = answering(Reply("fine"), lambda request: FAULTS[fault] if in_place(request) else Reply(SUMMARY))
    async with with_history(tmp_path, script, 12, options={"window": 21_334}) as running:
        assert await provoke(running, "manual") == "completed"
        (entry,) = made_smaller(running)
        asked = [in_place(request) for request in summary_requests(running.server)]
        assert asked[0], "the prefix cache is warm"
        assert asked == sorted(asked, reverse=True), "never back up the ladder"
        assert entry.rung == ("digest" if fault in HOPELESS else "serialised")
        assert len(ends(running)) == 1
        assert len(told(running)) <= 1
        await check_request(running, 21_334)


async def test_r042_a_summariser_that_cannot_be_used_falls_back_to_the_main_model(tmp_path):
    """It is named once, and nothing else changes."""
    write_settings(tmp_path, '[compaction]\nmodel = "openai/test-small"\n')
    script = answering(
        Reply("fine"),
        lambda request: HttpError(401, "invalid key") if request.protocol == "responses" else Reply(SUMMARY),
    )
    async with with_history(tmp_path, script, 12, options={"window": 21_334}) as running:
        assert await provoke(running, "manual") == "completed"
        (entry,) = made_smaller(running)
        assert entry.rung in SUMMARISED
        assert [request.protocol for request in summary_requests(running.server)] == ["responses", "chat"]
        await check_request(running, 21_334)


async def test_r042_a_weaker_summariser_is_asked_only_for_what_fits_its_window(tmp_path):
    """History of 20 000 tokens, a summariser with 8 000: it is folded in parts, none over its window."""
    write_settings(
        tmp_path,
        '[compaction]\nmodel = "openai-chat/test-small"\n[models."openai-chat/test-small"]\ncontext_window = 8000\n',
    )
    async with with_history(
        tmp_path, answering(Reply("fine"), Reply(SUMMARY)), 24, options={"window": 64_000}
    ) as running:
        assert await provoke(running, "manual") == "completed"
        (entry,) = made_smaller(running)
        assert entry.rung == "serialised"
        asked = summary_requests(running.server)
        assert len(asked) >= 2
        assert {request.body["model"] for request in asked} == {"test-small"}
        for request in asked:
            output = request.body.get("max_completion_tokens") or request.body["max_tokens"]
            assert request.tokens + output <= 8_000
        assert not told(running)
        assert step_requests(running.server) == []
        await check_request(running, 64_000)


async def test_r042_a_summariser_whose_name_means_nothing_is_told_and_passed_over(tmp_path):
    write_settings(tmp_path, '[compaction]\nmodel = "nobody/nothing"\n')
    async with with_history(
        tmp_path, answering(Reply("fine"), Reply(SUMMARY)), 12, options={"window": 21_334}
    ) as running:
        assert await provoke(running, "manual") == "completed"
        (entry,) = made_smaller(running)
        assert entry.rung in SUMMARISED
        assert ["nobody/nothing" in text for text in told(running)] == [True]


async def test_a_model_that_cannot_summarise_condenses_and_says_nothing_of_a_failure(tmp_path):
    write_history(tmp_path, 12, model="offline/tenuto")
    async with ScriptedServer([], window=21_334) as server:
        async with reopened(tmp_path, server, resume_latest=True, model="offline/tenuto") as running:
            assert await provoke(running, "manual") == "completed"
            (entry,) = made_smaller(running)
            assert entry.rung == "digest"
            assert not told(running)
            assert (await running.ask("hello")).outcome == "completed"
            assert not server.requests


# --- rung 6 ---


async def test_r001_one_huge_result_of_another_day_is_shortened_and_the_rest_summarised(tmp_path):
    """A session that came from elsewhere: a result larger than the whole window, in its only turn."""
    write_steps(tmp_path, 1, 60_000)
    async with ScriptedServer(answering(Reply("fine"), Reply(SUMMARY)), window=21_334) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert (await running.ask("and now?")).outcome == "completed"
            rungs = [entry.rung for entry in made_smaller(running)]
            assert rungs[0] == "truncate"
            assert all(request.tokens <= 21_334 for request in server.requests)
            (edit, *_rest) = made_smaller(running)[0].edits
            whole = running.session.find(edit.target)
            assert isinstance(whole, ToolResultMessage)
            assert len(msgspec.json.encode(whole)) > 200_000, "the history keeps it whole"
            await check_request(running, 21_334)


# --- below the ladder ---


async def test_where_nothing_can_be_made_smaller_the_error_names_sizes_and_ways_out(tmp_path):
    """The provider refuses whatever it is sent: a bounded number of tries, each smaller, then one readable error."""
    refuse = [True]

    def step(_request: Request) -> Reply | HttpError:
        return HttpError(400, "Your input exceeds the context window of this model.") if refuse else Reply("fine")

    script = answering(step, FAULTS["quota"])
    async with with_history(tmp_path, script, 24, options={"listed_window": 200_000}) as running:
        settled = await running.ask("and now?")
        assert settled.outcome == "failed"
        for words_of_it in ("tokens", "system prompt", "conversation", "/model"):
            assert words_of_it in settled.error
        sizes = [request.tokens for request in step_requests(running.server)]
        assert 2 <= len(sizes) <= 5
        assert sizes == sorted(set(sizes), reverse=True), "never the same size twice"
        assert {entry.rung for entry in made_smaller(running) if isinstance(entry, CompactionEntry)} == {"digest"}
        refuse.clear()
        await check_request(running, 200_000)
