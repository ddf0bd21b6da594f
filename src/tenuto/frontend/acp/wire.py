"""The wire: one line of JSON a message, on the program's own standard input and output and on nothing else.

Whatever else in the process, or in what it starts, writes to standard output writes to standard error instead, and
standard input is empty for it: a line that is no message would end the conversation.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

import msgspec

from tenuto.text.writable import to_json

MAX_LINE = 100_000_000
"""Bytes of one message: images come in base64."""
MAX_WAITING = 64_000_000
"""Bytes that wait to be written: a client that leaves so much unread reads nothing any more."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_CHUNK = 1 << 20


@contextmanager
def own_streams() -> Generator[tuple[int, int]]:
    """Take standard input and output away from everybody else; yield the descriptors that they had."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield incoming, outgoing
    finally:
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
        for descriptor in (incoming, outgoing, nothing):
            os.close(descriptor)


class LineTransport:
    """Messages over two descriptors. `send` keeps the order of its calls and never waits for the other side.

    Threads read and write: a pipe, a file and a terminal are all the same to them, and a client that does not read
    holds nobody up.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._incoming = incoming
        self._outgoing = outgoing
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._unwritten = 0
        self._lock = threading.Lock()
        self.is_over = False
        """Whether the client is gone: nothing is written any more."""
        threading.Thread(target=self._read, name="acp reader", daemon=True).start()
        self._writer = threading.Thread(target=self._write, name="acp writer", daemon=True)
        self._writer.start()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message: the protocol package's way. An answer that nobody is there for is dropped.

        Raises `ConnectionError` for a question when the client is gone.
        """
        if self.is_over and "method" not in message:
            return
        self.put(message)

    def put(self, message: dict[str, Any]) -> None:
        """Send a message behind all that were sent before. Raises `ConnectionError` when the client is gone."""
        if self.is_over:
            raise ConnectionError("the client is gone")
        line = to_json(_plain(message)) + b"\n"
        with self._lock:
            self._unwritten += len(line)
            is_stuck = self._unwritten > MAX_WAITING
        self._waiting.put(line)
        if is_stuck:
            self._lose()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, `None` when there will be none."""
        return await self._messages.get()

    def end(self) -> None:
        """Nothing more comes from the client; what it has asked is still answered. On the loop."""
        self._messages.put_nowait(None)

    def _lose(self) -> None:
        """Nobody reads any more what is written. On the loop."""
        self.is_over = True
        self.end()

    async def close(self) -> None:
        """Write what waits, unless nobody reads it, and let go."""
        self.is_over = True
        self._waiting.put(b"")
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(self._writer.join, 1.0), 1.5)

    def _read(self) -> None:
        """Hand every line over to the loop; runs in a thread of its own, and ends with the process."""
        line, is_too_long = bytearray(), False
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            while chunk := _read_some(self._incoming):
                *ends, rest = chunk.split(b"\n")
                for end in ends:
                    line += end
                    self._loop.call_soon_threadsafe(self._take, None if is_too_long else bytes(line))
                    line, is_too_long = bytearray(), False
                if len(line) + len(rest) > MAX_LINE:
                    line, is_too_long = bytearray(), True
                elif not is_too_long:
                    line += rest
            self._loop.call_soon_threadsafe(self.end)

    def _take(self, line: bytes | None) -> None:
        """Take one line; one that is no message is answered with the protocol's error, and the next one is read."""
        if line is None:
            self._refuse(INVALID_REQUEST, f"a message may have at most {MAX_LINE:,} bytes; this one was left out")
            return
        if not line.strip():
            return
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._refuse(PARSE_ERROR, f"the line is not JSON: {error}")
            return
        if not isinstance(message, dict):
            self._refuse(INVALID_REQUEST, "a message is one JSON object; batches are not part of this protocol")
            return
        known = cast("dict[str, Any]", message)
        if "method" in known and not isinstance(known["method"], str):
            self._refuse(INVALID_REQUEST, "“method” has to be a text", known.get("id"))
            return
        if "method" not in known and not isinstance(known.get("id"), int):
            return  # an answer to nothing that was asked here
        self._messages.put_nowait(known)

    def _refuse(self, code: int, text: str, request_id: Any = None) -> None:
        with suppress(ConnectionError):
            self.put({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}})

    def _write(self) -> None:
        """Write what is put, in order, until the empty line; runs in a thread of its own."""
        while line := self._waiting.get():
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._outgoing, view) :]
            except OSError:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._lose)
                return
            with self._lock:
                self._unwritten -= len(line)


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


def _plain(value: Any) -> Any:
    """Return a message with nothing in it that JSON does not know; validation errors carry exceptions along."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value if isinstance(value, str | int | float | bool | msgspec.Raw) or value is None else str(value)
