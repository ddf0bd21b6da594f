"""Agents as files: what their front matter says holds for the sub-agent, and what is not followed is named once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.part import text_of
from tests.core.harness import agent
from tests.core.test_children import by_role, is_child, results, results_in, task, view_of
from tests.server import Call, Reply, Request


def write_agent(folder: Path, name: str, prompt: str = "You are told apart by this.", **keys: str) -> Path:
    """Write an agent's file; `keys` are its front matter."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    head = "\n".join(f"{key}: {value}" for key, value in {"name": name, "description": "d", **keys}.items())
    path.write_text(f"---\n{head}\n---\n{prompt}\n")
    return path


def theirs(running) -> Request:
    return next(request for request in running.server.requests if request.kind == "model" and is_child(request))


def warnings(running) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if event.level == "warning"]


def once(kind: str, child=lambda _request: Reply("Done as told.")):
    return by_role([Reply(tool_calls=[task("Do it", kind)]), Reply("Done.")], child)


@pytest.mark.parametrize("words", ["Write, Edit, Bash(rm:*), mcp__none__x", "[Write, Bash]"])
async def test_j5_tools_that_a_file_takes_away_are_not_offered(tmp_path: Path, words: str) -> None:
    write_agent(tmp_path / "home" / "agents", "some", disallowedTools=words)
    async with agent(tmp_path, once("some")) as running:
        await running.ask("PARENT go")
        names = set(theirs(running).tool_names)
        assert {"read", "grep"} <= names
        assert names & {"write", "edit", "apply_patch", "bash", "agent"} == set()


async def test_j5_the_turns_of_a_file_bound_its_agent_and_never_loosen_the_settings(tmp_path: Path) -> None:
    write_agent(tmp_path / "home" / "agents", "short", maxTurns="2")
    write_agent(tmp_path / "home" / "agents", "long", maxTurns="9000")

    def child(request: Request) -> Reply:
        return Reply("On", tool_calls=[Call("bash", {"command": f"echo {len(results_in(request))}"})])

    calls = [task("Do it", "short"), task("Do it", "long")]
    script = by_role([Reply(tool_calls=calls), Reply("Done.")], child)
    async with agent(tmp_path, script, mode="auto", environ={"TENUTO_AGENTS__MAX_STEPS": "4"}) as running:
        await running.ask("PARENT go")
        short, long = results(running)
        assert "stopped after 2 turns (maxTurns of its file)" in text_of(short.parts)
        assert "stopped after 4 turns ([agents] max_steps)" in text_of(long.parts)


@pytest.mark.parametrize("wish", ["plan", "bypassPermissions", "acceptEdits", "auto"])
async def test_j5_a_mode_of_a_file_is_never_looser_than_the_users(tmp_path: Path, wish: str) -> None:
    write_agent(tmp_path / "work" / ".claude" / "agents", "bold", permissionMode=wish)

    def child(request: Request) -> Reply:
        made = results_in(request)
        return (
            Reply(made[-1].text) if made else Reply(tool_calls=[Call("write", {"path": "new.txt", "content": "n\n"})])
        )

    async with agent(tmp_path, once("bold", child), mode="ask", interactive=False) as running:
        await running.ask("PARENT go")
        assert not (tmp_path / "work" / "new.txt").exists()


async def test_j5_the_mode_plan_of_a_file_only_looks_in_mode_auto(tmp_path: Path) -> None:
    write_agent(tmp_path / "home" / "agents", "planner", permissionMode="plan")

    def child(request: Request) -> Reply:
        made = results_in(request)
        return Reply(made[-1].text) if made else Reply(tool_calls=[Call("bash", {"command": "touch new.txt"})])

    async with agent(tmp_path, once("planner", child), mode="auto") as running:
        await running.ask("PARENT go")
        assert not (tmp_path / "work" / "new.txt").exists()
        assert "only looks" in text_of(results(running)[0].parts)


@pytest.mark.parametrize("model", ["inherit", "sonnet", "Haiku", "opus"])
async def test_j5_a_word_for_a_model_is_the_sessions_where_its_provider_has_none(tmp_path: Path, model: str) -> None:
    write_agent(tmp_path / "home" / "agents", "some", model=model)
    async with agent(tmp_path, once("some"), model="openai-chat/test") as running:
        await running.ask("PARENT go")
        assert theirs(running).body["model"] == "test"
        assert warnings(running) == []


async def test_j5_a_name_without_a_provider_is_not_sent_to_a_server_that_may_not_have_it(tmp_path: Path) -> None:
    write_agent(tmp_path / "home" / "agents", "dated", model="claude-sonnet-4-5-20250929")
    async with agent(tmp_path, once("dated"), model="openai-chat/test") as running:
        await running.ask("PARENT go")
        assert theirs(running).body["model"] == "test"
        (warned,) = warnings(running)
        assert "“claude-sonnet-4-5-20250929” names no provider" in warned


async def test_j5_a_projects_file_does_not_choose_the_provider(tmp_path: Path) -> None:
    write_agent(tmp_path / "work" / ".claude" / "agents", "far", model="anthropic/claude-opus-5-5")
    async with agent(tmp_path, once("far"), model="openai-chat/test") as running:
        await running.ask("PARENT go")
        assert theirs(running).body["model"] == "test"
        (warned,) = warnings(running)
        assert "a project's file does not choose the provider" in warned


async def test_j5_skills_of_a_file_are_loaded_from_the_first_request_on(tmp_path: Path) -> None:
    skill = tmp_path / "home" / "skills" / "tidy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tidy\ndescription: d\n---\nAlways sweep the vermilion corner.\n")
    write_agent(tmp_path / "home" / "agents", "sweeper", skills="tidy, missing")
    async with agent(tmp_path, once("sweeper")) as running:
        await running.ask("PARENT go")
        assert "sweep the vermilion corner" in theirs(running).raw.decode()
        assert view_of(results(running)[0]).outcome == "completed"
        (warned,) = [text for text in warnings(running) if "skill" in text]
        assert "there is no skill missing" in warned


async def test_j5_what_is_not_followed_in_a_file_is_named_once_and_what_means_nothing_is_not(tmp_path: Path) -> None:
    keys = {"color": "blue", "mcpServers": "[github]", "toolz": "Read", "maxTurns": "many", "permissionMode": "plann"}
    path = write_agent(tmp_path / "home" / "agents", "odd", **keys)
    async with agent(tmp_path, [Reply("One."), Reply("Two.")]) as running:
        await running.ask("PARENT one")
        await running.ask("PARENT two")
        named = [text for text in warnings(running) if str(path) in text]
        assert len(named) == 4, named
        together = "\n".join(named)
        assert "mcpServers is not followed here" in together
        assert "toolz (did you mean tools?)" in together or "did you mean tools" in together
        assert "maxTurns is a whole number" in together
        assert "there is no permissionMode “plann”" in together
        assert "color" not in together


SHAPES = {
    "a block of examples": """\
name: reviewer
model: haiku
tools: Read, Grep, Glob, Bash
description: |
  Use this when a step is done. Examples: <example>user: "I've done step 3"</example>""",
    "a model by its dated id": """\
name: debugger
description: Debugs. Use PROACTIVELY.
model: claude-sonnet-4-5-20250929""",
    "a mode of another agent": """\
name: checker
description: "Use this."
mode: subagent
tools: Read, Write
model: inherit""",
    "lists, and a colour": """\
name: lister
description: d
tools:
  - Read
  - WebSearch
color: green""",
    "broken YAML": """\
name: broken
description: Use this: always, it's good
tools: [Read, LS]""",
    "escaped line ends": """\
name: escaped
description: "Use this.\\n\\n<example>x</example>"
tools: *""",
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_j5_front_matter_of_published_shapes_loads_and_works(tmp_path: Path, shape: str) -> None:
    folder = tmp_path / "work" / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "file.md").write_text(f"---\n{SHAPES[shape]}\n---\n\nYou do it.\n")
    name = SHAPES[shape].split("name: ")[1].split("\n")[0]
    async with agent(tmp_path, once(name)) as running:
        await running.ask("PARENT go")
        assert text_of(results(running)[0].parts).startswith("Done as told.")
        assert theirs(running).items[0].text.startswith("You do it.")
        assert all("is no agent" not in text for text in warnings(running))
