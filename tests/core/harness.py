"""A runtime against the scripted server, with every event written down."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tenuto.command.runtime import CommandRuntime
from tenuto.core.start import Start
from tenuto.protocol.event import AnyEvent, TaskSettledEvent
from tenuto.protocol.part import TextPart
from tests.server import Call, Reply, Request, ScriptedServer

PROTOCOLS = ("anthropic", "openai", "openai-chat")
SAMPLE_REPO = Path(__file__).parent.parent / "fixtures" / "sample_repo"
T = TypeVar("T")
IN_ORDER = {
    "TENUTO_COMPACTION__BACKGROUND": "false",
    "TENUTO_AGENT__FINAL_CHECK": "false",
    "TENUTO_SESSION__TITLES": "false",
}
"""Requests come one after the other, in the order that a script expects: no summary is prepared beside a task, and
nothing is asked at the end."""
BESIDE = {"TENUTO_COMPACTION__BACKGROUND": "true"}
"""What users have: for tests of what is prepared beside a task, and of what must hold either way."""


@dataclass
class Agent:
    runtime: CommandRuntime
    server: ScriptedServer
    events: list[AnyEvent] = field(default_factory=list)

    async def send(self, text: str) -> str:
        return await self.runtime.submit_prompt((TextPart(text=text),))

    async def ask(self, text: str, timeout: float = 30) -> TaskSettledEvent:
        await self.send(text)
        return await asyncio.wait_for(self.runtime.wait_settled(), timeout)

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type[T], count: int = 1, timeout: float = 60) -> T:
        async with asyncio.timeout(timeout):
            while len(self.of(kind)) < count:
                await asyncio.sleep(0.005)
        return self.of(kind)[count - 1]

    @property
    def session(self):
        return self.runtime.live.session


def make_start(tmp_path: Path, environ: dict[str, str], **changes) -> Start:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    values = {"cwd": work, "home": tmp_path / "home", "model": "openai-chat/test", "mode": "auto", "environ": environ}
    return Start(**{**values, **changes})


@asynccontextmanager
async def agent(tmp_path: Path, script, *, options: dict | None = None, **changes) -> AsyncIterator[Agent]:
    async with ScriptedServer(script, **(options or {})) as server:
        async with reopened(tmp_path, server, **changes) as running:
            yield running


@asynccontextmanager
async def reopened(tmp_path: Path, server: ScriptedServer, **changes) -> AsyncIterator[Agent]:
    environ = {**server.environ(), **IN_ORDER, **changes.pop("environ", {})}
    runtime = CommandRuntime(make_start(tmp_path, environ, **changes))
    running = Agent(runtime, server)
    runtime.subscribe(running.events.append)
    await runtime.open()
    await runtime.opener.wait_for_facts()
    try:
        yield running
    finally:
        await runtime.close()


def one_call_each(*steps: Call | None):
    """A script with one call an answer; `None`, and everything behind them, is an answer without one."""
    left = list(steps)

    def answer(_request: Request) -> Reply:
        call = left.pop(0) if left else None
        return Reply("Done.") if call is None else Reply(tool_calls=[call])

    return answer


def copy_sample(target: Path) -> Path:
    shutil.copytree(SAMPLE_REPO, target)
    return target
