"""Sub-agents and MCP servers: the same connections, the tools that their kind has, the same guard."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import text_of
from tenuto.tool.mcp.tools import CALL, SEARCH
from tests.core.harness import agent
from tests.server import Call, Reply, Request
from tests.tool.mcp.servers import as_json, fixture_server, hub_of


def configure(tmp_path: Path, tools: str | None = None, **kinds: str) -> None:
    """Have servers, and an agent `own` with these tools."""
    (tmp_path / "home" / "agents").mkdir(parents=True)
    (tmp_path / "home" / "mcp.json").write_text(json.dumps(as_json(**kinds)))
    head = f"tools: {tools}\n" if tools is not None else ""
    (tmp_path / "home" / "agents" / "own.md").write_text(f"---\nname: own\n{head}---\nYou work.\n")


def is_child(request: Request) -> bool:
    return not any("PARENT" in item.text for item in request.items if item.kind == "user")


def servers_told(request: Request) -> set[str]:
    names = (tool["function"]["name"] for tool in request.body["tools"])
    return {name for name in names if name.startswith("mcp")}


def script(kind: str, *calls: Call):
    """Have the parent give a task, and the child make these calls and repeat what came of them."""
    own = [Reply(tool_calls=[Call("agent", {"prompt": "Work", "agent": kind})])]
    left = list(calls)

    def reply(request: Request) -> Reply:
        if not is_child(request):
            return own.pop(0) if own else Reply("Done.")
        if left:
            return Reply(tool_calls=[left.pop(0)])
        return Reply("\n".join(item.text for item in request.items if item.kind == "result"))

    return reply


ECHO = Call("mcp__good__echo", {"text": "from the child"})


@pytest.mark.parametrize(
    ("kind", "tools", "told"),
    [
        ("general", None, {"mcp__good__echo", "mcp__other__echo"}),
        ("own", None, {"mcp__good__echo", "mcp__other__echo"}),
        ("own", "Read, mcp__good__echo", {"mcp__good__echo"}),
        ("own", "mcp__good__*", {"mcp__good__echo"}),
        ("own", "mcp__good", {"mcp__good__echo"}),
        ("own", "Read", set()),
        ("explore", None, set()),
    ],
)
async def test_j6_a_child_has_the_servers_of_its_parent_as_far_as_its_kind_has_them(tmp_path, kind, tools, told):
    configure(tmp_path, tools, good="good", other="good")
    async with agent(tmp_path, script(kind, ECHO)) as running:
        await running.ask("PARENT go")
        hub = running.runtime.live.mcp.hub
        assert hub is not None
        child = next(request for request in running.server.requests if is_child(request))
        assert {name for name in servers_told(child) if name.endswith("echo")} == told
        (result,) = (event.message for event in running.of(ToolResultEvent))
        expected = "from the child" if "mcp__good__echo" in told else "There is no tool named mcp__good__echo"
        assert expected in text_of(result.parts)
        assert hub.servers["good"].log.read_text().count("is here") == 1, "no second start"
        assert not [event.text for event in running.of(NoticeEvent) if "there are no tools" in event.text]


async def test_j6_what_a_child_calls_is_asked_for_like_its_parents_calls(tmp_path):
    configure(tmp_path, good="good")
    async with agent(tmp_path, script("general", ECHO), mode="ask") as running:
        await running.send("PARENT go")
        asked = await running.until(ApprovalRequestedEvent)
        assert asked.tool == "mcp__good__echo" and asked.agent.startswith("general")
        operation = AnswerApprovalOperation(
            session_id=asked.session_id, request_id=asked.request_id, decision="session"
        )
        await running.runtime.submit(operation)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert "from the child" in text_of(running.of(ToolResultEvent)[-1].message.parts)


async def test_j6_with_many_tools_a_child_has_the_search_or_the_few_that_it_names(tmp_path):
    configure(tmp_path, "mcp__good__echo", good="good", many="many:25")
    for kind, told in (("general", {SEARCH, CALL}), ("own", {"mcp__good__echo"})):
        async with agent(tmp_path, script(kind, Call(CALL, {"name": "mcp__good__echo", "arguments": {}}))) as running:
            await running.ask("PARENT go")
            child = next(request for request in running.server.requests if is_child(request))
            assert servers_told(child) == told


NAMES = ("mcp__one__echo", "mcp__one__env", "mcp__two__echo", "mcp__one", "mcp__two__*", "read", "mcp__three__*")


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """The public names of two servers, taken once."""

    async def take():
        async with hub_of(tmp_path_factory.mktemp("hub"), one=fixture_server(), two=fixture_server()) as running:
            await running.hub.wait(20)
        for server in running.hub.servers.values():
            server.state = "ready"
        return running.hub

    return asyncio.run(take())


@given(st.frozensets(st.sampled_from(NAMES)), st.frozensets(st.sampled_from(NAMES)))
def test_j6_a_part_has_what_is_named_and_a_part_of_a_part_no_more(every, names, fewer):
    def allowed(names, name: str) -> bool:
        server = name.rpartition("__")[0]
        return name in names or server in names or f"{server}__*" in names

    part = every.only(names)
    offered = {schema.name for schema in part.offered}
    assert offered == {schema.name for schema in every.offered if allowed(names, schema.name)}
    both = {name for name in offered if allowed(fewer, name)}
    assert {schema.name for schema in part.only(fewer).offered} == both
    assert all((part.find(schema.name) is not None) == (schema.name in offered) for schema in every.offered)
