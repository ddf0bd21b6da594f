"""`recall` in the running agent: what a compaction took out of the view can be looked up again."""

from __future__ import annotations

import asyncio
import re
import threading

import pytest

from tenuto.command.registry import run_command
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import ApprovalRequestedEvent, CommandProgressEvent, ToolOutputEvent, ToolResultEvent
from tenuto.protocol.part import text_of
from tenuto.tool.search import search
from tenuto.tool.search.matchers import WordMatcher
from tests.core.harness import PROTOCOLS, agent
from tests.core.test_compaction_flow import SUMMARY, compact, fill, is_summary_request
from tests.server import Call, Reply, Request


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_after_a_compaction_the_model_is_told_of_recall_and_finds_what_is_gone(tmp_path, protocol):
    asked: list[Request] = []

    def script(request: Request):
        if is_summary_request(request):
            return Reply(SUMMARY)
        if b"what was the code word" in request.raw and not asked:
            asked.append(request)
            return Reply(tool_calls=[Call("recall", {"query": "code word ostrich"})])
        return Reply("fine " * 600)

    async with agent(tmp_path, script, model=f"{protocol}/test", mode="ask", options={"window": 16_000}) as running:
        await running.ask("the code word of the week is ostrich-47, " + "because " * 3000)
        await fill(running, 3)
        await compact(running)
        settled = await running.ask("what was the code word")
        assert settled.outcome == "completed", settled.error
        assert "`recall`" in asked[0].raw.decode()
        (event,) = running.of(ToolResultEvent)
        assert "ostrich-47" in text_of(event.message.parts)
        assert b"ostrich-47" in running.server.requests[-1].raw
        assert not any(request.refused for request in running.server.requests)
        assert not running.of(ApprovalRequestedEvent)


async def test_the_user_searches_words_expressions_and_ranges(tmp_path):
    async with agent(tmp_path, [Reply("the blue heron"), Reply("second")]) as running:
        await running.ask("which bird?")
        running.session.append(ShellEntry(command="env", output="TOKEN=1", excluded=True))
        await running.ask("again")
        before = list(running.session.entries())

        async def recall(words: str) -> str:
            (said,) = await run_command(running.runtime, f"/recall {words}")
            return said.text

        found = await recall("heron BLUE")
        assert "assistant" in found and "the blue heron" in found
        assert "the blue heron" in await recall("/bl.e  ?heron/")
        assert "not a regular expression" in await recall("/(/")
        seq = found.split("#")[1].split(" ")[0]
        assert (await recall(f"#{seq}")).endswith("the blue heron")
        assert "TOKEN=1" in await recall("token")
        assert "Say what to look for" in await recall("")
        assert "not a range" in await recall("#x")
        assert list(running.session.entries()) == before


async def test_a9_a_long_search_says_how_far_it_is(tmp_path, monkeypatch):
    """The command on its line, the tool in its row; a search of a moment says nothing."""
    go_on = threading.Event()
    scan = WordMatcher.scan

    def wait(matcher, blocks):
        assert go_on.wait(60)
        return scan(matcher, blocks)

    steps = [Reply("a needle"), Reply("", tool_calls=[Call("recall", {"query": "needle"})]), Reply("found")]
    async with agent(tmp_path, steps) as running:
        await running.ask("a question")
        (found,) = await run_command(running.runtime, "/recall needle")
        assert "needle" in str(found)
        assert [event.text for event in running.of(CommandProgressEvent) if event.text] == []
        monkeypatch.setattr(search, "TELL_SECONDS", 0.01)
        monkeypatch.setattr(WordMatcher, "scan", wait)
        asking = asyncio.ensure_future(run_command(running.runtime, "/recall needle"))
        said = await running.until(CommandProgressEvent)
        go_on.set()
        await asking
        assert re.fullmatch(r"Searching, entries: \d+ of \d+", said.text), said
        assert running.of(CommandProgressEvent)[-1].text == "", "then the line goes"
        go_on.clear()
        asking = asyncio.ensure_future(running.ask("look for it"))
        shown = await running.until(ToolOutputEvent)
        go_on.set()
        await asking
        assert re.fullmatch(r"\rSearching, entries: \d+ of \d+", shown.text)
