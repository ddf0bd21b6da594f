"""A client of the protocol with the package's own connection: what an editor does, and a record of all messages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    RequestPermissionResponse,
    TextContentBlock,
)

from acp import connect_to_agent
from tests.program import TENUTO
from tests.server import ScriptedServer

PROGRAM = (*TENUTO, "acp")
Choose = Callable[[dict[str, Any]], "str | Awaitable[str]"]


def first_yes(question: dict[str, Any]) -> str:
    """Allow what is asked, this once."""
    return next(option["optionId"] for option in question["options"] if option["kind"] == "allow_once")


@dataclass
class Recorder:
    """What the client answers with, and all that it was told and asked, as it came over the wire."""

    choose: Choose = first_yes
    files: dict[str, str] | None = None
    """What is open in the editor by path, saved or not; `None`: the client has no files."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    written: list[tuple[str, str]] = field(default_factory=list)
    terminals: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    commands: list[dict[str, Any]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    reason: str = ""

    def note(self, event: Any) -> None:
        if event.direction.value == "incoming":
            self.messages.append(event.message)

    def updates(self, kind: str = "", session_id: str = "") -> list[dict[str, Any]]:
        found = [
            message["params"]["update"]
            for message in self.messages
            if message.get("method") == "session/update"
            and (not session_id or message["params"]["sessionId"] == session_id)
        ]
        return [update for update in found if not kind or update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk", session_id: str = "") -> str:
        return "".join(update["content"].get("text", "") for update in self.updates(kind, session_id))

    # --- the methods that the agent calls ---

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        return None

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        question = {
            "session": session_id,
            "call": tool_call.model_dump(mode="json", by_alias=True, exclude_none=True),
            "options": [option.model_dump(mode="json", by_alias=True, exclude_none=True) for option in options],
        }
        self.questions.append(question)
        chosen = self.choose(question)
        answer = chosen if isinstance(chosen, str) else await chosen
        if not answer:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=answer))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
        if self.files is None or path not in self.files:
            raise RequestError.resource_not_found(path)
        return {"content": self.files[path]}

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
        assert self.files is not None
        self.written.append((path, content))
        self.files[path] = content
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content, newline="")
        return {}

    async def create_terminal(self, session_id: str, command: str, args=None, env=None, cwd=None, **more: Any) -> Any:
        environ = {**os.environ, **{one.name: one.value for one in env or []}}
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        name = f"terminal-{len(self.terminals)}"
        self.commands.append({"command": command, "args": args, "env": env, "cwd": cwd, **more})
        self.terminals[name] = process
        self.outputs[name] = ""
        return {"terminalId": name}

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        process = self.terminals[terminal_id]
        out, _errors = await process.communicate()
        self.outputs[terminal_id] = out.decode()
        code = process.returncode
        return {"exitCode": code} if code is not None and code >= 0 else {"signal": "SIGKILL"}

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        return {"output": self.outputs[terminal_id], "truncated": False}

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        if self.terminals[terminal_id].returncode is None:
            self.terminals[terminal_id].kill()
        return {}

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        self.released.append(terminal_id)
        return {}

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        return {"action": "accept", "content": {"text": self.reason}} if self.reason else {"action": "decline"}

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return None

    def on_connect(self, conn: Any) -> None:
        return None


@dataclass
class Editor:
    """A connected client."""

    connection: Any
    client: Recorder
    process: asyncio.subprocess.Process
    server: ScriptedServer
    work: Path

    async def new(self, **more: Any) -> str:
        answer = await self.connection.new_session(cwd=str(self.work), mcp_servers=more.pop("mcp_servers", []), **more)
        return answer.session_id

    async def ask(self, session_id: str, *blocks: Any, timeout: float = 40) -> Any:
        prompt = [TextContentBlock(type="text", text=one) if isinstance(one, str) else one for one in blocks]
        return await asyncio.wait_for(self.connection.prompt(session_id=session_id, prompt=prompt), timeout)

    async def until(self, condition: Callable[[], Any], timeout: float = 60) -> Any:
        async with asyncio.timeout(timeout):
            while not (found := condition()):
                await asyncio.sleep(0.01)
        return found

    async def call(self, method: str, params: Any) -> Any:
        """Send a request as it stands; returns its result."""
        return await asyncio.wait_for(self.connection._conn.send_request(method, params), 30)

    async def errors(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()


def environment(tmp_path: Path, server: ScriptedServer, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TENUTO_HOME": str(tmp_path / "home"),
        "TENUTO_MODEL": "openai-chat/test",
        "TENUTO_SANDBOX__ENABLED": "false",
        "TENUTO_COMPACTION__BACKGROUND": "false",
        "TENUTO_AGENT__FINAL_CHECK": "false",
        **server.environ(),
        **more,
    }


@asynccontextmanager
async def editor(
    tmp_path: Path,
    script: Any,
    *words: str,
    client: Recorder | None = None,
    terminal: bool = False,
    compactions: bool = False,
    forms: bool = False,
    environ: dict[str, str] | None = None,
    options: dict[str, Any] | None = None,
) -> AsyncIterator[Editor]:
    """Start `tenuto acp` against a scripted server, and shake hands."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    client = client or Recorder()
    async with ScriptedServer(script, **(options or {})) as server:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment(tmp_path, server), **(environ or {})},
            cwd=tmp_path,
            limit=50_000_000,
        )
        connection = connect_to_agent(
            client, process.stdin, process.stdout, use_unstable_protocol=True, observers=[client.note]
        )
        pass_on = connection._conn._handler

        async def handle(method: str, params: Any, is_notification: bool) -> Any:
            """The package knows no compactions yet, and would log a fault for each."""
            if method == "session/update" and params["update"]["sessionUpdate"].startswith("compaction"):
                return None
            return await pass_on(method, params, is_notification)

        connection._conn._handler = handle
        can = ClientCapabilities(
            fs=FileSystemCapabilities(
                read_text_file=client.files is not None, write_text_file=client.files is not None
            ),
            terminal=terminal,
        )
        params = {"protocolVersion": 1, "clientCapabilities": can.model_dump(mode="json", by_alias=True)}
        if compactions:
            params["clientCapabilities"]["session"] = {"compaction": {}}
        if forms:
            params["clientCapabilities"]["elicitation"] = {"form": {}}
        running = Editor(connection, client, process, server, work)
        try:
            await running.call("initialize", params)
            yield running
        finally:
            await connection.close()
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 60)
            except TimeoutError:
                process.kill()
                raise
