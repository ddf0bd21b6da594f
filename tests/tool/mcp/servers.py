"""Servers of tests: the fixture in all its kinds, and hubs over them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tenuto.config.mcp.servers import McpServer, NamedServer
from tenuto.tool.mcp.hub import Ears, McpHub
from tenuto.tool.mcp.remote import Elicitation, Reply, Surroundings
from tests.conftest import FIXTURES

SCRIPT = FIXTURES / "mcp" / "server.py"


def fixture_server(kind: str = "good", **changes) -> McpServer:
    return McpServer(command=sys.executable, args=(str(SCRIPT), kind), **changes)


def as_json(**kinds: str) -> dict:
    """Return a file of servers, each by its kind."""
    return {
        "mcpServers": {name: {"command": sys.executable, "args": [str(SCRIPT), kind]} for name, kind in kinds.items()}
    }


@dataclass
class Running:
    hub: McpHub
    said: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    asked: list[Elicitation] = field(default_factory=list)


@asynccontextmanager
async def hub_of(tmp_path: Path, defer_over: int = 20, **servers: McpServer) -> AsyncIterator[Running]:
    running: Running

    async def ask(asked: Elicitation) -> Reply:
        running.asked.append(asked)
        return Reply(action="accept", content={"name": "Ada"})

    around = Surroundings(
        cwd=tmp_path, home=tmp_path, environ=os.environ, logs=tmp_path / "logs", records=tmp_path / "records"
    )
    ears = Ears(
        notify=lambda text, _level: running.said.append(text),
        changed=lambda server: running.changes.append(server.name),
        ask=ask,
    )
    named = [NamedServer(name=name, server=server, source="test") for name, server in servers.items()]
    running = Running(McpHub(named, around, ears, defer_over))
    running.hub.start()
    try:
        yield running
    finally:
        await running.hub.close()
