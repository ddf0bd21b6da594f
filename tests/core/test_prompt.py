"""The system prompt: small, stable, and with the instructions of the user and the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.config.instructions import InstructionFile
from tenuto.core.state.prompt import build_system_prompt
from tenuto.text.estimate import estimate_text
from tenuto.tool.run.registry import ToolRegistry
from tests.core.harness import PROTOCOLS, agent
from tests.server import Reply

MAX_TOKENS = 4_000


def test_system_prompt_and_tool_schemas_together_stay_small() -> None:
    schemas = ToolRegistry().schemas()
    tools = "".join(f"{schema.name}{schema.description}{bytes(schema.parameters).decode()}" for schema in schemas)
    assert estimate_text(build_system_prompt([])) + estimate_text(tools) < MAX_TOKENS


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_a_first_request_costs_over_the_wire(tmp_path: Path, protocol: str) -> None:
    async with agent(tmp_path, [Reply("hi")], model=f"{protocol}/test") as running:
        await running.ask("hi")
        assert len(running.server.requests[0].raw) / 4 < MAX_TOKENS + 500


def test_it_names_every_tool_that_it_speaks_of() -> None:
    text = build_system_prompt([])
    for name in ("edit", "write", "grep", "glob", "todo", "read"):
        assert name in text
        assert ToolRegistry().get(name) is not None


def test_the_same_parts_give_the_same_bytes_and_the_extra_text_stands_before_the_instructions() -> None:
    files = [InstructionFile("/a/AGENTS.md", "Use tabs."), InstructionFile("/a/b/AGENTS.md", "Use spaces.")]
    text = build_system_prompt(files, "An extra.")
    assert text == build_system_prompt(list(files), "An extra.")
    places = [text.index(part) for part in ("You are Tenuto", "An extra.", "Use tabs.", "Use spaces.")]
    assert places == sorted(places)
    assert '<instructions path="/a/b/AGENTS.md">' in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_instructions_are_global_then_from_root_to_cwd_and_the_prompt_is_stable(
    tmp_path: Path, protocol: str
) -> None:
    work = tmp_path / "work" / "below"
    work.mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "AGENTS.md").write_text("Not of this project.")
    (tmp_path / "home" / "AGENTS.md").write_text("First: everywhere.")
    (tmp_path / "work" / "CLAUDE.md").write_text("Second: the project.")
    (work / "AGENTS.md").write_text("Third: here.")
    async with agent(
        tmp_path, [Reply("a"), Reply("b")], model=f"{protocol}/test", cwd=work, home=tmp_path / "home"
    ) as running:
        await running.ask("one")
        (work / "AGENTS.md").write_text("Something else.")
        await running.ask("two")
        first, second = (
            next(item.text for item in request.items if item.kind == "system") for request in running.server.requests
        )
        assert first == second
        places = [first.index(part) for part in ("First: everywhere.", "Second: the project.", "Third: here.")]
        assert places == sorted(places)
        assert "Not of this project." not in first
