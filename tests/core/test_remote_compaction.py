"""The provider's own compaction in whole sessions, against a server as strict as the real ones (seed 002)."""

from __future__ import annotations

import asyncio
import re
from itertools import count
from pathlib import Path

import pytest

from tenuto.core.compacting.undo import redo_compaction, undo_compaction
from tenuto.core.state.windows import change_model, find_model
from tenuto.protocol.event import CompactionEndEvent, NoticeEvent
from tests.core.compacting import (
    LONG_ANSWER,
    begin_compaction,
    check_requests,
    compact,
    compactions,
    fill,
    interrupt,
    reads,
    until,
    write_big_file,
)
from tests.core.harness import agent, reopened
from tests.core.remote_compacting import (
    REMOTE_SUMMARY,
    WAYS,
    WINDOW,
    asked,
    block_of,
    choose,
    remote,
    sent,
    steps,
    warnings,
)
from tests.core.test_compaction_crash import victim
from tests.core.test_pins import command
from tests.server import Hang, HttpError, Reply, Request, ScriptedServer
from tests.server.reply import AnyReply, Tokens


@pytest.mark.parametrize(("provider", "way"), WAYS)
async def test_the_provider_compacts_by_hand_and_its_items_go_back_unchanged(tmp_path: Path, provider: str, way: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    async with agent(tmp_path, remote(), model=model, options={"window": WINDOW}) as running:
        await fill(running, 5)
        before = steps(running.server)[-1]
        assert (await compact(running)).outcome == "completed"
        (entry,) = compactions(running)
        (request,) = asked(running.server)
        assert (entry.rung, entry.reason, running.server.refusals) == ("remote", "manual", [])
        shared = [one for one, other in zip(before.prefix_items, request.prefix_items, strict=False) if one == other]
        if way == "request":
            assert len(shared) >= len(request.prefix_items) - 2
            assert request.tool_names == before.tool_names
        assert "%" in await command(running, "/context")
        await running.ask("go on")
        await running.ask("and on")
        check_requests(running.server, WINDOW)
        after = steps(running.server)[-2:]
        assert block_of(after[0]) == block_of(after[1])
        assert "said the provider" in sent(after[0])
        assert "question 0" in sent(after[0])
        assert running.server.prefix_breaks()[-1][0] == after[0].index
        assert warnings(running) == []


@pytest.mark.parametrize(("provider", "way"), WAYS)
async def test_r056_undone_the_next_request_is_the_one_without_it(tmp_path: Path, provider: str, way: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    async with agent(tmp_path, remote(), model=model, options={"window": 3 * WINDOW}) as running:
        await fill(running, 5)
        view = list(running.session.get_llm_history())
        await compact(running)
        assert running.session.get_llm_history() != view
        undo_compaction(running.runtime.live)
        assert running.session.get_llm_history() == view
        before = steps(running.server)[-1].prefix_items
        await running.ask("go on")
        assert running.server.requests[-1].prefix_items[: len(before)] == before
        assert b'"compaction"' not in running.server.requests[-1].raw
        redo_compaction(running.runtime.live)
        await running.ask("and on")
        assert block_of(running.server.requests[-1])["type"] == "compaction"
        assert running.server.refusals == []


async def test_a_readable_summary_is_shown_and_an_unreadable_one_is_told_from_data(tmp_path: Path):
    choose(tmp_path, "anthropic/test", remote_compaction="request")
    async with agent(tmp_path, remote(), model="anthropic/test", options={"window": WINDOW}) as running:
        await fill(running, 5)
        await compact(running)
        assert "said the provider" in compactions(running)[0].summary
    other = tmp_path / "other"
    other.mkdir()
    choose(other, "openai/test", remote_compaction="request")
    async with agent(other, remote(), model="openai/test", options={"window": WINDOW}) as running:
        await fill(running, 5)
        await compact(running)
        summary = compactions(running)[0].summary
        assert "cannot be shown" in summary
        assert "without a model" not in summary
        assert re.search(r"Latest request: question \d", summary)


@pytest.mark.parametrize(
    ("provider", "way"), [WAYS[0], *(pytest.param(*way, marks=pytest.mark.full) for way in WAYS[1:])]
)
async def test_over_the_trigger_the_provider_compacts_between_the_steps(tmp_path: Path, provider: str, way: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    write_big_file(tmp_path)
    local = reads(40)

    def script(request: Request) -> AnyReply:
        return Reply(REMOTE_SUMMARY) if request.is_compaction else local(request)

    async with agent(tmp_path, script, model=model, options={"window": WINDOW, "check_thinking": True}) as running:
        assert (await running.ask("read it all", timeout=60)).outcome == "completed"
        rungs = [entry.rung for entry in compactions(running)]
        assert "remote" in rungs
        assert set(rungs) <= {"remote"}
        check_requests(running.server, WINDOW)
        assert "read it all" in sent(steps(running.server)[-1])


@pytest.mark.parametrize(("provider", "way"), WAYS)
@pytest.mark.parametrize(
    "fault",
    [
        HttpError(500, "boom", headers={"retry-after-ms": "10"}),
        HttpError(400, "this model cannot do that"),
        HttpError(429, "You exceeded your current quota, please check your plan and billing details."),
        Reply(""),
    ],
    ids=["server error", "not supported", "quota", "nothing"],
)
async def test_an_error_of_the_provider_falls_back_to_a_summary_made_here_with_one_notice(
    tmp_path: Path, provider: str, way: str, fault: AnyReply
):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    async with agent(tmp_path, remote(compaction=fault), model=model, options={"window": WINDOW}) as running:
        await fill(running, 5)
        assert (await compact(running)).outcome == "completed"
        (entry,) = compactions(running)
        assert entry.rung != "remote"
        assert entry.provider_items is None
        (told,) = warnings(running)
        assert "could not be used" in told
        assert [event.text for event in running.of(NoticeEvent) if event.level == "warning"] == [told]
        assert (await running.ask("go on")).outcome == "completed"
        assert "Keep the tests green." in sent(steps(running.server)[-1])


async def test_a_model_without_a_compaction_of_its_own_says_so_when_it_was_chosen(tmp_path: Path):
    choose(tmp_path, "openai-chat/test", remote_compaction="request")
    async with agent(tmp_path, remote(), options={"window": WINDOW}) as running:
        await fill(running, 5)
        await compact(running)
        assert compactions(running)[0].rung != "remote"
        assert "no remote_compaction" in warnings(running)[0]


async def test_the_switch_for_all_models_takes_those_that_can(tmp_path: Path):
    environ = {"TENUTO_COMPACTION__REMOTE": "true"}
    for provider, rungs in (("openai", {"remote"}), ("openai-chat", {"serialised", "same prefix", "prepared"})):
        place = tmp_path / provider
        place.mkdir()
        async with agent(
            place, remote(), model=f"{provider}/test", options={"window": WINDOW}, environ=environ
        ) as running:
            await fill(running, 5)
            await compact(running)
            assert compactions(running)[0].rung in rungs
            assert warnings(running) == []


@pytest.mark.parametrize(("provider", "way"), WAYS)
async def test_after_a_restart_the_same_bytes_are_sent(tmp_path: Path, provider: str, way: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    async with ScriptedServer(remote(), window=WINDOW) as server:
        async with reopened(tmp_path, server, model=model) as running:
            await fill(running, 5)
            await compact(running)
            await running.ask("one")
            session = running.session.id
        first = steps(server)[-1]
        async with reopened(tmp_path, server, model=model, resume=session) as running:
            await running.ask("two")
        second = steps(server)[-1]
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        assert server.refusals == []


@pytest.mark.parametrize("other", ["openai-chat/test", "anthropic/test", "openai/test-small"])
async def test_another_model_gets_the_history_and_no_foreign_item(tmp_path: Path, other: str):
    choose(tmp_path, "openai/test", remote_compaction="request")
    async with agent(tmp_path, remote("fine"), model="openai/test", options={"window": WINDOW}) as running:
        await fill(running, 5, 500)
        await compact(running)
        await running.ask("still here")
        change_model(running.runtime.live, await find_model(running.runtime.live, other))
        assert (await running.ask("and now?")).outcome == "completed"
        request = running.server.requests[-1]
        assert b'"type":"compaction' not in request.raw
        assert b"encrypted_content" not in request.raw
        for number in range(5):
            assert f"question {number} because" in sent(request)
        change_model(running.runtime.live, await find_model(running.runtime.live, "openai/test"))
        await running.ask("back again")
        assert block_of(running.server.requests[-1])["type"] == "compaction"
        assert running.server.refusals == []


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_the_second_compaction_replaces_the_first(tmp_path: Path, provider: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction="request")
    rounds = count(1)

    def script(request: Request) -> AnyReply:
        if request.is_compaction:
            return Reply(f"{REMOTE_SUMMARY}\n- round {next(rounds)}")
        return Reply(LONG_ANSWER)

    async with agent(tmp_path, script, model=model, options={"window": WINDOW}) as running:
        for _ in range(3):
            await fill(running, 4)
            await compact(running)
        await running.ask("go on")
        assert {entry.rung for entry in compactions(running)} == {"remote"}
        number = len(compactions(running))
        assert f"round {number - 1}" in sent(asked(running.server)[-1])
        last = sent(running.server.requests[-1])
        assert f"round {number}" in last
        assert f"round {number - 1}" not in last
        check_requests(running.server, WINDOW)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_pins_and_the_summary_made_here_stand_beside_the_items(tmp_path: Path, provider: str):
    model = f"{provider}/test"
    async with ScriptedServer(remote(), window=WINDOW) as server:
        async with reopened(tmp_path, server, model=model) as running:
            await command(running, "/pin never touch legacy/")
            await fill(running, 5)
            await compact(running)
            session = running.session.id
        choose(tmp_path, model, remote_compaction="request")
        async with reopened(tmp_path, server, model=model, resume=session) as running:
            for _ in range(2):
                await fill(running, 4)
                await compact(running)
            await running.ask("go on")
            rungs = [entry.rung == "remote" for entry in compactions(running)]
            assert rungs[:1] == [False]
            assert all(rungs[1:])
            assert len(rungs) > 2
            request = steps(server)[-1]
            assert "<pins>\nnever touch legacy/\n</pins>" in sent(request)
            assert "Keep the tests green." in sent(request)
            assert "Keep the tests green." in compactions(running)[-1].summary
            assert server.refusals == []


@pytest.mark.parametrize(
    ("provider", "way"), [WAYS[0], *(pytest.param(*way, marks=pytest.mark.full) for way in WAYS[1:])]
)
async def test_killed_while_the_provider_compacts_the_session_is_as_before(tmp_path: Path, provider: str, way: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    state: dict[str, AnyReply] = {"compaction": Hang()}

    def script(request: Request) -> AnyReply:
        return state["compaction"] if request.is_compaction else Reply(LONG_ANSWER)

    async with ScriptedServer(script, window=WINDOW) as server:
        async with reopened(tmp_path, server, model=model) as running:
            await fill(running, 5)
            view = list(running.session.get_llm_history())
            log = running.session.directory / "events.jsonl"
        before = log.read_bytes()
        async with victim(tmp_path, server, model) as process:
            await process.send("compact")
            await process.until("CompactionProgressEvent")
            await until(lambda: asked(server))
            await process.kill()
        assert log.read_bytes() == before
        state["compaction"] = Reply(REMOTE_SUMMARY)
        async with victim(tmp_path, server, model) as process:
            await process.send("compact")
            await process.until("CompactionEndEvent")
            await process.kill()
        async with reopened(tmp_path, server, model=model, resume_latest=True) as running:
            assert not running.session.damage
            assert [entry.rung for entry in compactions(running)] == ["remote"]
            assert running.session.get_llm_history() != view
            await running.ask("go on")
            assert block_of(server.requests[-1])
            assert server.refusals == []


@pytest.mark.parametrize(("provider", "way"), WAYS)
async def test_esc_leaves_the_log_as_it_was(tmp_path: Path, provider: str, way: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction=way)
    async with agent(tmp_path, remote(compaction=Hang()), model=model, options={"window": WINDOW}) as running:
        await fill(running, 5)
        before = (running.session.directory / "events.jsonl").read_bytes()
        await begin_compaction(running)
        await until(lambda: asked(running.server))
        await interrupt(running)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert (running.session.directory / "events.jsonl").read_bytes() == before
        assert running.of(CompactionEndEvent)[-1].aborted
        await until(lambda: asked(running.server)[-1].aborted)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_thinking_is_sent_as_long_as_what_stands_before_it_is_the_same(tmp_path: Path, provider: str):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction="request", thinking=True)
    answer = Reply(LONG_ANSWER, thinking="Let me see.")
    options = {"window": WINDOW, "check_thinking": True}
    async with agent(tmp_path, remote(answer), model=model, options=options) as running:
        await fill(running, 5)
        await compact(running)
        assert running.server.refusals == []
        first = asked(running.server)[0]
        assert any(item.kind == "thinking" for item in first.items), "the same prefix, thinking included"
        await running.ask("go on")
        assert not any(item.kind == "thinking" for item in running.server.requests[-1].items)
        await running.ask("and on")
        assert sum(item.kind == "thinking" for item in running.server.requests[-1].items) == 1
        assert running.server.refusals == []


async def test_what_the_provider_took_for_it_is_counted(tmp_path: Path):
    choose(tmp_path, "anthropic/test", remote_compaction="request")
    compaction = Reply(REMOTE_SUMMARY, usage=Tokens(input=7_000, cache_read=123, output=456))
    async with agent(
        tmp_path, remote(compaction=compaction), model="anthropic/test", options={"window": WINDOW}
    ) as running:
        await fill(running, 5)
        before = running.session.state.usage
        await compact(running)
        usage = compactions(running)[0].usage
        assert usage is not None
        assert (usage.input, usage.cache_read, usage.output) == (7_000, 123, 456)
        after = running.session.state.usage
        assert (after.input - before.input, after.output - before.output) == (7_000, 456)


async def test_what_the_user_wants_stressed_is_passed_on(tmp_path: Path):
    for provider in ("anthropic", "openai"):
        place = tmp_path / provider
        place.mkdir()
        choose(place, f"{provider}/test", remote_compaction="request")
        async with agent(place, remote(), model=f"{provider}/test", options={"window": WINDOW}) as running:
            await fill(running, 5)
            await compact(running, focus="the port numbers")
            assert b"the port numbers" in asked(running.server)[0].raw
