"""`recall` in the running agent: what a compaction took out of the view can be looked up again."""

from __future__ import annotations

import pytest

from tenuto.command.registry import run_command
from tenuto.frontend.print import TOLD_KINDS
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.part import text_of
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


@pytest.mark.parametrize(("patience", "told"), [(0.0, 1), (60.0, 0)])
async def test_a9_a_long_search_says_that_it_goes_on(tmp_path, monkeypatch, patience, told):
    monkeypatch.setattr("tenuto.command.compaction_commands.PATIENCE", patience)
    async with agent(tmp_path, lambda request: Reply("an answer")) as running:
        await running.ask("a needle")
        (found,) = await run_command(running.runtime, "/recall needle")
        assert "needle" in str(found)
        notices = [event for event in running.of(NoticeEvent) if event.kind in TOLD_KINDS]
        assert len(notices) == told
        assert all("Searching" in event.text for event in notices)
