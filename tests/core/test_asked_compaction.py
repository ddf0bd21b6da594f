"""A compaction that the model asks for, and what it is told of how full the context is (B5)."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest

from tenuto.core.state.reminders import FILL_KIND
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent
from tenuto.protocol.message import DeveloperMessage, ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.session.exporters.markdown import call_facts, call_state
from tenuto.tui.machine.turn import result_state
from tests.core.compacting import (
    LONG_ANSWER,
    compact,
    compactions,
    interrupt,
    is_summary_request,
    step_requests,
    summary_requests,
    talk,
    words,
)
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.extension.extending import before, extend
from tests.server import Call, Reply, ScriptedServer

WINDOW = 32_000
WRITE = Call("write", {"path": "done.txt", "content": "done\n"})
OFF = {"TENUTO_COMPACTION__TOOL": "false"}


def works(*calls: list[Call]):
    """Answer prompts with long texts; from "work now" on make these calls, an answer each, then say "all done"."""
    left = list(calls)

    def answer(request) -> Reply:
        text = "\n".join(item.text for item in request.items if item.kind == "user")
        if "work now" not in text:
            return Reply(LONG_ANSWER)
        return Reply(tool_calls=left.pop(0)) if left else Reply("all done")

    return talk(answer)


def results(running, name: str = "compact") -> list[ToolResultMessage]:
    return [one for one in running.session.entries() if isinstance(one, ToolResultMessage) and one.name == name]


def told(running) -> list[str]:
    return [
        entry.text
        for entry in running.session.entries()
        if isinstance(entry, DeveloperMessage) and entry.kind == FILL_KIND
    ]


async def talk_a_while(running, turns: int = 4) -> None:
    for number in range(turns):
        assert (await running.ask(f"question {number}: " + words(700))).outcome == "completed"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b5_the_model_asks_for_a_compaction_and_the_task_goes_on_behind_it(tmp_path, protocol):
    script = works([Call("compact", {"focus": "the colour of the door"})], [WRITE])
    async with ScriptedServer(script, window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await talk_a_while(running)
            assert (await running.ask("work now")).outcome == "completed"
            (entry,) = compactions(running)
            assert (entry.reason, entry.focus) == ("agent", "the colour of the door")
            assert [event.reason for event in running.of(CompactionStartEvent)] == ["agent"]
            assert [event.error for event in running.of(CompactionEndEvent)] == [None]
            assert "the colour of the door" in "\n".join(item.text for item in summary_requests(server)[-1].items)
            assert "at the end of this step" in text_of(results(running)[0].parts)
            assert (tmp_path / "work" / "done.txt").exists(), "the task went on by itself"
            assert not any(request.refused for request in server.requests) and not server.faults
            assert step_requests(server)[-1].tokens < step_requests(server)[-3].tokens
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert (await running.ask("and now?")).outcome == "completed"
            assert not server.requests[-1].refused


def told_of(result: ToolResultMessage) -> str:
    """What screens and exports say of a call that was put off: it did not fail."""
    assert not result.failed
    assert result_state(result, "running") == call_state(result) == "done"
    return " · ".join(call_facts(result)[:1])


async def test_b5_it_comes_behind_all_calls_of_the_step(tmp_path):
    script = works([Call("compact", {}), WRITE, Call("compact", {})])
    async with ScriptedServer(script, window=WINDOW) as server, reopened(tmp_path, server) as running:
        await talk_a_while(running)
        await running.ask("work now")
        (entry,) = compactions(running)
        first, second = results(running)
        assert not first.is_error and second.is_error and "once is enough" in text_of(second.parts)
        assert told_of(second) == "not now: one is due already"
        assert entry.seq > max(one.seq for one in running.session.entries() if isinstance(one, ToolResultMessage))


async def test_b5_a_second_one_is_refused_before_anything_was_done(tmp_path):
    script = works([Call("compact", {})], [Call("compact", {"focus": "again"})])
    async with ScriptedServer(script, window=WINDOW) as server, reopened(tmp_path, server) as running:
        await talk_a_while(running)
        assert (await running.ask("work now")).outcome == "completed"
        assert len(compactions(running)) == 1
        refused = results(running)[1]
        assert "Nothing was done since" in text_of(refused.parts)
        assert told_of(refused) == "not now: nothing new"


async def test_b5_there_is_nothing_to_compact_in_a_short_session(tmp_path):
    async with agent(tmp_path, works([Call("compact", {})])) as running:
        await running.ask("work now")
        (result,) = results(running)
        assert result.is_error and text_of(result.parts).startswith("Not compacted: ")
        assert told_of(result) == "not now: too little to summarise"
        assert not compactions(running) and not running.of(CompactionStartEvent)


async def test_b5_one_that_comes_to_nothing_is_told_and_is_not_tried_again_at_once(tmp_path):
    extend(tmp_path, before("return {'cancel': True, 'cancel_reason': 'tests are running'}"))
    script = works([Call("compact", {})], [Call("compact", {})])
    async with ScriptedServer(script, window=WINDOW) as server, reopened(tmp_path, server) as running:
        await talk_a_while(running)
        assert (await running.ask("work now")).outcome == "completed"
        assert not compactions(running)
        told = "\n".join(item.text for item in server.requests[-2].items)
        assert "came to nothing (the extension mine cancelled the compaction: tests are running)" in told
        assert "Nothing was done since" in text_of(results(running)[1].parts)


async def test_b5_an_interrupt_ends_it_and_the_next_task_does_not_make_it(tmp_path):
    script = works([Call("compact", {})])

    def slow(request):
        reply = script(request)
        return replace(reply, delay=60.0) if is_summary_request(request) else reply

    async with ScriptedServer(slow, window=WINDOW) as server, reopened(tmp_path, server) as running:
        await talk_a_while(running)
        await running.send("work now")
        await running.until(CompactionStartEvent)
        await interrupt(running)
        assert (await asyncio.wait_for(running.runtime.wait_settled(), 60)).outcome == "interrupted"
        assert (await running.ask("go on")).outcome == "completed"
        assert not compactions(running) and len(running.of(CompactionStartEvent)) == 1
        assert not any(request.refused for request in server.requests)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b5_switched_off_the_tool_is_not_sent_and_a_call_is_answered_clearly(tmp_path, protocol):
    script = works([Call("compact", {})])
    async with ScriptedServer(script, window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", environ=OFF) as running:
            await talk_a_while(running)
            await running.ask("work now")
            assert all("compact" not in request.tool_names for request in step_requests(server))
            assert "not among the tools" in text_of(results(running)[0].parts)
            assert not compactions(running)


async def test_b5_a_resumed_session_sends_its_stored_list_until_a_compaction(tmp_path):
    async with ScriptedServer(talk(), window=WINDOW) as server:
        async with reopened(tmp_path, server, environ=OFF) as running:
            await talk_a_while(running)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.ask("one")
            before, after = step_requests(server)[-2:]
            assert after.prefix_items[: len(before.prefix_items)] == before.prefix_items
            assert "compact" not in after.tool_names
            await compact(running)
            await running.ask("two")
            assert "compact" in step_requests(server)[-1].tool_names
        async with reopened(tmp_path, server, environ=OFF, resume_latest=True) as running:
            await running.ask("three")
            assert "compact" in step_requests(server)[-1].tool_names


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b5_the_model_is_told_at_60_and_80_percent_once_until_a_compaction(tmp_path, protocol):
    environ = {"TENUTO_COMPACTION__BACKGROUND": "false"}
    async with ScriptedServer(talk(), window=WINDOW) as server:
        notes: list[str] = []
        for _ in range(20):
            async with reopened(
                tmp_path, server, model=f"{protocol}/test", environ=environ, resume_latest=bool(server.requests)
            ) as running:
                await running.ask("question " + words(700))
                notes = told(running)
                if compactions(running):
                    break
        first, second = (int(text.split(" %")[0].rsplit(" ", 1)[1]) for text in notes)
        assert 60 <= first < 80 <= second
        assert all("compact makes one now" in text for text in notes)
        sent = step_requests(server)
        for before, after in itertools.pairwise(sent[:-1]):
            assert after.prefix_items[: len(before.prefix_items)] == before.prefix_items
        assert not any(request.refused for request in server.requests)


async def test_b5_it_is_told_again_when_a_compaction_had_lowered_it(tmp_path):
    async with ScriptedServer(talk(), window=WINDOW) as server, reopened(tmp_path, server, environ=OFF) as running:
        for _ in range(60):
            await running.ask("question " + words(700))
            if len(compactions(running)) == 2:
                break
        assert len(compactions(running)) == 2
        assert len(told(running)) == 4
        assert not any("compact makes" in text for text in told(running)), "it has no such tool"


async def test_b5_nothing_is_told_where_nothing_would_come_of_it(tmp_path):
    environ = {**OFF, "TENUTO_COMPACTION__ENABLED": "false"}
    async with ScriptedServer(talk(), window=WINDOW) as server, reopened(tmp_path, server, environ=environ) as running:
        for _ in range(13):
            await running.ask("question " + words(700))
        size = running.runtime.live.measure().tokens
        assert size > 0.6 * running.runtime.live.budget().trigger
        assert not told(running)
        assert not any(is_summary_request(request) for request in server.requests)
