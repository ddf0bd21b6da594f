"""Bad MCP servers through the whole agent: no start is blocked, no turn is lost, each is one clear line."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest

from tenuto.protocol.event import NoticeEvent, ToolResultEvent
from tenuto.protocol.part import text_of
from tests.core.compacting import until
from tests.core.harness import agent
from tests.server import Call, Reply, Request
from tests.tool.mcp.servers import SCRIPT


class Bad(msgspec.Struct, frozen=True, kw_only=True):
    """A server: what is configured, how long a start waits, the call that is made, what the user and the model read.

    An empty `line` is no line at all.
    """

    entry: dict[str, Any]
    line: str
    result: str
    wait: str = "20"
    tool: str = "echo"
    arguments: dict[str, Any] = {}


def fixture(kind: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SCRIPT), kind], **more}


ROWS = {
    "dead": Bad(
        entry={"command": "/no/such/program"},
        line="MCP server bad cannot be used: there is no program /no/such/program. /mcp shows its log",
        result="The MCP server bad cannot be asked: there is no program",
    ),
    "nobody at its address": Bad(
        entry={"type": "http", "url": "http://127.0.0.1:9/mcp"},
        line="MCP server bad cannot be used: ",
        result="The MCP server bad cannot be asked: ",
    ),
    "refusing": Bad(
        entry=fixture("refusing"),
        line="MCP server bad cannot be used: its process ended with exit code 2; its last words: no key was given.",
        result="its process ended with exit code 2",
    ),
    "hanging at its start": Bad(
        entry=fixture("hanging", startup_timeout=2),
        line="MCP server bad cannot be used: no answer within 2 seconds",
        result="no answer within 2 seconds",
    ),
    "hanging at its start, not waited for": Bad(
        entry=fixture("hanging", startup_timeout=1),
        wait="0",
        line="Not waiting for 2 MCP servers any longer: bad, good",
        result="The MCP server bad cannot be asked",
    ),
    "slow": Bad(
        entry=fixture("slow:10"),
        wait="0",
        line="Not waiting for 2 MCP servers any longer: bad, good",
        result="from the server",
        arguments={"text": "from the server"},
    ),
    "hanging in a call": Bad(
        entry=fixture("good", call_timeout=1), tool="wait", arguments={"seconds": 60}, line="", result="imed out"
    ),
    "lying": Bad(
        entry=fixture("lying"),
        line="MCP server bad has other tools than before: new mcp__bad__new; gone mcp__bad__env,",
        result="x marks it",
        arguments={"text": "x marks it"},
    ),
    "flooding": Bad(
        entry=fixture("flooding"),
        line="MCP server bad has ended: it sent a message of more than 16.0 MB",
        result="it sent a message of more than 16.0 MB",
    ),
    "crashing": Bad(
        entry=fixture("crashing"),
        line="MCP server bad has ended: its process ended with exit code 3; its last words: Traceback: it broke.",
        result="its process ended with exit code 3",
    ),
}


@pytest.mark.parametrize("kind", ROWS)
async def test_j1_a_bad_server_blocks_no_start_loses_no_turn_and_is_one_line(tmp_path, kind):
    """It is called in the first turn, with a good one beside it, and the conversation goes on."""
    bad = ROWS[kind]
    (tmp_path / "home").mkdir()
    servers = {"bad": bad.entry, "good": fixture("good")}
    (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    calls = [Call(f"mcp__bad__{bad.tool}", bad.arguments), Call("mcp__good__echo", {"text": "from the good one"})]

    def reply(request: Request) -> Reply:
        is_first = not any(item.kind == "result" for item in request.items)
        return Reply(tool_calls=calls) if is_first else Reply("Done.")

    async with agent(tmp_path, reply, environ={"TENUTO_MCP__WAIT": bad.wait}) as running:
        settled = await running.ask("go", timeout=60)
        assert settled.outcome == "completed"
        from_bad, from_good = (text_of(event.message.parts) for event in running.of(ToolResultEvent))
        assert bad.result in from_bad and "from the good one" in from_good
        assert (await running.ask("and on")).outcome == "completed"
        first, *others = running.server.requests
        assert all(request.body["tools"] == first.body["tools"] for request in others)
        told = 0 if not bad.line else 2 if bad.wait == "0" else 1

        def about_bad() -> list[str]:
            return [event.text for event in running.of(NoticeEvent) if "bad" in event.text]

        await until(lambda: len(about_bad()) >= told)  # what nobody waits for may come later
        lines = about_bad()
        assert [line for line in lines if line.startswith(bad.line)] == lines[:1] and all(
            "\n" not in line for line in lines
        )
        assert len(lines) == told, lines
