"""MCP servers that nobody here wrote, called through the agent: `scripts/mcp-servers` installs them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tenuto.command.outcome import Edit
from tenuto.protocol.event import ApprovalRequestedEvent, ToolOutputEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import ImagePart, text_of
from tests.acp.client import editor, environment
from tests.core.harness import agent, one_call_each
from tests.server import Call, Reply, ServerThread

FOLDER = Path(os.environ.get("TENUTO_TEST_MCP_SERVERS") or Path.home() / ".cache" / "tenuto-mcp-servers")
EVERYTHING = FOLDER / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
FILES = FOLDER / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
BIN = FOLDER / "venv" / "bin"
NODE = shutil.which("node") or ""


def need(*paths: Path) -> None:
    for path in paths:
        if not path.exists() or (path.suffix == ".js" and not NODE):
            pytest.skip(
                f"{path.name} of {path.parents[1].name} is not there: scripts/mcp-servers installs it (node, npm)"
            )


def program(name: str, *args: str) -> dict:
    return {"command": str(BIN / name), "args": list(args)}


@pytest.fixture
def configure(tmp_path):
    def write(**servers: dict) -> None:
        (tmp_path / "home").mkdir(exist_ok=True)
        (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    return write


async def call(tmp_path, *calls: Call, **changes):
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_MCP__WAIT": "60"}
    async with agent(tmp_path, one_call_each(*calls), environ=environ, **changes) as running:
        await running.ask("go", timeout=90)
        hub = running.runtime.live.mcp.hub
        assert hub is not None
        versions = {name: server.listing.version for name, server in hub.servers.items()}
        return [event.message for event in running.of(ToolResultEvent)], running.of(ToolOutputEvent), versions


async def test_everything_and_filesystem_over_stdio(tmp_path, configure):
    need(EVERYTHING, FILES)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "note.txt").write_text("a note\n")
    configure(
        all={"command": NODE, "args": [str(EVERYTHING), "stdio"]},
        files={"command": NODE, "args": [str(FILES), str(tmp_path / "work")]},
    )
    results, live, versions = await call(
        tmp_path,
        Call("mcp_search", {"query": "echo"}),
        Call("mcp_call", {"name": "mcp__all__echo", "arguments": {"message": "hello"}}),
        Call("mcp_call", {"name": "mcp__all__get-tiny-image", "arguments": {}}),
        Call(
            "mcp_call", {"name": "mcp__all__trigger-long-running-operation", "arguments": {"duration": 1, "steps": 2}}
        ),
        Call(
            "mcp_call", {"name": "mcp__files__read_text_file", "arguments": {"path": str(tmp_path / "work/note.txt")}}
        ),
    )
    found, echo, image, _, note = results
    assert "mcp__all__echo" in text_of(found.parts) and "Echo: hello" in text_of(echo.parts)
    assert any(isinstance(part, ImagePart) for part in image.parts)
    assert any("1/2" in event.text for event in live)
    assert "a note" in text_of(note.parts)
    assert versions == {"all": "2025-11-25", "files": "2025-11-25"}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def served(port: int):
    environ = {**os.environ, "PORT": str(port)}
    server = subprocess.Popen([NODE, str(EVERYTHING), "streamableHttp"], env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        for line in server.stderr:
            if str(port) in line:
                break
        yield
    finally:
        server.kill()
        server.wait()


async def test_everything_over_streamable_http(tmp_path, configure):
    need(EVERYTHING)
    port = free_port()
    configure(all={"type": "http", "url": f"http://127.0.0.1:{port}/mcp"})
    with served(port):
        results, live, versions = await call(
            tmp_path,
            Call("mcp__all__echo", {"message": "hello"}),
            Call("mcp__all__get-structured-content", {"location": "New York"}),
            Call("mcp__all__trigger-long-running-operation", {"duration": 1, "steps": 2}),
            Call("mcp__all__trigger-elicitation-request", {}),
            interactive=False,
        )
    echo, structured, _, asked = results
    assert "Echo: hello" in text_of(echo.parts) and "temperature" in text_of(structured.parts)
    assert any("1/2" in event.text for event in live)
    assert "decline" in text_of(asked.parts)
    assert versions == {"all": "2025-11-25"}


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_j1_prompts_resources_and_questions_of_everything(tmp_path, configure, way):
    """A prompt is completed and put into the editor, a resource is completed and attached, a question is a form."""
    need(EVERYTHING)
    port = free_port()
    address = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    configure(all=address if way == "http" else {"command": NODE, "args": [str(EVERYTHING), "stdio"]})
    script = one_call_each(None, Call("mcp__all__trigger-elicitation-request", {}))
    environ = {"PATH": os.environ["PATH"], "TENUTO_MCP__WAIT": "60"}
    with served(port) if way == "http" else nullcontext():
        async with agent(tmp_path, script, environ=environ) as running:
            await running.runtime.live.mcp.wait()
            commands = {one.name: one.argument_hint for one in await running.runtime.own_commands()}
            assert commands["mcp__all__args-prompt"] == "<city> [state]"
            (edit,) = await running.runtime.run_command("/mcp__all__args-prompt Paris")
            assert isinstance(edit, Edit) and "Paris" in edit.text
            resource = (await running.runtime.resources())[0].value
            await running.ask(f"read @{resource}", timeout=60)
            assert f'<mentioned path="{resource}">' in json.dumps(running.server.requests[0].body).replace('\\"', '"')
            await running.send("go")
            number, behind = 0, 1
            while behind:
                number += 1
                asked = await running.until(ApprovalRequestedEvent, number, timeout=60)
                behind = asked.behind
                await running.runtime.submit(fill_in(asked))
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
            (result,) = (event.message for event in running.of(ToolResultEvent))
            assert "User provided the requested information" in text_of(result.parts)
            assert "Ada" in text_of(result.parts)


def sent_prompt(requests) -> str:
    return next(item.text for item in requests[-1].items if "args-prompt" in item.text)


def test_a_prompt_of_everything_is_sent_by_print_mode(tmp_path, configure):
    need(EVERYTHING)
    configure(all={"command": NODE, "args": [str(EVERYTHING), "stdio"]})
    with ServerThread([Reply("It rains.")]) as server:
        environ = {**environment(tmp_path, server), "TENUTO_HOME": str(tmp_path / "home")}
        done = subprocess.run(
            [sys.executable, "-m", "tenuto", "-p", "/mcp__all__args-prompt Paris"],
            check=False, capture_output=True, text=True, env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL,
            timeout=90,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "It rains.\n"), done.stderr
        assert "What's weather in Paris?" in sent_prompt(server.requests)


async def test_a_prompt_of_everything_is_offered_to_an_editor_and_sent(tmp_path, configure):
    need(EVERYTHING)
    configure(all={"command": NODE, "args": [str(EVERYTHING), "stdio"]})
    async with editor(tmp_path, [Reply("It rains.")]) as running:
        session = await running.new()
        await running.until(
            lambda: "mcp__all__args-prompt" in json.dumps(running.client.updates("available_commands_update"))
        )
        await running.ask(session, "/all:args-prompt city=Paris state=TX", timeout=90)
        assert running.client.text() == "It rains."
        assert "What's weather in Paris, TX?" in sent_prompt(running.server.requests)


def fill_in(asked: ApprovalRequestedEvent) -> AnswerApprovalOperation:
    """Write a name where that is needed; take what is proposed, or leave it out; send it."""
    labels = [answer.label for answer in asked.answers]
    wanted = next((label for label in labels if label == "Leave it out"), labels[0])
    return AnswerApprovalOperation(
        session_id=asked.session_id,
        request_id=asked.request_id,
        decision="once",
        choice=labels.index(wanted),
        feedback="Ada" if wanted == "Write it" else "",
    )


async def test_git_time_and_fetch_of_the_newest_protocol(tmp_path, configure):
    need(BIN / "mcp-server-git", BIN / "mcp-server-time", BIN / "mcp-server-fetch")
    (tmp_path / "work").mkdir()
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path / "work")], check=True)
    configure(
        git=program("mcp-server-git", "--repository", str(tmp_path / "work")),
        time=program("mcp-server-time", "--local-timezone", "UTC"),
        fetch=program("mcp-server-fetch"),
    )
    results, _, versions = await call(
        tmp_path,
        Call("mcp__git__git_status", {"repo_path": str(tmp_path / "work")}),
        Call("mcp__time__convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        Call("mcp__git__git_status", {"repo_path": "/nowhere"}),
        Call("mcp__fetch__fetch", {"url": "http://127.0.0.1:9/"}),
    )
    status, time, nowhere, page = results
    assert "trunk" in text_of(status.parts) and "21:00" in text_of(time.parts)
    assert nowhere.is_error and page.is_error
    assert versions == dict.fromkeys(("git", "time", "fetch"), "2026-07-28")


async def test_a_cancelled_call_of_a_real_server_leaves_it_usable(tmp_path, configure):
    need(EVERYTHING)
    configure(all={"command": NODE, "args": [str(EVERYTHING), "stdio"]})
    script = one_call_each(
        Call("mcp__all__trigger-long-running-operation", {"duration": 60, "steps": 60}),
        Call("mcp__all__echo", {"message": "still here"}),
    )
    from tenuto.protocol.operation import InterruptOperation

    environ = {"PATH": os.environ["PATH"], "TENUTO_MCP__WAIT": "60"}
    async with agent(tmp_path, script, environ=environ) as running:
        await running.send("go")
        await running.until(ToolOutputEvent, timeout=60)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        await running.ask("again")
        assert "still here" in text_of(running.of(ToolResultEvent)[-1].message.parts)
