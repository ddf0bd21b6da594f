"""The prefix of a conversation stays, whatever comes and goes beside it (DESIGN section 7), as a property.

A run is a list of acts on one session. Between two requests of it the system prompt and the tools are the same bytes,
unless a compaction or a reload of the user's lies between. What else may come and go is one more act in `ACTS`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.compacting import compact, talk
from tests.core.harness import Agent, reopened
from tests.examples import few_examples
from tests.server import Call, Reply, Request, ScriptedServer
from tests.tool.mcp.servers import as_json

ENVIRON = {"TENUTO_COMPACTION__KEEP_RECENT_TOKENS": "200", "TENUTO_MCP__WAIT": "0.3"}
OURS = "PARENT"
"""In every prompt of the session; a request without it is a sub-agent's, which has a prefix of its own."""


@dataclass
class World:
    """A session, what the model is to call next, and the prefixes of its requests; a break lies before a `None`."""

    folder: Path
    running: Agent
    calls: list[Call] = field(default_factory=list)
    prefixes: list[str | None] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def reply(self, request: Request) -> Reply:
        if OURS not in request.raw.decode():
            return Reply("The sub-agent is done.")
        system, *_ = request.body["messages"]
        self.prefixes.append(json.dumps([system, request.body["tools"]]))
        return Reply(tool_calls=[self.calls.pop()]) if self.calls else Reply("Done. " * 300)

    async def ask(self, *calls: Call) -> None:
        self.calls = list(calls)
        settled = await self.running.ask(f"{OURS} {'because ' * 100}", timeout=60)
        assert settled.outcome == "completed", settled.error

    async def command(self, line: str) -> None:
        await self.running.runtime.run_command(line)

    async def break_prefix(self, act: Callable[[], Awaitable[bool]]) -> None:
        """Do what may change the prefix, and note that it was done."""
        if await act():
            self.prefixes.append(None)


# --- what may happen ---


async def prompt(world: World) -> None:
    await world.ask()


async def a_server_crashes(world: World) -> None:
    await world.ask(Call("mcp__crash__echo", {}))


async def a_server_changes_its_tools(world: World) -> None:
    await world.ask(Call("mcp__liar__echo", {"text": "x"}))


async def a_server_is_started_again(world: World) -> None:
    await world.command("/mcp reconnect liar")


async def a_server_of_the_project_comes(world: World) -> None:
    await world.command("/trust allow all")


async def a_server_of_the_project_goes(world: World) -> None:
    await world.command("/trust forget all")


async def a_late_server_is_there(world: World) -> None:
    hub = world.running.runtime.live.mcp.hub
    assert hub is not None
    await asyncio.wait_for(hub.servers["late"].settled.wait(), 60)


async def a_skill_comes(world: World) -> None:
    folder = world.home / "skills" / "lint"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text("---\nname: lint\ndescription: Run the linter.\n---\nRun it.\n")


async def a_skill_goes(world: World) -> None:
    (world.home / "skills" / "lint" / "SKILL.md").unlink(missing_ok=True)


async def an_agent_comes(world: World) -> None:
    (world.home / "agents").mkdir(exist_ok=True)
    (world.home / "agents" / "clerk.md").write_text("---\nname: clerk\ndescription: Files.\n---\nYou file.\n")


async def an_agent_goes(world: World) -> None:
    (world.home / "agents" / "clerk.md").unlink(missing_ok=True)


async def an_agent_works(world: World) -> None:
    await world.ask(Call("agent", {"prompt": "Do it", "agent": "general"}))


async def the_user_reloads_the_tools(world: World) -> None:
    await world.break_prefix(lambda: _said(world, "/mcp reload"))


async def the_user_reloads_everything(world: World) -> None:
    await world.break_prefix(lambda: _said(world, "/reload"))


async def _said(world: World, line: str) -> bool:
    await world.command(line)
    return True


async def the_session_is_compacted(world: World) -> None:
    async def act() -> bool:
        return (await compact(world.running)).outcome == "completed"

    await world.break_prefix(act)


async def the_session_is_opened_again(_world: World) -> None:
    """The runner closes it and opens it again."""


ACTS: tuple[Callable[[World], Awaitable[None]], ...] = (
    prompt,
    a_server_crashes,
    a_server_changes_its_tools,
    a_server_is_started_again,
    a_server_of_the_project_comes,
    a_server_of_the_project_goes,
    a_late_server_is_there,
    a_skill_comes,
    a_skill_goes,
    an_agent_comes,
    an_agent_goes,
    an_agent_works,
    the_user_reloads_the_tools,
    the_user_reloads_everything,
    the_session_is_compacted,
    the_session_is_opened_again,
)


@few_examples()
@given(st.lists(st.sampled_from(ACTS), min_size=2, max_size=8))
@example([a_server_changes_its_tools, a_server_of_the_project_comes, a_skill_comes, the_session_is_opened_again])
@example([a_late_server_is_there, a_server_crashes, the_user_reloads_the_tools, a_server_of_the_project_goes])
@example([prompt, prompt, a_server_of_the_project_comes, the_session_is_compacted, a_skill_goes, an_agent_works])
def test_j1_the_prefix_stays_unless_a_compaction_or_a_reload_lies_between(tmp_path_factory, acts):
    asyncio.run(live_through(tmp_path_factory.mktemp("prefix"), acts))


async def live_through(folder: Path, acts: list[Callable[[World], Awaitable[None]]]) -> None:
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    own = as_json(crash="crashing", liar="lying", late="slow:0.5")
    (folder / "home" / "mcp.json").write_text(json.dumps(own))
    (folder / "work" / ".mcp.json").write_text(json.dumps(as_json(theirs="good")))
    world: World | None = None

    def answer(request: Request) -> Reply:
        assert world is not None
        return world.reply(request)

    left = list(acts)
    async with ScriptedServer(talk(answer)) as server:
        is_again = False
        while left or not is_again:
            async with reopened(folder, server, resume_latest=is_again, environ=ENVIRON) as running:
                world = World(folder, running, prefixes=world.prefixes if world is not None else [])
                await world.ask()
                while left:
                    act = left.pop(0)
                    await act(world)
                    await world.ask()
                    if act is the_session_is_opened_again:
                        break
            is_again = True
        assert world is not None
        assert len(world.prefixes) - world.prefixes.count(None) >= len(acts)
    for before, after in zip(world.prefixes, world.prefixes[1:], strict=False):
        assert before is None or after is None or before == after
