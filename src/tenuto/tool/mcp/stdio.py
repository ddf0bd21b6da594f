"""A server that is started: one process, JSON lines over its stdin and stdout, its stderr in a file.

The SDK has such a transport too. This one bounds what a server may send (the SDK joins a line of any length, in
quadratic time), keeps stderr away from the screen, writes the process down for the case that we are killed, and has
the kernel end it then where it can (Linux).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.streams.memory
from mcp import types
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from msgspec import Struct

from tenuto.last_acts import add_last_act
from tenuto.private_files import make_directory, open_private
from tenuto.tool.output import format_size
from tenuto.tool.process.left_running import VARIABLE, RunningRecord

MAX_MESSAGE = 16_000_000
"""Bytes of one message: an image of several megabytes fits; what is longer ends the connection."""
MAX_LOG = 1_000_000
"""Bytes of a log file; what a server writes beyond them is dropped."""
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What every server gets of the user's environment. Keys are not among it: a server gets those that its entry names."""
END_SECONDS = 1.0
_KILL_SECONDS = 1.0
_CHUNK = 262_144
_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of `prctl`."""


class Program(Struct, frozen=True, kw_only=True):
    """What is started: a command line, where, with which variables beside the inherited ones; its log and records."""

    words: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    environ: Mapping[str, str]
    log: Path
    records: Path


@asynccontextmanager
async def run_program(program: Program, tell_end: Callable[[str], None]) -> AsyncGenerator[TransportStreams, None]:
    """Start a server and connect to it; its process group has ended when this is left. Raises `OSError`.

    `tell_end` is told why the connection is over, when it is.
    """
    record = RunningRecord(program.records, " ".join(program.words))
    try:
        process = await _start(program, record.word)
    except BaseException:
        record.remove()
        raise
    record.started(process.pid)
    forget = add_last_act(lambda: _signal_group(process.pid, signal.SIGKILL))
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    logging = asyncio.create_task(_keep_log(process, program.log), name="mcp stderr")
    reading = asyncio.create_task(_read(process, incoming, tell_end), name="mcp stdout")
    writing = asyncio.create_task(_write(process, outgoing), name="mcp stdin")
    try:
        yield read_stream, write_stream
    finally:
        with anyio.CancelScope(shield=True):
            for task in (reading, writing):
                task.cancel()
            await asyncio.wait((reading, writing))
            for stream in (incoming, read_stream, write_stream, outgoing):
                stream.close()
            await _end(process)
            logging.cancel()
            await asyncio.wait((logging,))
            forget()
            record.remove()


async def _start(program: Program, word: str) -> asyncio.subprocess.Process:
    environ = {name: program.environ[name] for name in INHERITED if name in program.environ}
    return await asyncio.create_subprocess_exec(
        *program.words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=program.cwd,
        env={**environ, **program.env, VARIABLE: word},
        start_new_session=True,
        limit=_CHUNK,
        # One system call and no lock: nothing in it can wait for another thread.
        preexec_fn=_death_signal(),
    )


def _death_signal() -> Callable[[], Any] | None:
    """Return what makes the kernel end a process with the thread that started it, `None` where it cannot."""
    if sys.platform != "linux":
        return None
    import ctypes
    from functools import partial

    return partial(ctypes.CDLL(None).prctl, _DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


async def _read(
    process: asyncio.subprocess.Process,
    incoming: anyio.streams.memory.MemoryObjectSendStream[SessionMessage | Exception],
    tell_end: Callable[[str], None],
) -> None:
    """Hand over each message; then close the stream, so that whoever waits for an answer hears of the end."""
    assert process.stdout is not None
    line = bytearray()
    why = ""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while chunk := await process.stdout.read(_CHUNK):
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                line += part
                if line.strip():
                    await incoming.send(_parse(bytes(line)))
                line.clear()
            line += rest
            if len(line) > MAX_MESSAGE:
                why = f"it sent a message of more than {format_size(MAX_MESSAGE)}"
                _signal_group(process.pid, signal.SIGKILL)
                break
    if not why:
        code = await process.wait()
        why = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with exit code {code}"
    tell_end(why)
    incoming.close()


def _parse(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(
    process: asyncio.subprocess.Process, outgoing: anyio.streams.memory.MemoryObjectReceiveStream[SessionMessage]
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()


async def _keep_log(process: asyncio.subprocess.Process, path: Path) -> None:
    """Write stderr into its file, up to its bound; read on behind it, so that the server never waits."""
    assert process.stderr is not None
    room = MAX_LOG
    descriptor = -1
    try:
        while chunk := await process.stderr.read(_CHUNK):
            with contextlib.suppress(OSError):
                if descriptor < 0:
                    make_directory(path.parent)
                    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                    room -= os.fstat(descriptor).st_size
                if room > 0:
                    room -= os.write(descriptor, chunk[:room])
    finally:
        if descriptor >= 0:
            os.close(descriptor)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its stdin and give it a moment; then end its whole group."""
    if process.stdin is not None:
        process.stdin.close()
    for wait, number in ((END_SECONDS, signal.SIGTERM), (_KILL_SECONDS, signal.SIGKILL)):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), wait)
        _signal_group(process.pid, number)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _KILL_SECONDS)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
