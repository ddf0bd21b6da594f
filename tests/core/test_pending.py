"""A compaction that is proposed: nothing is written before it is accepted, and what was edited passes the same gate."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.outcome import Edit
from tenuto.command.registry import run_command
from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionProposedEvent,
    CompactionStartEvent,
    NoticeEvent,
)
from tenuto.protocol.message import UserMessage
from tenuto.protocol.usage import Usage
from tests.core.compacting import SUMMARY, compactions, fill, interrupt, is_summary_request, log_of, talk
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.server import Reply, ScriptedServer

OPTIONS = {"window": 32_000}


async def preview(running: Agent, focus: str = "") -> CompactionProposedEvent:
    count = len(running.of(CompactionProposedEvent))
    await command(running, f"/compact --preview {focus}")
    return await running.until(CompactionProposedEvent, count + 1)


async def command(running: Agent, line: str) -> list:
    return await run_command(running.runtime, line)


def said(running: Agent) -> str:
    return running.of(NoticeEvent)[-1].text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_nothing_is_written_before_it_is_accepted_and_then_just_what_was_shown(tmp_path, protocol):
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=OPTIONS) as running:
        await fill(running)
        before = log_of(running)
        shown = (await preview(running, "the port")).entry
        assert log_of(running) == before
        assert "Additional focus: the port" in running.server.requests[-1].raw.decode()
        assert 0 < (shown.tokens_after or 0) < (shown.tokens_before or 0)
        assert shown.first_kept_index > 0
        assert SUMMARY in shown.summary
        await command(running, "/compact accept")
        (entry,) = compactions(running)
        assert (entry.replacement, entry.summary, entry.first_kept_index, entry.rung, entry.focus, entry.usage) == (
            (shown.replacement, shown.summary, shown.first_kept_index, shown.rung, shown.focus, shown.usage)
        )
        assert running.of(CompactionEndEvent)[-1].entry == entry
        settled = await running.ask("go on")
        assert settled.outcome == "completed"
        assert not any(request.refused for request in running.server.requests)


async def test_an_edited_summary_is_what_stands_in_the_view(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        event = await preview(running)
        (offered,) = await command(running, "/compact edit")
        assert isinstance(offered, Edit)
        assert offered.text == f"/compact accept\n{event.summary}"
        await command(running, offered.text.replace("small steps", "BIG-LEAPS"))
        (entry,) = compactions(running)
        assert "BIG-LEAPS" in entry.summary and "small steps" not in entry.summary
        assert "BIG-LEAPS" in entry.replacement[0].text
        await running.ask("go on")
        assert "BIG-LEAPS" in running.server.requests[-1].raw.decode()


async def test_an_edited_summary_passes_the_gate_again_and_the_proposal_waits_on(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        await preview(running)
        before = log_of(running)
        await command(running, "/compact accept " + "far too long " * 20_000)
        assert "would not make the context smaller" in said(running)
        assert log_of(running) == before
        await command(running, "/compact accept")
        assert len(compactions(running)) == 1


async def test_dropping_it_leaves_the_log_as_it_was_and_counts_what_it_cost(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            spent, before = running.session.usage, log_of(running)
            await preview(running)
            await command(running, "/compact drop")
            assert running.of(CompactionEndEvent)[-1].aborted
            assert log_of(running) == before
            cost = running.session.usage
            assert cost.sent > spent.sent
            await command(running, "/compact accept")
            assert "no compaction is proposed" in said(running)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert running.session.usage == cost
            assert not compactions(running)


async def test_what_it_cost_is_counted_once_when_it_is_accepted(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        spent = running.session.usage
        event = await preview(running)
        await command(running, "/compact accept")
        assert running.session.usage == spent + (event.entry.usage or Usage())
        assert running.session.held_usage == Usage()


async def test_a_proposal_is_refused_when_the_conversation_went_on(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        await preview(running)
        await running.ask("something else")
        before = log_of(running)
        await command(running, "/compact accept")
        assert "went on since" in said(running)
        assert log_of(running) == before
        assert running.of(CompactionEndEvent)[-1].aborted
        assert running.runtime.live.compaction.pending is None


async def test_escape_cancels_the_making_of_a_proposal(tmp_path):
    def slow(_request):
        return Reply(SUMMARY, delay=5)

    async with agent(tmp_path, talk(summary=slow), options=OPTIONS) as running:
        await fill(running)
        before = log_of(running)
        await command(running, "/compact --preview")
        await running.until(CompactionProgressEvent)
        await interrupt(running)
        end = await running.until(CompactionEndEvent)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert end.aborted
        assert log_of(running) == before
        assert running.runtime.live.compaction.pending is None


async def test_another_compaction_takes_the_place_of_a_proposal(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        await preview(running)
        await preview(running)
        assert [event.aborted for event in running.of(CompactionEndEvent)] == [True]
        await command(running, "/compact")
        await running.until(CompactionEndEvent, 3)
        assert [event.aborted for event in running.of(CompactionEndEvent)] == [True, True, False]
        assert len(running.of(CompactionStartEvent)) == 3
        assert len(compactions(running)) == 1


async def test_words_that_begin_a_focus_are_a_focus_without_a_proposal(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        await command(running, "/compact drop what was said of the weather")
        await running.until(CompactionEndEvent)
        assert compactions(running)[0].focus == "drop what was said of the weather"


async def test_a_preview_can_be_made_up_to_a_message(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        chosen = [entry for entry in running.session.path() if isinstance(entry, UserMessage)][2].seq
        event = await preview(running, f"up-to #{chosen} the port")
        assert (event.entry.first_kept_index, event.entry.focus) == (chosen, "the port")
        await command(running, "/compact accept")
        assert compactions(running)[0].first_kept_index == chosen


async def test_the_python_api_shows_the_plan_without_asking_a_model(tmp_path):
    from tenuto import Agent as PublicAgent

    async with ScriptedServer(talk(), window=32_000) as server:
        async with PublicAgent(
            tmp_path, home=tmp_path / "home", model="openai-chat/test", environ=server.environ()
        ) as running:
            for number in range(6):
                await running.run(f"question {number} " + "because " * 300)
            asked = len(server.requests)
            plan = await running.preview("the port")
            assert len(server.requests) == asked
            entry = await running.compact()
            assert (plan.cut, plan.rung) == (entry.first_kept_index, entry.rung)
            assert plan.tokens_before == entry.tokens_before
            (request,) = [request for request in server.requests if is_summary_request(request)]
            described = plan.requests[0]
            assert [one.rung for one in plan.requests] == ["same prefix", "serialised", "digest"]
            assert abs(described.tokens - request.tokens) < 0.25 * request.tokens
