"""The agent that a screen stands on: opened behind the first paint, closed whenever the user leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.api.agent import Agent, AgentClosedError
from tenuto.protocol.event import AnyEvent, TaskSettledEvent
from tenuto.protocol.part import TextPart
from tenuto.tui.launch import Opening
from tenuto.tui.runner import LateRuntime
from tests.core.harness import make_start
from tests.tui.machine.driving import Driver


async def test_a_screen_keeps_nothing_of_what_its_runs_came_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents: list[Agent] = []
    of = Agent.of
    monkeypatch.setattr(Agent, "of", lambda *given: agents.append(of(*given)) or agents[-1])
    start = make_start(tmp_path, {"HOME": str(tmp_path)}, model="offline/tenuto")
    late, settled = LateRuntime(start.home), asyncio.Event()

    def hear(event: AnyEvent) -> None:
        if isinstance(event, TaskSettledEvent):
            settled.set()

    opening = Opening(start, late, [])
    await opening.open(_send_nothing)
    late.subscribe(hear)
    try:
        await late.submit_prompt((TextPart(text="hello"),))
        await settled.wait()
        (agent,) = agents
        assert (agent.result.text, agent.result.turns, agent.result.changed_files) == ("", 0, [])
    finally:
        await opening.close(Driver().state)


async def test_an_agent_that_is_closed_while_it_opens_leaves_no_lock(tmp_path: Path) -> None:
    start = make_start(tmp_path, {"HOME": str(tmp_path)}, model="offline/tenuto")
    agent = Agent.of(start)
    opening = asyncio.create_task(agent.open())
    while agent.runtime.opener.open_one is None and not opening.done():
        await asyncio.sleep(0)
    opening.cancel()
    await agent.close()
    await asyncio.wait([opening])
    with pytest.raises(AgentClosedError):
        _ = agent.model
    async with Agent.of(start) as again:  # the same directory, the same home
        assert again.session_id


async def _send_nothing(_text: str) -> None:
    return
