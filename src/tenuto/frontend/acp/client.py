"""The client: what it can do, what it is told, and what it is asked for: a reason, its files and its terminals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import CLIENT_METHODS
from acp.schema import (
    AvailableCommandsUpdate,
    ClientCapabilities,
    ConfigOptionUpdate,
    CreateFormSessionElicitationRequest,
    CreateTerminalRequest,
    CreateTerminalResponse,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    EnvVariable,
    KillTerminalRequest,
    ReadTextFileRequest,
    ReadTextFileResponse,
    ReleaseTerminalRequest,
    TerminalOutputRequest,
    TerminalOutputResponse,
    WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
    WriteTextFileRequest,
)
from acp.utils import serialize_params
from pydantic import BaseModel, ValidationError

from tenuto.frontend.acp.updates import Update
from tenuto.frontend.acp.wire import LineTransport
from tenuto.text.writable import path_text
from tenuto.tool.run.editor import EditorError, HostedCommand, HostedEnd

FILE_SECONDS = 10.0
"""How long the client may take for a file; then the disk says it."""
ENDING_SECONDS = 2.0
"""How long it may take to end a terminal."""
CLIENT_FAILURES = (RequestError, ConnectionError, ValidationError, TimeoutError)
AnyUpdate = Update | AvailableCommandsUpdate | ConfigOptionUpdate


class Client:
    """The other side. Everything that it is told or asked goes out in the order in which that was done."""

    def __init__(self, transport: LineTransport) -> None:
        self._transport = transport
        self.connection: Connection | None = None
        self.can = ClientCapabilities()
        self.compactions = False
        """Whether it understands compactions."""

    def update(self, session_id: str, update: AnyUpdate) -> None:
        """Tell it something of a session; nothing happens where it is gone."""
        body = _body(update) if isinstance(update, BaseModel) else msgspec.to_builtins(update)
        params = {"sessionId": session_id, "update": body}
        with suppress(ConnectionError):
            self._transport.put({"jsonrpc": "2.0", "method": CLIENT_METHODS["session_update"], "params": params})

    async def request(self, method: str, params: BaseModel) -> Any:
        """Ask it for something by the name that the package has for it. Raises one of `CLIENT_FAILURES`."""
        if self.connection is None:
            raise ConnectionError("no client is there")
        return await self.connection.send_request(CLIENT_METHODS[method], _body(params))

    @property
    def has_forms(self) -> bool:
        """Whether it can ask its user for a text."""
        return self.can.elicitation is not None and self.can.elicitation.form is not None

    async def ask_text(self, session_id: str, message: str, title: str) -> str:
        """Return what its user writes, empty when they write nothing. Raises one of `CLIENT_FAILURES`."""
        schema = ElicitationSchema(
            type="object",
            properties={"text": ElicitationStringPropertySchema(type="string", title=title)},
            required=["text"],
        )
        asked = CreateFormSessionElicitationRequest(
            session_id=session_id, message=message, mode="form", requested_schema=schema
        )
        match await self.request("elicitation_create", asked):
            case {"action": "accept", "content": {"text": str(text)}}:
                return text.strip()
            case _:
                return ""


class HostEditor:
    """The client's files and terminals for one session, as far as it has them: `tool/run/editor.py`.

    `show` is told which terminal a call runs in.
    """

    def __init__(self, client: Client, session_id: str, show: Callable[[str, str], None]) -> None:
        self._client = client
        self._session_id = session_id
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @property
    def has_terminals(self) -> bool:
        """Whether the client runs commands."""
        return bool(self._client.can.terminal)

    def read(self, path: Path) -> str | None:
        """Return the text that the client has of a file; `None` where it does not say, or takes too long."""
        if self._client.can.fs is None or not self._client.can.fs.read_text_file:
            return None
        asked = ReadTextFileRequest(session_id=self._session_id, path=path_text(path))
        answer = self._ask("fs_read_text_file", asked)
        try:
            return None if answer is None else ReadTextFileResponse.model_validate(answer[0]).content
        except ValidationError:
            return None

    def write(self, path: Path, text: str) -> bool:
        """Have the client write a file; say whether it did."""
        if self._client.can.fs is None or not self._client.can.fs.write_text_file:
            return False
        asked = WriteTextFileRequest(session_id=self._session_id, path=path_text(path), content=text)
        return self._ask("fs_write_text_file", asked) is not None

    def _ask(self, method: str, params: BaseModel) -> tuple[Any] | None:
        """Return the client's answer from a thread; `None` where it has none. The loop itself may not wait for it."""
        if threading.get_ident() == self._thread:
            return None
        waiting = asyncio.run_coroutine_threadsafe(self._client.request(method, params), self._loop)
        try:
            return (waiting.result(FILE_SECONDS),)
        except LateError:
            waiting.cancel()
            return None
        except CLIENT_FAILURES:
            return None

    async def run(self, command: HostedCommand) -> HostedEnd:
        """Run a command in a terminal of the client, which shows it. Raises `EditorError`."""
        program, *rest = command.words
        asked = CreateTerminalRequest(
            session_id=self._session_id,
            command=program,
            args=rest,
            env=[EnvVariable(name=name, value=value) for name, value in command.environ.items()],
            cwd=path_text(command.cwd),
            output_byte_limit=command.max_bytes,
        )
        try:
            terminal = CreateTerminalResponse.model_validate(await self._client.request("terminal_create", asked))
        except CLIENT_FAILURES as error:
            raise EditorError(str(error)) from error
        self._show(command.call_id, terminal.terminal_id)
        try:
            return await self._follow(terminal.terminal_id, command.timeout)
        except CLIENT_FAILURES as error:
            raise EditorError(str(error)) from error
        finally:
            await self._let_go(terminal.terminal_id)

    async def _follow(self, terminal_id: str, timeout: float | None) -> HostedEnd:
        """Wait for the end of a terminal's command, and stop it where it takes too long or is not wanted any more."""
        waits = WaitForTerminalExitRequest(session_id=self._session_id, terminal_id=terminal_id)
        exit_code: int | None = None
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                answer = await self._client.request("terminal_wait_for_exit", waits)
            ended = WaitForTerminalExitResponse.model_validate(answer)
            exit_code = ended.exit_code if ended.exit_code is not None else 128 + _signal_number(ended.signal)
        except TimeoutError:
            timed_out = True
            await self._kill(terminal_id)
        except asyncio.CancelledError:
            await self._kill(terminal_id)
            raise
        asked = TerminalOutputRequest(session_id=self._session_id, terminal_id=terminal_id)
        output = TerminalOutputResponse.model_validate(await self._client.request("terminal_output", asked))
        return HostedEnd(output=output.output, exit_code=exit_code, timed_out=timed_out, truncated=output.truncated)

    async def _kill(self, terminal_id: str) -> None:
        await self._end("terminal_kill", KillTerminalRequest(session_id=self._session_id, terminal_id=terminal_id))

    async def _let_go(self, terminal_id: str) -> None:
        asked = ReleaseTerminalRequest(session_id=self._session_id, terminal_id=terminal_id)
        await self._end("terminal_release", asked)

    async def _end(self, method: str, params: BaseModel) -> None:
        with suppress(*CLIENT_FAILURES):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._client.request(method, params)


def _body(told: BaseModel) -> dict[str, Any]:
    """Return a message as JSON. A new file has the old text null: without the word some clients show no change."""
    body: dict[str, Any] = serialize_params(told)
    contents = body.get("toolCall", body).get("content")
    for content in cast("list[dict[str, Any]]", contents) if isinstance(contents, list) else ():
        if content["type"] == "diff":
            content.setdefault("oldText", None)
    return body


def _signal_number(name: str | None) -> int:
    """Return the number of a signal that a client names with or without its SIG, 0 for one that nobody knows."""
    import signal

    word = (name or "").upper()
    known = signal.Signals.__members__
    return int(known.get(word, known.get(f"SIG{word}", 0)))
