"""Connections to good and bad servers: each bad one is one clear line, and the others go on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.mcp.servers import McpServer
from tenuto.protocol.model import ToolSchema
from tenuto.tool.mcp.hub import describe_state
from tenuto.tool.mcp.remote import ConnectionLost, RemoteImage, RemoteTool
from tenuto.tool.mcp.tools import CALL, SEARCH, search_tools
from tenuto.tool.process.left_running import is_listed
from tests.tool.mcp.servers import SCRIPT, fixture_server, hub_of

PROGRAM = f"""
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {str(SCRIPT.parents[3])!r})
from tests.tool.mcp.servers import fixture_server, hub_of

async def main():
    async with hub_of(Path(sys.argv[1]), stubborn=fixture_server("stubborn")) as running:
        await running.hub.wait(20)
        result = await running.hub.call(running.hub.servers["stubborn"], "mcp__stubborn__env", {{}}, print)
        print("READY", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def ignore(_text: str) -> None:
    pass


async def test_a_server_lists_and_answers(tmp_path):
    async with hub_of(tmp_path, good=fixture_server()) as running:
        assert await running.hub.wait(20) == []
        server = running.hub.servers["good"]
        assert [schema.name for schema in running.hub.offered] == [
            f"mcp__good__{name}" for name in ("echo", "env", "fail", "image", "wait")
        ]
        assert describe_state(server) == "5 tools, 1 prompt, 1 resource"
        result = await running.hub.call(server, "mcp__good__echo", {"text": "hello"}, ignore)
        assert "hello" in result.blocks[0]
        assert (await running.hub.call(server, "mcp__good__fail", {}, ignore)).is_error
        image = await running.hub.call(server, "mcp__good__image", {}, ignore)
        assert isinstance(image.blocks[0], RemoteImage)
        assert (await running.hub.read(server, "note://one")).blocks == ("The first note.",)
        assert (await running.hub.prompt(server, "greet", {"who": "Ada"})).blocks == ("Greet Ada",)
        assert server.log.read_text() == "good is here\n"
    assert running.said == []


async def test_a_server_gets_the_variables_that_its_entry_names_and_few_others(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("WANTED", "yes")
    async with hub_of(tmp_path, good=fixture_server(env={"OWN": "${WANTED}", "OTHER": "${MISSING:-no}"})) as running:
        await running.hub.wait(20)
        result = await running.hub.call(running.hub.servers["good"], "mcp__good__env", {}, ignore)
    seen = json.loads(str(result.blocks[0]))
    assert (seen["OWN"], seen["OTHER"]) == ("yes", "no")
    assert "ANTHROPIC_API_KEY" not in seen and "WANTED" not in seen and "PATH" in seen


async def test_progress_is_shown_and_a_cancellation_reaches_the_server(tmp_path):
    shown: list[str] = []
    async with hub_of(tmp_path, good=fixture_server()) as running:
        await running.hub.wait(20)
        server = running.hub.servers["good"]
        call = asyncio.create_task(running.hub.call(server, "mcp__good__wait", {"seconds": 30}, shown.append))
        async with asyncio.timeout(60):
            while not shown:
                await asyncio.sleep(0.01)
        assert shown[0].endswith("on\n")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(60):
            while "heard of the cancellation" not in server.log.read_text():
                await asyncio.sleep(0.01)
        assert "again" in (await running.hub.call(server, "mcp__good__echo", {"text": "again"}, ignore)).blocks[0]


BAD = {
    "dead": (McpServer(command="/no/such/program"), "there is no program /no/such/program"),
    "refusing": (fixture_server("refusing"), "its process ended with exit code 2; its last words: no key was given"),
    "hanging": (fixture_server("hanging", startup_timeout=1), "no answer within 1 seconds"),
    "unset": (
        fixture_server(env={"KEY": "${NOT_SET_ANYWHERE}"}),
        "the environment variable NOT_SET_ANYWHERE is not set",
    ),
    "closed": (McpServer(url="http://127.0.0.1:9/mcp"), ""),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_server_is_one_line_and_the_others_go_on(tmp_path, kind):
    server, why = BAD[kind]
    async with hub_of(tmp_path, bad=server, good=fixture_server()) as running:
        await running.hub.wait(30)
        assert (running.hub.servers["bad"].state, running.hub.servers["good"].state) == ("failed", "ready")
        (line,) = running.said
        assert line.startswith(f"MCP server bad cannot be used: {why}") and "\n" not in line
        with pytest.raises(ConnectionLost):
            await running.hub.call(running.hub.servers["bad"], "mcp__bad__echo", {}, ignore)


async def test_a_slow_server_is_not_waited_for(tmp_path):
    async with hub_of(tmp_path, slow=fixture_server("slow:60"), good=fixture_server()) as running:
        async with asyncio.timeout(60):
            await running.hub.servers["good"].settled.wait()
        assert [server.name for server in await running.hub.wait(0)] == ["slow"]
        assert {schema.name.split("__")[1] for schema in running.hub.offered} == {"good"}


async def test_a_flood_ends_the_connection_and_nothing_else(tmp_path):
    async with hub_of(tmp_path, flood=fixture_server("flooding"), good=fixture_server()) as running:
        await running.hub.wait(20)
        with pytest.raises(ConnectionLost, match=r"a message of more than 16\.0 MB"):
            await running.hub.call(running.hub.servers["flood"], "mcp__flood__echo", {}, ignore)
        assert running.hub.servers["good"].state == "ready"
        assert (await running.hub.call(running.hub.servers["good"], "mcp__good__echo", {}, ignore)).blocks


async def test_a_crash_is_told_and_the_next_call_starts_the_server_again(tmp_path):
    async with hub_of(tmp_path, crash=fixture_server("crashing")) as running:
        await running.hub.wait(20)
        server = running.hub.servers["crash"]
        with pytest.raises(ConnectionLost, match="exit code 3; its last words: Traceback: it broke"):
            await running.hub.call(server, "mcp__crash__echo", {}, ignore)
        with pytest.raises(ConnectionLost, match="exit code 3"):
            await running.hub.call(server, "mcp__crash__echo", {}, ignore)
        assert server.restarts == 1
        await running.hub.reconnect(server)
        assert server.state == "ready"


async def test_changed_tools_are_another_offer_and_an_old_name_says_so(tmp_path):
    async with hub_of(tmp_path, liar=fixture_server("lying")) as running:
        await running.hub.wait(20)
        server, before = running.hub.servers["liar"], running.hub.offered
        assert running.hub.offered is before
        await running.hub.call(server, "mcp__liar__echo", {"text": "x"}, ignore)
        async with asyncio.timeout(60):
            while running.hub.offered is before:
                await asyncio.sleep(0.01)
        assert [schema.name for schema in running.hub.offered] == ["mcp__liar__echo", "mcp__liar__new"]
        with pytest.raises(ConnectionLost, match="no tool mcp__liar__wait any more"):
            await running.hub.call(server, "mcp__liar__wait", {"seconds": 1}, ignore)


async def test_a_server_asks_the_user(tmp_path):
    async with hub_of(tmp_path, asker=fixture_server("asking")) as running:
        await running.hub.wait(20)
        result = await running.hub.call(running.hub.servers["asker"], "mcp__asker__ask", {}, ignore)
        assert json.loads(str(result.blocks[0])) == {"action": "accept", "content": {"name": "Ada"}}
        assert running.asked[0].message == "Who?" and set(running.asked[0].fields) == {"name", "size"}


async def test_many_tools_stand_behind_a_search(tmp_path):
    async with hub_of(tmp_path, few=fixture_server(), many=fixture_server("many:16")) as running:
        await running.hub.wait(20)
        assert len(running.hub.tools()) == 21
        assert [schema.name for schema in running.hub.offered] == [SEARCH, CALL]
        assert "few (5 tools), many (16 tools)" in running.hub.offered[0].description


async def test_closing_is_short_whatever_servers_do(tmp_path):
    async with hub_of(tmp_path, hanging=fixture_server("hanging"), stubborn=fixture_server("stubborn")) as running:
        async with asyncio.timeout(60):
            await running.hub.servers["stubborn"].settled.wait()
    assert list((tmp_path / "records").iterdir()) == []


def test_a_server_ends_when_the_program_is_killed(tmp_path):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None and program.stdout.readline() == "READY\n"
        (record,) = (tmp_path / "records").iterdir()
        pid = json.loads(record.read_text().splitlines()[1])["pid"]
        assert is_listed(pid)
    finally:
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    if sys.platform != "linux":
        pytest.skip("only Linux ends a process with its parent; elsewhere the next start does")
    for _ in range(400):
        if not is_listed(pid):
            return
        time.sleep(0.02)
    pytest.fail("the server outlives the program")


# --- what is found and offered, as properties ---


def made(name: str, description: str = "") -> RemoteTool:
    return RemoteTool(name=name, schema=ToolSchema(name=name, description=description, parameters=b"{}"))  # type: ignore


@given(st.lists(st.text("abc_", min_size=1, max_size=6), unique=True), st.text("abc ", max_size=8))
def test_a_search_finds_what_has_a_word_and_nothing_else(names, query):
    found = search_tools([made(name) for name in names], query)
    words = query.split()
    assert {tool.name for tool in found} == {name for name in names if any(word in name for word in words)}


def test_an_exact_name_is_found_first():
    tools = [made("mcp__a__list_all_files", "list files"), made("mcp__a__list")]
    assert search_tools(tools, "mcp__a__list")[0].name == "mcp__a__list"
