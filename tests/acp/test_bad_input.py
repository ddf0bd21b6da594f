"""What goes wrong: lines that are no messages, methods that nobody has, dead servers, clients that go, two on one."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest

from tenuto.protocol.message import UserMessage
from tenuto.session.session import Session
from tests.acp.client import PROGRAM, editor, environment
from tests.core.compacting import SUMMARY, is_summary_request
from tests.program import TENUTO
from tests.server import Call, Hang, Reply, Request, ScriptedServer

SLEEP = Call("bash", {"command": "echo $$ > pid; exec sleep 600"})
AUTO = ("--mode", "auto", "--no-sandbox")
PATIENCE = 150.0
"""Seconds for one thing that is waited for. A start of the program alone has taken ten on a busy machine."""


class Raw:
    """The program with nothing between it and the test."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, tmp_path, server: ScriptedServer, *words: str, **environ: str) -> Raw:
        (tmp_path / "work").mkdir(exist_ok=True)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(*PROGRAM, *words),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment(tmp_path, server, **environ),
            limit=200_000_000,
        )
        return cls(process)

    def write(self, *lines: bytes | dict) -> None:
        assert self.process.stdin is not None
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")

    async def read(self, request_id: object) -> dict:
        """Return the answer to a request; what else comes is passed over, but has to be a message."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while line := await self.process.stdout.readline():
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
                if "method" not in message and message.get("id") == request_id:
                    return message
        raise AssertionError("it ended without an answer")

    async def new(self, tmp_path, **capabilities) -> str:
        self.write(
            request(100, "initialize", protocolVersion=1, clientCapabilities=capabilities),
            request(101, "session/new", cwd=str(tmp_path / "work"), mcpServers=[]),
        )
        return (await self.read(101))["result"]["sessionId"]

    async def end(self) -> tuple[int, str]:
        assert self.process.stdin is not None and self.process.stderr is not None
        self.process.stdin.close()
        errors = await asyncio.wait_for(self.process.stderr.read(), PATIENCE)
        return await asyncio.wait_for(self.process.wait(), PATIENCE), errors.decode()


def request(request_id: object, method: str, **params) -> dict:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def prompt(request_id: object, session: str, text: str) -> dict:
    return request(request_id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


NO_MESSAGES = [
    (b"{not json", -32700),
    (b"\xff\xfe", -32700),
    (b"[" * 5_000, -32700),
    (b"[]", -32600),
    (b'"text"', -32600),
    (b'{"jsonrpc": "2.0", "id": null, "method": 7}', -32600),
]


async def test_a_line_that_is_no_message_is_answered_and_the_next_one_counts(tmp_path):
    async with ScriptedServer([]) as server:
        raw = await Raw.start(tmp_path, server)
        for number, (line, code) in enumerate(NO_MESSAGES):
            raw.write(line, b"", b'{"jsonrpc": "2.0", "id": 5}', request(number, "initialize", protocolVersion=1))
            assert (await raw.read(None))["error"]["code"] == code, line[:50]
            assert (await raw.read(number))["result"]["agentInfo"]["name"] == "tenuto"
        assert (await raw.end())[0] == 0


NO_SENSE = [
    ("no/such", {}, -32601),
    ("_mine", {}, -32601),
    ("session/new", {}, -32602),
    ("session/new", {"cwd": 7, "mcpServers": []}, -32602),
    ("session/new", None, -32602),
    ("session/prompt", {"sessionId": "nobody", "prompt": []}, -32002),
    ("session/load", {"sessionId": "nobody", "cwd": "/", "mcpServers": []}, -32002),
    ("session/resume", {"sessionId": "../..", "cwd": "/"}, -32002),
    ("session/set_mode", {"sessionId": "nobody", "modeId": "ask"}, -32002),
]


async def test_what_makes_no_sense_is_an_error_and_nothing_ends(tmp_path):
    async with ScriptedServer([]) as server:
        raw = await Raw.start(tmp_path, server)
        for number, (method, params, code) in enumerate(NO_SENSE):
            raw.write({"jsonrpc": "2.0", "id": f"x{number}", "method": method, "params": params})
            error = (await raw.read(f"x{number}"))["error"]
            assert error["code"] == code and error["message"], method
            raw.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "nobody"}})
            raw.write({"jsonrpc": "2.0", "method": "no/such/notification", "params": {}})
        raw.write(request(1, "initialize", protocolVersion=1))
        assert (await raw.read(1))["result"]
        assert (await raw.end())[0] == 0


async def test_a_dead_server_is_said_and_the_session_stays(tmp_path):
    async with ScriptedServer([]) as server:
        raw = await Raw.start(
            tmp_path,
            server,
            OPENAI_BASE_URL="http://127.0.0.1:9/v1",
            TENUTO_HTTP__RETRIES="0",
            TENUTO_RETRIES__ATTEMPTS="1",
        )
        session = await raw.new(tmp_path)
        raw.write(prompt(1, session, "hi"))
        raw.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        answer = await raw.read(1)
        assert "error" in answer or answer["result"]["stopReason"] == "cancelled"
        raw.write(prompt(2, session, "/status"))
        assert (await raw.read(2))["result"]["stopReason"] == "end_turn"
        assert (await raw.end())[0] == 0


@pytest.mark.parametrize("model", ["openai-chat", "no/such", "anthropic/claude-sonnet-5-5:infinite"])
async def test_an_unknown_model_is_refused_when_a_session_is_opened(tmp_path, model):
    async with ScriptedServer([]) as server:
        raw = await Raw.start(tmp_path, server, "--model", model)
        raw.write(request(1, "session/new", cwd=str(tmp_path / "work"), mcpServers=[]))
        assert (await raw.read(1))["error"]["code"] == -32602
        assert (await raw.end())[0] == 0


async def test_a_client_that_goes_in_the_middle_leaves_a_saved_session_and_no_process(tmp_path):
    async with ScriptedServer([Reply("Sleeping.", tool_calls=[SLEEP]), Hang()]) as server:
        raw = await Raw.start(tmp_path, server, *AUTO)
        session = await raw.new(tmp_path)
        raw.write(prompt(1, session, "sleep"))
        pid_file = tmp_path / "work" / "pid"
        async with asyncio.timeout(PATIENCE):
            while not (pid_file.is_file() and pid_file.read_text().strip()):
                await asyncio.sleep(0.02)
        code, errors = await raw.end()
        assert code == 0 and "Traceback" not in errors
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)
        directory = next((tmp_path / "home" / "sessions").glob(f"*/{session}"))
        opened = Session.open(directory)
        assert any(isinstance(entry, UserMessage) for entry in opened.path())
        opened.close()


async def told(raw: Raw, word: str) -> None:
    """Read until a message with this word comes."""
    assert raw.process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while line := await raw.process.stdout.readline():
            if word.encode() in line:
                return
    raise AssertionError(f"it ended before it told of {word}")


def goes_on(request: Request):
    """Answer at length; ask for a file to be written; hang in a summary."""
    if is_summary_request(request):
        return Reply(SUMMARY, delay_per_event=1.0)
    if any("and now?" in item.text for item in request.items):
        return Reply("Here.")
    said = request.items[-1].text
    if "slowly" in said:
        return Reply("word " * 500, delay_per_event=0.5)
    if "write" in said:
        return Reply(tool_calls=[Call("write", {"path": "a.txt", "content": "a"})])
    return Reply("A long answer about lighthouses. " * 400)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("answer slowly", "agent_message_chunk"),
        ("write it", "session/request_permission"),
        ("/compact", "compaction_summary_chunk"),
    ],
)
async def test_wherever_a_client_goes_nothing_is_lost_and_nothing_hangs(tmp_path, text, sign):
    async with ScriptedServer(goes_on) as server:
        raw = await Raw.start(tmp_path, server, TENUTO_COMPACTION__KEEP_RECENT_TOKENS="1000")
        session = await raw.new(tmp_path, session={"compaction": {}})
        said = [f"part {number}" for number in range(3)]
        for number, part in enumerate(said):
            raw.write(prompt(number, session, part))
            await raw.read(number)
        raw.write(prompt(9, session, text))
        await told(raw, sign)
        code, errors = await raw.end()
        assert code == 0 and "Traceback" not in errors
        assert not (tmp_path / "work" / "a.txt").exists()  # a question that nobody answers allows nothing
        again = await Raw.start(tmp_path, server)
        again.write(request(1, "session/load", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[]))
        lines: list[str] = []
        assert again.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while b'"id":1' not in (line := await again.process.stdout.readline()).replace(b" ", b""):
                assert line, "it ended before it had told the conversation"
                lines.append(line.decode())
        for part in [*said, *([text] if text[0] != "/" else [])]:
            assert any("user_message_chunk" in line and part in line for line in lines)
        again.write(prompt(2, session, "and now?"))
        assert (await again.read(2))["result"]["stopReason"] == "end_turn"
        assert (await again.end())[0] == 0


async def test_a_client_that_goes_from_ten_working_sessions_leaves_them_all_saved(tmp_path):
    async with ScriptedServer(lambda _request: Hang()) as server:
        raw = await Raw.start(tmp_path, server)
        sessions = [await raw.new(tmp_path) for _ in range(10)]
        raw.write(*(prompt(f"p{number}", session, f"task {number}") for number, session in enumerate(sessions)))
        async with asyncio.timeout(PATIENCE):
            while len(server.requests) < 10:
                await asyncio.sleep(0.02)
        code, errors = await raw.end()
        assert code == 0 and "Traceback" not in errors
        for number, session in enumerate(sessions):
            opened = Session.open(next((tmp_path / "home" / "sessions").glob(f"*/{session}")))
            assert f"task {number}" in str([entry for entry in opened.path() if isinstance(entry, UserMessage)])
            opened.close()


async def test_a_client_that_reads_no_more_ends_the_program(tmp_path):
    async with ScriptedServer(lambda _request: Reply("x" * 200_000)) as server:
        raw = await Raw.start(tmp_path, server)
        session = await raw.new(tmp_path)
        assert raw.process.stdout is not None
        raw.write(prompt(1, session, "go on"))
        raw.process.stdout._transport.close()  # the reading end, and no other
        assert await asyncio.wait_for(raw.process.wait(), PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_it_in_order(tmp_path, number):
    async with ScriptedServer([Hang()]) as server:
        raw = await Raw.start(tmp_path, server)
        session = await raw.new(tmp_path)
        raw.write(prompt(1, session, "hi"))
        async with asyncio.timeout(PATIENCE):
            while not server.requests:
                await asyncio.sleep(0.02)
        raw.process.send_signal(number)
        assert await asyncio.wait_for(raw.process.wait(), PATIENCE) == 128 + number
        directory = next((tmp_path / "home" / "sessions").glob(f"*/{session}"))
        Session.open(directory).close()  # nobody holds it


async def test_two_programs_on_one_session_one_is_told_who_has_it(tmp_path):
    async with editor(tmp_path, [Reply("One."), Reply("Two.")]) as running:
        session = await running.new()
        await running.ask(session, "first")
        other = await Raw.start(tmp_path, running.server)
        other.write(request(1, "session/load", sessionId=session, cwd=str(running.work), mcpServers=[]))
        error = (await other.read(1))["error"]
        assert f"session {session[:8]} is open in" in error["message"] and "fork" in error["message"]
        assert (await other.end())[0] == 0
        assert (await running.ask(session, "second")).stop_reason == "end_turn"
        # The same client may load it again: it is told the conversation, and nothing else changes.
        await running.call("session/load", {"sessionId": session, "cwd": str(running.work), "mcpServers": []})
        assert running.client.text("user_message_chunk") == "firstsecond"


async def test_nothing_but_messages_comes_on_standard_output(tmp_path):
    """An extension that prints, and a command that would read the conversation."""
    (tmp_path / "home" / "extensions").mkdir(parents=True)
    (tmp_path / "home" / "extensions" / "loud.py").write_text("print('LOUD')\n\ndef setup(api):\n    print('LOUDER')\n")
    command = Call("bash", {"command": "cat; echo after"})
    async with editor(tmp_path, [Reply(tool_calls=[command]), Reply("Done.")], *AUTO) as running:
        assert (await running.ask(await running.new(), "go")).stop_reason == "end_turn"
        assert "after" in running.server.requests[-1].items[-1].text
        # Everything that came was read as a message by the package's own connection; a loud line would be an error.
        assert all("jsonrpc" in message for message in running.client.messages)


def test_a_terminal_is_told_what_the_command_is_for(tmp_path):
    import pty
    import subprocess

    mine, theirs = pty.openpty()
    done = subprocess.run(
        [*TENUTO, "acp"],
        check=False,
        stdin=theirs,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=30,
    )
    os.close(mine), os.close(theirs)
    assert done.returncode == 2 and "let an editor start it" in done.stderr and not done.stdout
