"""An agent of the Python API against the scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import tenuto
from tenuto.protocol.event import AnyEvent
from tests.core.harness import IN_ORDER
from tests.server import ScriptedServer


@dataclass
class Using:
    agent: tenuto.Agent
    server: ScriptedServer
    options: dict
    events: list[AnyEvent] = field(default_factory=list)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def options_of(tmp_path: Path, server: ScriptedServer, **changes) -> dict:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    environ = {**server.environ(), **IN_ORDER, **changes.pop("environ", {})}
    values = {"cwd": work, "home": tmp_path / "home", "model": "openai-chat/test", "environ": environ}
    return {**values, **changes}


@asynccontextmanager
async def using(tmp_path: Path, script, *, server: dict | None = None, **changes) -> AsyncIterator[Using]:
    async with ScriptedServer(script, **(server or {})) as scripted:
        options = options_of(tmp_path, scripted, **changes)
        async with tenuto.Agent(**options) as agent:
            used = Using(agent, scripted, options)
            agent.subscribe(used.events.append)
            yield used
