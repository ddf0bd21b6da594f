"""Sub-agents in headless runs, and the examples of docs/subagents.md as they stand."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from tenuto.config.agents import EXPLORE, GENERAL, list_agents, read_agents
from tenuto.config.sources import load_settings
from tenuto.tool.run.registry import ToolRegistry
from tests.core.test_children import by_role, is_child, task
from tests.server import Call, Reply, ServerThread, Tokens

MODEL = ("--model", "openai-chat/test")
PAGE = (Path(__file__).parents[2] / "docs" / "subagents.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_j5_a_headless_run_sums_what_its_sub_agents_used_and_refused(run):
    def child(request) -> Reply:
        made = [item for item in request.items if item.kind == "result"]
        usage = Tokens(input=1_000, output=100)
        if made:
            return Reply("It was refused.", usage=usage)
        return Reply(tool_calls=[Call("write", {"path": "new.txt", "content": ""})], usage=usage)

    parent = Tokens(input=10, output=1)
    script = by_role(
        [
            Reply(tool_calls=[task("Write", "general"), task("Write", "general")], usage=parent),
            Reply("Done.", usage=parent),
        ],
        child,
    )
    with ServerThread(script) as server:
        done = run("-p", "PARENT go", *MODEL, "--output-format", "json", server=server)
    found = json.loads(done.stdout)
    assert found["result"] == "Done."
    assert found["num_turns"] == 2
    assert found["usage"]["output_tokens"] == 2 * 1 + 4 * 100
    assert found["usage"]["input_tokens"] == 2 * 10 + 4 * 1_000
    assert [call["tool_name"] for call in found["permission_denials"]] == ["write", "write"]
    assert done.returncode == 5, done.stderr
    assert not (run.work / "new.txt").exists()


def test_j5_the_page_s_agent_is_read_and_listed(tmp_path: Path):
    folder = tmp_path / "work" / ".tenuto" / "agents"
    folder.mkdir(parents=True)
    (folder / "any.md").write_text(example("markdown"))
    agents = read_agents(tmp_path / "home", tmp_path, tmp_path / "work", ToolRegistry().names())
    assert agents.problems == ()
    assert set(agents.kinds) == {EXPLORE, GENERAL, "reviewer"}
    reviewer = agents.kinds["reviewer"]
    assert reviewer.tools == ("read", "grep", "bash")
    assert (reviewer.model, reviewer.effort) == ("inherit", "high")
    assert "- reviewer: Reviews a change" in list_agents(agents.own)


def test_j5_the_page_s_agent_works(run):
    folder = run.work / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text(example("markdown"))
    script = by_role([Reply(tool_calls=[task("Review", "reviewer")]), Reply("Done.")], lambda _: Reply("No fault."))
    with ServerThread(script) as server:
        done = run("-p", "PARENT go", *MODEL, server=server)
        (theirs,) = [request for request in server.requests if request.kind == "model" and is_child(request)]
    assert done.returncode == 0, done.stderr
    assert theirs.items[0].text.startswith("You review the change")


def test_j5_the_page_s_settings_are_good(tmp_path: Path):
    text = example("toml")
    tomllib.loads(text)
    (tmp_path / "settings.toml").write_text(text)
    settings, problems = load_settings(tmp_path, None, {})
    assert problems == []
    assert settings.agents.models["sonnet"].startswith("anthropic/")


def test_j5_a_project_s_agents_stay_in_the_project_and_a_bad_file_is_named(tmp_path: Path):
    outside = tmp_path / "secret.md"
    outside.write_text("---\nname: leak\n---\nsecret")
    folder = tmp_path / "work" / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "leak.md").symlink_to(outside)
    (folder / "bad.md").write_text("---\nname: a b\n---\nx")
    agents = read_agents(tmp_path / "home", tmp_path, tmp_path / "work", ToolRegistry().names())
    assert set(agents.kinds) == {EXPLORE, GENERAL}
    assert len(agents.problems) == 2


def test_j5_a_session_is_repaired_with_its_sub_agents_and_each_is_shown_by_its_id(run, tmp_path: Path):
    script = by_role([Reply(tool_calls=[task("Look")]), Reply("Done.")], lambda _: Reply("Seen."))
    with ServerThread(script) as server:
        done = run("-p", "PARENT go", *MODEL, "--output-format", "json", server=server)
    parent = json.loads(done.stdout)["session_id"]
    (child,) = (path.name for path in (tmp_path / "home").glob(f"sessions/*/{parent}/agents/*"))
    repaired = run("sessions", "repair", parent)
    assert repaired.returncode == 0, repaired.stderr
    assert [line.split()[1] for line in repaired.stdout.splitlines()] == [f"{parent}:", f"{child}:"]
    assert child in run("sessions", "show", child[:8]).stdout
    assert child not in run("sessions", "list").stdout


def test_j5_limits_of_a_run_count_its_sub_agents_and_are_said_in_one_line(run):
    def child(request) -> Reply:
        made = [item for item in request.items if item.kind == "result"]
        return Reply("Late", delay=60) if made else Reply(tool_calls=[Call("bash", {"command": "ls"})])

    calls = [task("Look"), task("Look on")]
    with ServerThread(by_role([Reply(tool_calls=calls)], child)) as server:
        timed = run("-p", "PARENT go", *MODEL, "--timeout", "3", server=server)
    assert timed.returncode == 4
    assert [line for line in timed.stderr.splitlines() if "--timeout" in line], timed.stderr
    with ServerThread(by_role([Reply(tool_calls=calls)], child)) as server:
        counted = run("-p", "PARENT go", *MODEL, "--max-turns", "3", server=server)
    assert counted.returncode == 4
    assert counted.stderr.count("stopped after 3 turns, 2 of them by sub-agents (--max-turns)") == 1, counted.stderr
