"""L1: what a peer is: a file that says how it is found and started, a home of its own, longer sessions."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.bench_lib.peers.agent import KEY, PROGRAMS, Agent, describe, descriptions, find_program, version_in
from scripts.bench_lib.peers.longer import identifiers, lengthen, renamed
from scripts.bench_lib.peers.plan import MEASURES

from tests.server import Request, ServerThread
from tests.server.any_agent import READERS, arguments_of, done_mark, find_tool, note_text, read_steps

FILES = sorted(PROGRAMS.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_l1_every_description_can_be_read_and_leaves_no_place_unfilled(file: Path, tmp_path):
    description = describe(file)
    agent = Agent(description, Path("/bin/true"), tmp_path / "home", tmp_path, "http://127.0.0.1:1")
    texts = [*description.files.values(), *description.environment.values()]
    texts += [*description.interactive, *description.one_shot, *description.resume]
    assert not [text for text in map(agent.fill, texts) if re.search(r"\$\{?\w", text)]
    assert set(description.unsupported) <= {
        "one_shot",
        "interactive",
        "resume",
        *(measure.name for measure in MEASURES),
    }
    assert bool(description.session) == bool(description.turn)
    re.compile(description.turn)
    assert not any("~" in text or re.search(r"https?://(?!127\.0\.0\.1)", text) for text in map(agent.fill, texts))


def test_l1_tenuto_comes_first_and_the_peers_of_the_issue_are_there():
    names = [description.name for description in descriptions()]
    assert names[:2] == ["Tenuto", "Tenuto --inline"]
    assert {"Codex", "Pi", "Claude Code", "Kimi Code", "opencode", "Vibe"} <= set(names)


@pytest.mark.parametrize("text", ['name = "A"', "name = ", 'name = "A"\nlikes = "tea"'])
def test_l1_a_description_that_cannot_be_read_names_its_file(text, tmp_path):
    (tmp_path / "newcomer.toml").write_text(text)
    with pytest.raises(ValueError, match=r"newcomer\.toml"):
        describe(tmp_path / "newcomer.toml")


def test_l1_an_agent_sees_nothing_of_the_users_home_keys_and_network(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the user's own")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "the user's own")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    for description in descriptions():
        agent = Agent(description, Path("/bin/true"), tmp_path / "home", tmp_path, "http://127.0.0.1:1")
        environ = agent.environ()
        assert environ["HOME"] == str(tmp_path / "home")
        assert not [value for value in environ.values() if "the user's own" in value or "proxy.example" in value]
        assert KEY in "".join([*environ.values(), *map(agent.fill, description.files.values())])


def test_l1_a_program_is_looked_for_in_the_folders_first(tmp_path, monkeypatch):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "peer").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "second"))
    assert find_program(["none", "peer"], [tmp_path / "first"]) == tmp_path / "first" / "peer"
    assert find_program(["peer"], []) == tmp_path / "second" / "peer"
    assert find_program(["none"], []) is None


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("codex-cli 0.169.0\n", "0.169.0"),
        ("2.1.331 (Claude Code)", "2.1.331"),
        ("kimi 1.2.0-rc.1", "1.2.0-rc.1"),
        ("?", ""),
    ],
)
def test_l1_a_version_is_found_in_what_a_program_says(said, version):
    assert version_in(said) == version


# --- longer sessions ---


def a_log(path: Path, steps: int) -> list[dict[str, object]]:
    """Write the log of one turn, each line with its parent, as Pi and Claude Code do."""
    rows: list[dict[str, object]] = [{"type": "session", "id": "the-session"}]
    rows.append({"type": "model", "uuid": str(uuid.UUID(int=1)), "parentUuid": None, "sessionId": "the-session"})
    for number in range(2, 2 + 2 * steps):
        kind = "prompt" if number == 2 else "step"
        row = {"type": kind, "uuid": str(uuid.UUID(int=number)), "parentUuid": str(uuid.UUID(int=number - 1))}
        rows.append({**row, "ordinal": number, "call_id": f"call_{number // 2}", "sessionId": "the-session"})
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    return rows


@given(steps=st.integers(1, 6), size=st.integers(0, 30_000))
def test_l1_a_longer_session_is_one_chain_without_a_name_twice(tmp_path_factory, steps: int, size: int):
    log = tmp_path_factory.mktemp("log") / "session.jsonl"
    first = a_log(log, steps)
    before = log.stat().st_size
    turns = lengthen(log, '"type":"prompt"', size)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    turn = 2 * steps
    assert rows[: len(first)] == first
    assert len(rows) == len(first) + (turns - 1) * turn
    assert log.stat().st_size >= min(size, before)
    assert turns == 1 or log.stat().st_size - size < 2 * (before + 400 * turn)
    names = [row["uuid"] for row in rows[1:]]
    assert len(set(names)) == len(names)
    assert [row["parentUuid"] for row in rows[2:]] == names[:-1]
    assert [row["ordinal"] for row in rows[2:]] == list(range(2, len(rows)))
    assert {row["sessionId"] for row in rows[1:]} == {"the-session"}
    calls = [row["call_id"] for row in rows[2:]]
    assert all(calls.count(call) == 2 for call in calls)


def test_l1_a_turn_without_a_parent_follows_the_last_one_when_it_comes_again(tmp_path):
    log = tmp_path / "session.jsonl"
    ids = [str(uuid.UUID(int=number)) for number in range(2)]
    rows = [{"type": "user", "parentUuid": None, "uuid": ids[0]}, {"type": "end", "parentUuid": ids[0], "uuid": ids[1]}]
    log.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    lengthen(log, '"type":"user"', 4 * log.stat().st_size)
    found = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["parentUuid"] for row in found] == [None, *(row["uuid"] for row in found[:-1])]


def test_l1_a_log_without_a_turn_is_not_touched(tmp_path):
    log = tmp_path / "session.jsonl"
    a_log(log, 2)
    before = log.read_bytes()
    with pytest.raises(ValueError, match="no line"):
        lengthen(log, '"type":"nothing"', 10**6)
    assert log.read_bytes() == before


@given(st.one_of(st.uuids().map(str), st.from_regex(r"[a-z]+_[0-9]{1,8}", fullmatch=True)), st.integers(1, 10**6))
def test_l1_a_renamed_id_is_another_one_of_the_same_kind(name: str, number: int):
    other = renamed(name, number)
    assert other != name
    assert other != renamed(name, number + 1)
    if re.fullmatch(r"[0-9a-f-]{36}", name):
        assert str(uuid.UUID(other)) == other


def test_l1_ids_are_found_by_their_keys():
    value = {"id": "a", "parentUuid": "b", "message": {"call_id": "c", "content": [{"toolCallId": "d", "text": "e"}]}}
    assert sorted(identifiers({**value, "valid": "f", "sid": 3, "uuid": ""})) == ["a", "b", "c", "d"]


# --- calls that any agent understands ---

SCHEMAS = {
    "path": ({"properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}}}, {"file_path": "a.md"}),
    "command": (
        {"properties": {"cmd": {"type": "string"}, "why": {"type": "string"}}, "required": ["why"]},
        {"cmd": "ls", "why": "a step"},
    ),
    "words": ({"properties": {"command": {"type": "array"}}}, {"command": ["bash", "-c", "ls"]}),
    "plain": (
        {
            "properties": {"n": {"type": "integer", "minimum": 5}, "b": {"type": "boolean"}, "e": {"enum": ["x"]}},
            "required": ["n", "b", "e"],
        },
        {"n": 5, "b": False, "e": "x"},
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_l1_a_call_has_what_the_tools_schema_asks_for(name):
    schema, expected = SCHEMAS[name]
    assert arguments_of(schema, "a.md", "ls") == expected


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}},
        {"type": "function", "name": "ReadFile", "parameters": {"type": "object"}},
        {"name": "Read", "input_schema": {"type": "object"}},
    ],
)
def test_l1_the_tool_that_reads_is_found_in_each_protocol(tool):
    request = Request("POST", "/", {}, b"", parsed={"tools": [{"name": "other"}, tool]})
    assert find_tool(request, READERS) == (tool.get("name") or "read_file", {"type": "object"})


def ask(url: str, *results: str) -> dict[str, Any]:
    """Ask for the next step of an agent that sends a field which our server does not know."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go on"}]
    for number, result in enumerate(results):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools = [{"type": "function", "function": {"name": "Read", "parameters": schema}}]
    body = {"model": "m", "messages": messages, "tools": tools, "a_field_of_their_own": 1}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        return json.load(answer)["choices"][0]["message"]


def test_l1_steps_are_asked_of_the_agents_own_tool_and_count_only_when_they_were_done():
    with ServerThread(read_steps(2), lenient=True) as server:
        first = ask(server.openai_url)["tool_calls"][0]["function"]
        assert (first["name"], json.loads(first["arguments"])) == ("Read", {"path": "notes/note-0.md"})
        second = ask(server.openai_url, note_text(0))["tool_calls"][0]["function"]
        assert json.loads(second["arguments"]) == {"path": "notes/note-1.md"}
        assert ask(server.openai_url, note_text(0), note_text(1))["content"] == done_mark(2)


def test_l1_a_tool_that_did_something_else_ends_the_measuring():
    with ServerThread(read_steps(2), lenient=True) as server:
        ask(server.openai_url)
        with pytest.raises(urllib.error.HTTPError):
            ask(server.openai_url, "permission denied")
        assert "step 1 was not done: permission denied" in server.refusals[0]
