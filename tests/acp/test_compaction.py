"""Compactions as a client sees them, with the protocol's own messages: made, proposed, undone, replayed, cancelled."""

from __future__ import annotations

import asyncio

from tests.acp.client import Recorder, editor
from tests.core.compacting import SUMMARY, is_summary_request
from tests.server import Hang, Reply, Request

LONG = "A very long answer about lighthouses and ships. " * 400


def answer(request: Request) -> Reply:
    return Reply(SUMMARY if is_summary_request(request) else LONG)


async def talk(running, session: str, turns: int = 4) -> None:
    for number in range(turns):
        await running.ask(session, f"tell me more, part {number}: {'ships and light ' * 200}")


SMALL = {"TENUTO_COMPACTION__KEEP_RECENT_TOKENS": "1000"}


async def test_a_compaction_is_an_entity_with_its_summary_and_can_be_undone(tmp_path):
    async with editor(tmp_path, answer, compactions=True, environ=SMALL) as running:
        session = await running.new()
        await talk(running, session)
        client = running.client
        before = client.updates("usage_update")[-1]["used"]
        assert (await running.ask(session, "/compact the keeper's name")).stop_reason == "end_turn"
        first, *_, last = client.updates("compaction_update")
        assert first["status"] == "in_progress" and last["status"] == "completed"
        assert first["compactionId"] == last["compactionId"] and "error" not in last
        chunks = client.updates("compaction_summary_chunk")
        assert chunks and {one["compactionId"] for one in chunks} == {first["compactionId"]}
        summary = "".join(one["content"]["text"] for one in chunks)
        assert len(chunks) > 1 and "small steps" in summary and "summary" not in last
        assert client.updates("usage_update")[-1]["used"] < before
        await running.ask(session, "/compact undo")
        assert client.updates("usage_update")[-1]["used"] > before / 2
        await running.ask(session, "/compact redo")
        assert client.updates("usage_update")[-1]["used"] < before
        # A client that loads the session has the boundary and the whole summary in one update.
        await running.call("session/close", {"sessionId": session})
        count = len(client.messages)
        await running.call("session/load", {"sessionId": session, "cwd": str(running.work), "mcpServers": []})
        replayed = [one["params"]["update"] for one in client.messages[count:] if one.get("method") == "session/update"]
        boundaries = [one for one in replayed if one["sessionUpdate"] == "compaction_update"]
        assert [one["status"] for one in boundaries] == ["completed"]
        assert boundaries[0]["summary"] == [{"type": "text", "text": summary}]
        assert boundaries[0]["compactionId"] != first["compactionId"]
        users = [place for place, one in enumerate(replayed) if one["sessionUpdate"] == "user_message_chunk"]
        assert max(users) < replayed.index(boundaries[0])


async def test_the_summary_comes_while_the_model_still_writes_it(tmp_path):
    def slowly(request: Request) -> Reply:
        return Reply(SUMMARY, delay_per_event=0.4) if is_summary_request(request) else Reply(LONG)

    async with editor(tmp_path, slowly, compactions=True, environ=SMALL) as running:
        session, client = await running.new(), running.client
        await talk(running, session)
        prompt = asyncio.create_task(running.ask(session, "/compact"))
        await running.until(lambda: len(client.updates("compaction_summary_chunk")) > 1)
        assert [one["status"] for one in client.updates("compaction_update")] == ["in_progress"]
        assert SUMMARY.startswith(client.text("compaction_summary_chunk"))
        await running.connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        # What was shown of it is taken back: nothing of it is kept.
        last = client.updates("compaction_update")[-1]
        assert (last["status"], last["summary"]) == ("cancelled", [])


async def test_a_proposed_compaction_is_asked_about_and_written_or_dropped(tmp_path):
    answers = iter(["drop", "accept"])
    client = Recorder(choose=lambda _question: next(answers))
    async with editor(tmp_path, answer, client=client, compactions=True, environ=SMALL) as running:
        session = await running.new()
        await talk(running, session)
        before = client.updates("usage_update")[-1]["used"]
        for number, used in enumerate((lambda now: now >= before, lambda now: now < before)):
            await running.ask(session, "/compact --preview")
            await running.until(lambda number=number: len(client.questions) > number)
            await running.until(lambda: client.updates("compaction_update")[-1]["status"] != "in_progress")
            assert used(client.updates("usage_update")[-1]["used"])
        text = client.questions[0]["call"]["content"][0]["content"]["text"]
        assert "proposed, not written" in text and "small steps" in text
        statuses = [one["status"] for one in client.updates("compaction_update")]
        assert statuses[-1] == "completed" and "completed" not in statuses[:-1]


async def test_a_cancelled_compaction_is_told_so_and_nothing_has_changed(tmp_path):
    def hang(request: Request):
        return Hang() if is_summary_request(request) else Reply(LONG)

    async with editor(tmp_path, hang, compactions=True, environ=SMALL) as running:
        session = await running.new()
        await talk(running, session)
        prompt = asyncio.create_task(running.ask(session, "/compact"))
        await running.until(lambda: running.client.updates("compaction_update"))
        requests = len(running.server.requests)
        await running.until(lambda: len(running.server.requests) >= requests)
        await running.connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        assert [one["status"] for one in running.client.updates("compaction_update")] == ["in_progress", "cancelled"]


async def test_where_nothing_can_be_compacted_that_is_said(tmp_path):
    async with editor(tmp_path, [Reply("Hello.")], compactions=True) as running:
        session = await running.new()
        await running.ask(session, "hi")
        await running.ask(session, "/compact")
        told = running.client.updates("compaction_update")
        assert (told and told[-1]["status"] == "failed" and told[-1]["error"]) or "Compact" in running.client.text()


async def test_a_client_that_does_not_ask_for_them_gets_words(tmp_path):
    async with editor(tmp_path, answer, environ=SMALL) as running:
        session = await running.new()
        await talk(running, session)
        await running.ask(session, "/compact")
        assert not [one for one in running.client.updates() if one["sessionUpdate"].startswith("compaction")]
        assert "compacted (manual):" in running.client.text()
