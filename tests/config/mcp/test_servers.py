"""Servers as files name them: ours, a project's, those of other agents."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.mcp.files import drop_server, keep_servers, read_configured
from tenuto.config.mcp.peers import find_servers
from tenuto.config.mcp.servers import McpServer, ServerError, check_name, describe_server, expand, read_server
from tenuto.config.sources import load_settings

GIT = McpServer(command="uvx", args=("mcp-server-git",))


def write(path: Path, values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def configured(tmp_path: Path):
    settings, problems = load_settings(tmp_path / "home", tmp_path / "work", {})
    assert problems == []
    return read_configured(tmp_path / "home", tmp_path / "work", settings)


@pytest.fixture(autouse=True)
def work(tmp_path):
    (tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()


FORMS = [
    ({"command": "uvx", "args": ["mcp-server-git"]}, GIT),
    ({"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "description": "x"}, GIT),
    ({"type": "local", "command": ["uvx", "mcp-server-git"]}, GIT),
    ({"command": "uvx", "args": ["mcp-server-git"], "startup_timeout_sec": 30}, GIT),
    ({"type": "http", "url": "https://x.example/mcp"}, McpServer(url="https://x.example/mcp")),
    ({"httpUrl": "https://x.example/mcp", "timeout": 5000}, McpServer(url="https://x.example/mcp", call_timeout=5)),
    ({"url": "${BASE}/mcp", "disabled": True}, McpServer(url="${BASE}/mcp", enabled=False)),
    (
        {"url": "https://x.example", "bearer_token_env_var": "KEY"},
        McpServer(url="https://x.example", headers={"Authorization": "Bearer ${KEY}"}),
    ),
]


@pytest.mark.parametrize(("values", "server"), FORMS)
def test_the_forms_that_are_in_use_are_read(values, server):
    assert read_server(values) == server


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "a command or a url"),
        ({"command": "a", "url": "http://b"}, "a command or a url"),
        ({"type": "sse", "url": "http://b"}, "older SSE transport"),
        ({"url": "ftp://b"}, "https://"),
        ({"command": 3}, "str"),
        ("words", "not an object"),
        ({"type": "telepathy", "command": "a"}, "telepathy"),
    ],
)
def test_what_cannot_be_used_says_why(values, why):
    with pytest.raises(ServerError, match=why):
        read_server(values)


def test_variables_are_replaced_everywhere_and_missing_ones_named():
    server = McpServer(command="${A}", args=("x${B:-1}",), env={"K": "${A}"}, cwd="${A}")
    assert expand(server, {"A": "a"}) == McpServer(command="a", args=("x1",), env={"K": "a"}, cwd="a")
    with pytest.raises(ServerError, match="variable A is not set"):
        expand(server, {})


@given(st.text(max_size=30), st.dictionaries(st.from_regex(r"[A-Z_]{1,5}", fullmatch=True), st.text(max_size=5)))
def test_what_names_no_variable_stays_as_it_is(text, environ):
    if "${" not in text:
        assert expand(McpServer(command=text), environ).command == text


def test_r085_a_project_s_servers_wait_and_never_take_the_place_of_the_user_s(tmp_path):
    write(tmp_path / "home" / "mcp.json", {"mcpServers": {"git": {"command": "mine"}}})
    evil = {"mcpServers": {"git": {"command": "theirs"}, "other": {"command": "theirs"}}}
    write(tmp_path / "work" / ".mcp.json", evil)
    found = configured(tmp_path)
    assert [(one.name, one.server.command) for one in found.servers] == [("git", "mine")]
    assert [one.name for one in found.waiting] == ["other"]


def test_settings_go_before_the_file_and_a_broken_file_is_one_line(tmp_path):
    write(tmp_path / "home" / "settings.toml", '[mcp.servers.git]\ncommand = "settings"\n')
    write(
        tmp_path / "home" / "mcp.json",
        {"servers": {"git": {"command": "file"}, "off": {"command": "x", "enabled": False}}},
    )
    found = configured(tmp_path)
    assert [one.server.command for one in found.servers] == ["settings"]
    assert "settings.toml names it" in found.problems[0]
    write(tmp_path / "home" / "mcp.json", "{")
    (problem,) = configured(tmp_path).problems
    assert "mcp.json cannot be read" in problem


@pytest.mark.parametrize("values", [{"time": {"command": "uvx"}}, {"mcpServers": []}, {"mcpservers": {}}])
def test_a_file_that_has_no_servers_where_they_belong_is_named(tmp_path, values):
    write(tmp_path / "home" / "mcp.json", values)
    (problem,) = configured(tmp_path).problems
    assert 'has no object "mcpServers"' in problem
    write(tmp_path / "home" / "mcp.json", {})
    assert not configured(tmp_path).problems


def test_the_user_s_file_is_changed_without_losing_what_stands_in_it(tmp_path):
    home = tmp_path / "home"
    write(home / "mcp.json", {"other": 1, "mcpServers": {"kept": {"command": "k"}}})
    file = keep_servers(home, [("git", GIT), ("off", McpServer(command="x", enabled=False))])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "other": 1,
        "mcpServers": {
            "kept": {"command": "k"},
            "git": {"command": "uvx", "args": ["mcp-server-git"]},
            "off": {"command": "x", "enabled": False},
        },
    }
    assert drop_server(home, "git") and not drop_server(home, "git")
    assert set(json.loads(file.read_text())["mcpServers"]) == {"kept", "off"}


def test_servers_of_other_agents_are_found_and_what_cannot_be_taken_is_named(tmp_path):
    user, root = tmp_path / "user", tmp_path / "work"
    project = {str(root): {"mcpServers": {"here": {"command": "h"}}}, "/else": {"mcpServers": {"no": {"command": "n"}}}}
    write(user / ".claude.json", {"mcpServers": {"claude": {"type": "stdio", "command": "c"}}, "projects": project})
    write(user / ".codex/config.toml", '[mcp_servers.codex]\ncommand = "x"\nargs = ["y"]\ntool_timeout_sec = 9\n')
    write(user / ".gemini/settings.json", {"mcpServers": {"gemini": {"httpUrl": "https://g.example/mcp"}}})
    code = {"inputs": [], "servers": {"code": {"command": "${env:BIN}"}, "asks": {"command": "${input:key}"}}}
    write(root / ".vscode/mcp.json", code)
    write(root / ".mcp.json", {"mcpServers": {"shared": {"command": "s"}, "old": {"type": "sse", "url": "http://o"}}})
    found = find_servers(user, root)
    assert {one.name: describe_server(one.server) for one in found.servers} == {
        "shared": "s",
        "code": "'${BIN}'",
        "here": "h",
        "claude": "c",
        "codex": "x y",
        "gemini": "https://g.example/mcp",
    }
    assert len(found.problems) == 2


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a:b", "x" * 65, "a\n"])
def test_names_that_would_stand_for_something_else_are_refused(name):
    assert check_name(name)
