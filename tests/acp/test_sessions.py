"""Sessions of a client: new, load, list, resume, fork, close, delete; many side by side; its MCP servers."""

from __future__ import annotations

import asyncio
import sys

import pytest
from acp.schema import EnvVariable, McpServerStdio, SseMcpServer

from tenuto.frontend.acp.server import PAGE
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session
from tests.acp.client import editor
from tests.server import Call, Reply, Request
from tests.tool.mcp.servers import SCRIPT

WRITE = Call("write", {"path": "a.txt", "content": "one\n"})


def params(running, session: str) -> dict:
    return {"sessionId": session, "cwd": str(running.work), "mcpServers": []}


async def test_a_session_is_listed_loaded_whole_closed_and_deleted(tmp_path):
    script = [Reply("Let me.", thinking="Hm.", tool_calls=[WRITE]), Reply("Done."), Reply("Still here.")]
    async with editor(tmp_path, script) as running:
        session = await running.new()
        await running.ask(session, "make a.txt")
        live = running.client.updates()
        await running.call("session/close", {"sessionId": session})
        with pytest.raises(Exception, match="is not open: load or resume it first"):
            await running.ask(session, "hi")
        listed = await running.call("session/list", {"cwd": str(running.work)})
        (one,) = listed["sessions"]
        assert one["sessionId"] == session and one["title"] == "make a.txt" and one["cwd"] == str(running.work)
        assert one["updatedAt"].endswith("Z")
        before = len(running.client.updates())
        answer = await running.call("session/load", params(running, session))
        assert answer["modes"]["currentModeId"] == "ask"
        told = running.client.updates()[before:]
        assert told[0]["sessionUpdate"] == "user_message_chunk" and told[0]["content"]["text"] == "make a.txt"
        text = "".join(one["content"]["text"] for one in told if one["sessionUpdate"] == "agent_message_chunk")
        assert text == "Let me.Done."
        result = [one for one in told if one.get("status") == "completed"]
        assert result == [one for one in live if one.get("status") == "completed"]
        assert (await running.ask(session, "and now?")).stop_reason == "end_turn"
        await running.call("session/delete", {"sessionId": session})
        assert (await running.call("session/list", {}))["sessions"] == []
        await running.call("session/delete", {"sessionId": session})  # what is gone is gone
        assert list((tmp_path / "home" / "bin").glob("*/*"))  # and can come back


async def test_a_resumed_session_goes_on_and_is_not_told_again(tmp_path):
    async with editor(tmp_path, [Reply("One."), Reply("Two.")]) as running:
        session = await running.new()
        await running.ask(session, "first")
        await running.call("session/close", {"sessionId": session})
        before = len(running.client.updates())
        await running.call("session/resume", params(running, session))
        assert not [one for one in running.client.updates()[before:] if "message" in one["sessionUpdate"]]
        await running.ask(session, "second")
        assert "first" in str([item.text for item in running.server.requests[-1].items])


async def test_a_fork_leaves_the_first_as_it_is(tmp_path):
    async with editor(tmp_path, [Reply("One."), Reply("Two.")]) as running:
        session = await running.new()
        await running.ask(session, "first")
        forked = (await running.call("session/fork", params(running, session)))["sessionId"]
        assert forked != session
        await running.ask(forked, "second")
        listed = (await running.call("session/list", {}))["sessions"]
        assert {one["sessionId"] for one in listed} == {session, forked}


async def test_a_long_list_comes_in_pages(tmp_path):
    (tmp_path / "work").mkdir()
    made = set()
    for number in range(PAGE + 5):
        session = Session.create(tmp_path / "home", tmp_path / "work", clock=lambda number=number: 1_000.0 + number)
        session.append(UserMessage(parts=(TextPart(text=f"number {number}"),)))
        session.close()
        made.add(session.id)
    async with editor(tmp_path, []) as running:
        first = await running.call("session/list", {"cwd": str(running.work)})
        second = await running.call("session/list", {"cwd": str(running.work), "cursor": first["nextCursor"]})
        listed = [one["sessionId"] for page in (first, second) for one in page["sessions"]]
        assert len(first["sessions"]) == PAGE and len(listed) == len(made) and set(listed) == made
        assert "nextCursor" not in second
        with pytest.raises(Exception, match="the list has changed"):
            await running.call("session/list", {"cursor": "nobody"})


async def test_ten_sessions_work_side_by_side(tmp_path):
    def answer(request: Request) -> Reply:
        words = [item.text for item in request.items if item.text.startswith("make ")]
        name = words[-1].split()[1]
        if any(f"{name}.txt" in str(item) and item.kind == "result" for item in request.items):
            return Reply(f"{name} is done.")
        last = request.items[-1]
        if last.text.startswith("make "):
            return Reply(tool_calls=[Call("write", {"path": f"{name}.txt", "content": name})], delay=0.2)
        return Reply(f"{name} is done.")

    async with editor(tmp_path, answer) as running:
        sessions = await asyncio.gather(*(running.new() for _ in range(10)))
        assert len(set(sessions)) == 10
        answers = await asyncio.gather(
            *(running.ask(session, f"make file{number}") for number, session in enumerate(sessions))
        )
        assert {answer.stop_reason for answer in answers} == {"end_turn"}
        for number, session in enumerate(sessions):
            assert running.client.text(session_id=session) == f"file{number} is done."
            assert (running.work / f"file{number}.txt").read_text() == f"file{number}"
        assert {question["session"] for question in running.client.questions} == set(sessions)


async def test_directories_of_the_client_count_as_workspace(tmp_path):
    (tmp_path / "more").mkdir()
    write = Call("write", {"path": str(tmp_path / "more" / "b.txt"), "content": "b"})
    async with editor(tmp_path, [Reply(tool_calls=[write]), Reply("Done.")], "--mode", "edits") as running:
        await running.ask(await running.new(additional_directories=[str(tmp_path / "more")]), "write b")
        assert not running.client.questions and (tmp_path / "more" / "b.txt").read_text() == "b"


@pytest.mark.parametrize("cwd", ["work", "/no/such/place"])
async def test_a_directory_that_is_none_is_refused(tmp_path, cwd):
    async with editor(tmp_path, []) as running:
        with pytest.raises(Exception, match=r"absolute path|is not a directory"):
            await running.call("session/new", {"cwd": cwd, "mcpServers": []})


async def test_mcp_servers_of_the_client_are_there_and_shown(tmp_path):
    given = [
        McpServerStdio(
            name="my notes", command=sys.executable, args=[str(SCRIPT), "good"], env=[EnvVariable(name="A", value="b")]
        ),
        SseMcpServer(type="sse", name="old", url="http://localhost:1", headers=[]),
    ]
    async with editor(tmp_path, [Reply("Hello.")]) as running:
        session = await running.new(mcp_servers=given)
        await running.ask(session, "hi")
        assert any("my-notes" in name for name in running.server.requests[0].tool_names)
        assert "MCP server old of the editor is left out" in running.client.text()
        await running.ask(session, "/mcp my-notes")
        assert "the editor" in running.client.text()


async def test_a_replayed_conversation_has_no_secrets_in_it(tmp_path):
    key = "sk-very-secret-0001"
    async with editor(tmp_path, [Reply("Kept.")], environ={"MY_API_KEY": key}) as running:
        session = await running.new()
        await running.ask(session, f"my key is {key}")
        await running.call("session/close", {"sessionId": session})
        await running.call("session/load", params(running, session))
        assert "my key is" in running.client.text("user_message_chunk")
        assert key not in running.client.text("user_message_chunk")
