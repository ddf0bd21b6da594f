"""What a provider does to the context by itself in normal requests, and what happens when it refuses its own items."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.core.compacting.undo import undo_compaction
from tenuto.core.state.windows import change_model, find_model
from tenuto.protocol.event import CompactionEndEvent
from tenuto.protocol.message import AssistantMessage, SystemMessage
from tests.core.compacting import (
    LONG_ANSWER,
    SUMMARY,
    compact,
    compactions,
    fill,
    is_summary_request,
    reads,
    write_big_file,
)
from tests.core.harness import agent, reopened
from tests.core.remote_compacting import WINDOW, block_of, choose, remote, sent, steps, warnings
from tests.server import HttpError, Reply, Request, ScriptedServer
from tests.server.anthropic_compaction import CLEARED, cleared
from tests.server.reply import AnyReply


@pytest.mark.parametrize("tools", [False, True])
async def test_what_the_server_compacted_by_itself_stands_for_the_history_before_it(tmp_path: Path, tools: bool):
    choose(tmp_path, "openai/test", remote_compaction="automatic")
    write_big_file(tmp_path)
    script = reads(24) if tools else remote()
    async with agent(tmp_path, script, model="openai/test", options={"window": WINDOW}) as running:
        if tools:
            assert (await running.ask("read it all", timeout=60)).outcome == "completed"
        else:
            await fill(running, 12)
        entries = compactions(running)
        assert entries
        assert {entry.rung for entry in entries} == {"remote"}
        assert not any(request.is_compaction for request in running.server.requests)
        assert not any(is_summary_request(request) for request in running.server.requests)
        assert running.server.refusals == []
        assert [event.entry for event in running.of(CompactionEndEvent)] == entries
        for entry in entries:
            assert isinstance(running.session.find(entry.first_kept_index), AssistantMessage)
        last = running.server.requests[-1]
        assert block_of(last)
        assert len(last.body["input"]) < 30
        first = "read it all" if tools else "question 0"
        assert first in sent(last)
        await running.ask("go on")
        assert block_of(running.server.requests[-1])


async def test_the_servers_own_compaction_survives_a_restart_and_not_a_change_of_the_model(tmp_path: Path):
    choose(tmp_path, "openai/test", remote_compaction="automatic")
    async with ScriptedServer(remote("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, model="openai/test") as running:
            await fill(running, 20, 200)
            assert compactions(running)
            session = running.session.id
        before = server.requests[-1]
        async with reopened(tmp_path, server, model="openai/test", resume=session) as running:
            await running.ask("two")
            assert server.requests[-1].prefix_items[: len(before.prefix_items)] == before.prefix_items
            assert block_of(server.requests[-1])
            change_model(running.runtime.live, await find_model(running.runtime.live, "openai/test-small"))
            await running.ask("three")
            assert b'"compaction"' not in server.requests[-1].raw
            assert server.refusals == []


async def test_an_undone_compaction_of_the_server_is_not_sent_again(tmp_path: Path):
    choose(tmp_path, "openai/test", remote_compaction="automatic")
    async with ScriptedServer(remote("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, model="openai/test") as running:
            await fill(running, 10, 200)
            while not compactions(running):
                await running.ask("more " * 300)
            session = running.session.id
        choose(tmp_path, "openai/test", context_window=200_000)
        async with reopened(tmp_path, server, model="openai/test", resume=session) as running:
            undo_compaction(running.runtime.live)
            server.options.window = None
            await running.ask("go on")
            assert b'"compaction"' not in server.requests[-1].raw
            assert "question 0" in sent(server.requests[-1])


async def test_a_server_without_context_management_is_left_alone_with_it(tmp_path: Path):
    choose(tmp_path, "openai/test", remote_compaction="automatic")
    options = {"window": WINDOW, "refuse": ("context_management",)}
    async with agent(tmp_path, remote(), model="openai/test", options=options) as running:
        await fill(running, 12)
        assert {entry.rung for entry in compactions(running)} == {"remote"}
        assert any(request.is_compaction for request in running.server.requests)
        assert len(running.server.refusals) == 1
        assert sum("context_management" in text for text in warnings(running)) == 1


async def test_old_results_that_the_server_leaves_out_are_told_once(tmp_path: Path):
    choose(tmp_path, "anthropic/test", clear_tool_uses=True, context_window=150_000)
    write_big_file(tmp_path, 1000)
    options = {"listed_window": 150_000}
    async with agent(tmp_path, reads(40, width=2), model="anthropic/test", options=options) as running:
        assert (await running.ask("read it all", timeout=60)).outcome == "completed"
        applied = [request for request in running.server.requests if cleared(request.body)[1]]
        assert len(applied) > 2
        (told,) = warnings(running)
        assert "left" in told
        assert "clear_tool_uses" in told
        last = running.server.requests[-1]
        assert CLEARED not in last.raw.decode()
        assert "context-management-2025-06-27" in last.headers["anthropic-beta"]
        assert compactions(running) == []
        assert running.server.prefix_breaks() == []
        assert running.server.refusals == []


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_r051_items_that_the_provider_reads_no_more_are_given_up_and_the_session_goes_on(
    tmp_path: Path, provider: str
):
    model = f"{provider}/test"
    choose(tmp_path, model, remote_compaction="request")
    async with agent(tmp_path, remote(), model=model, options={"window": WINDOW}) as running:
        await fill(running, 5)
        await compact(running)
        running.server.options.account = "another"
        settled = await running.ask("still here?")
        assert settled.outcome == "completed", settled.error
        assert sum("did not read its own compaction" in text for text in warnings(running)) == 1
        last = steps(running.server)[-1]
        assert b'"type":"compaction"' not in last.raw
        assert "question 0" in sent(last)
        await fill(running, 5)
        assert running.server.requests[-1].tokens <= WINDOW
        assert not any(request.is_compaction for request in running.server.requests[-8:])
        change_model(running.runtime.live, await find_model(running.runtime.live, model))
        await compact(running)
        assert compactions(running)[-1].rung == "remote"


@pytest.mark.parametrize("can_summarise", [True, False])
async def test_a_summary_made_here_after_an_unreadable_one_is_made_from_the_history(
    tmp_path: Path, can_summarise: bool
):
    choose(tmp_path, "openai/test", remote_compaction="request")
    seen: list[Request] = []

    def script(request: Request) -> AnyReply:
        if not is_summary_request(request) and not request.is_compaction:
            return Reply(LONG_ANSWER)
        seen.append(request)
        return Reply(SUMMARY) if request.is_compaction or can_summarise else HttpError(400, "not this")

    async with ScriptedServer(script, window=WINDOW) as server:
        async with reopened(tmp_path, server, model="openai/test") as running:
            await fill(running, 4)
            await compact(running)
            await fill(running, 3)
            session = running.session.id
        (tmp_path / "home" / "settings.toml").write_text(
            '[compaction]\nstrategy = "tenuto.compaction.ways.strategies:LLMSummaryCompaction"\n'
        )
        async with reopened(tmp_path, server, model="openai/test", resume=session) as running:
            await compact(running)
            last = compactions(running)[-1]
            assert last.rung == ("serialised" if can_summarise else "digest")
            if can_summarise:
                asked = "".join(request.last_user for request in seen if not request.is_compaction)
                assert "question 0 because" in asked
                assert "cannot be shown" not in asked
            else:
                assert "question 0" in "".join(
                    message.text for message in last.replacement if isinstance(message, SystemMessage)
                )


async def test_f3_a_dropped_field_is_told_once(tmp_path: Path):
    """seeds-001-002-004.md F3: nothing that the user chose is left out without a word."""
    options = {"refuse": ("stream_options",)}
    async with agent(tmp_path, remote("fine"), model="openai-chat/test", options=options) as running:
        for _ in range(2):
            await running.ask("hi")
        told = [text for text in warnings(running) if "stream_options" in text]
        assert len(told) == 1, warnings(running)
        assert len(running.server.refusals) == 1


async def test_polish_c_a_refused_beta_is_told_once_and_not_asked_for_again(tmp_path: Path):
    """seeds-001-002-004.md, polish c."""
    choose(tmp_path, "anthropic/test", context_window=WINDOW, remote_compaction="request")
    options = {"refuse": ("compaction",)}
    async with agent(tmp_path, remote(), model="anthropic/test", options=options) as running:
        for _ in range(2):
            await fill(running, 3)
            await compact(running)
        assert len(running.server.refusals) == 1
        assert len([text for text in warnings(running) if "by anthropic itself" in text]) == 1
