"""What one family of models is told, and when that changes (finding B11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.core.state.family_prompt import family_part
from tenuto.protocol.message import SystemMessage
from tenuto.protocol.model import Family
from tenuto.session.session import Session
from tests.core.harness import agent, reopened
from tests.core.test_effort import OPTIONS, echo
from tests.server import Request, ScriptedServer


def systems(session: Session) -> list[SystemMessage]:
    return [entry for entry in session.entries() if isinstance(entry, SystemMessage)]


FAMILIES: list[tuple[str, Family]] = [
    ("anthropic/claude-opus-5-5", "claude"),
    ("openai/gpt-6.1-sol", "gpt"),
    ("openai-chat/gpt-6.1-sol", "gpt"),
    ("openai-chat/q", "other"),
    ("anthropic/q", "other"),
]


def system_of(request: Request) -> str:
    return next(item.text for item in request.items if item.kind == "system")


@pytest.mark.parametrize(("model", "family"), FAMILIES)
async def test_b11_each_family_has_its_part_and_no_other(tmp_path: Path, model: str, family: Family) -> None:
    async with agent(tmp_path, echo, options=OPTIONS, model=model) as running:
        await running.ask("hi")
        text = system_of(running.server.requests[-1])
    own: list[Family] = ["claude", "gpt", "gemini"]
    assert [part for part in own if family_part(part) in text] == ([family] if family in own else [])


async def test_b11_a_switch_to_another_family_writes_a_system_entry_and_nothing_else_does(tmp_path: Path) -> None:
    async with ScriptedServer(echo, **OPTIONS) as server:
        async with reopened(tmp_path, server, model="openai/gpt-6.1-sol") as running:
            await running.runtime.run_command("/model openai/gpt-6-sol")
            assert not systems(running.session), "nothing was sent, so nothing is written"
            await running.ask("one")
            (running.session.cwd / "AGENTS.md").write_text("Use tabs.")
            await running.runtime.run_command("/model openai/gpt-6.1-sol:max")
            await running.ask("two")
            assert len(systems(running.session)) == 1
            await running.runtime.run_command("/model anthropic/claude-opus-5-5")
            assert len(systems(running.session)) == 2
            await running.ask("three")
        async with reopened(tmp_path, server, model="", resume_latest=True) as running:
            await running.ask("four")
            assert len(systems(running.session)) == 2
        async with reopened(tmp_path, server, model="openai-chat/q", resume_latest=True) as running:
            await running.ask("five")
            assert [entry.family for entry in systems(running.session)] == ["gpt", "claude", "other"]
    one, two, three, four, five = (system_of(request) for request in server.requests)
    assert one == two
    assert three == four
    assert family_part("gpt") in one
    assert family_part("claude") in three
    assert len({one, three, five}) == 3


async def test_b11_an_entry_of_an_earlier_version_stays(tmp_path: Path) -> None:
    async with ScriptedServer(echo, **OPTIONS) as server:
        async with reopened(tmp_path, server, model="openai-chat/q") as running:
            running.session.append(SystemMessage(text="As it was sent."))
            await running.ask("one")
            await running.runtime.run_command("/model openai/gpt-6.1-sol")
            await running.ask("two")
    assert [system_of(request) for request in server.requests] == ["As it was sent."] * 2
