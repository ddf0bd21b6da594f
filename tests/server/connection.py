"""One HTTP/1.1 connection: requests in, bytes out; it notices at once when the client leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

LIMIT = 32 * 1024 * 1024
"""The largest body in bytes; Anthropic's limit."""


class BadRequestError(Exception):
    """Bytes that are not HTTP, or a body that is too large."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Incoming:
    """A request as it came over the wire. Times are monotonic seconds."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    first_byte: float = 0.0
    complete: float = 0.0


@dataclass(slots=True, eq=False, weakref_slot=True)
class Connection(asyncio.Protocol):
    """A keep-alive connection; `handle` answers one request after the other."""

    handle: Callable[[Connection, Incoming], Awaitable[None]]
    transport: asyncio.Transport | None = None
    buffer: bytearray = field(default_factory=bytearray)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    writable: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    first_byte: float = 0.0
    last_byte: float = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        # "Ended" shall mean that the kernel has every byte.
        transport.set_write_buffer_limits(high=0)
        self.writable.set()
        self.task = asyncio.get_running_loop().create_task(self.serve())

    def data_received(self, data: bytes) -> None:
        self.last_byte = time.monotonic()
        if not self.buffer:
            self.first_byte = self.last_byte
        self.buffer += data
        self.arrived.set()

    def eof_received(self) -> bool:
        self.gone.set()
        self.arrived.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self.arrived.set()
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    async def serve(self) -> None:
        """Answer requests until one side closes."""
        assert self.transport is not None
        try:
            while (incoming := await self.read_request()) is not None:
                await self.handle(self, incoming)
                if incoming.headers.get("connection", "").lower() == "close":
                    break
        except BadRequestError as error:
            await self.respond(error.status, {"connection": "close"}, str(error).encode())
        except ConnectionError:
            pass
        finally:
            self.transport.close()

    async def more(self) -> bool:
        """Wait for more bytes; false when there will be none."""
        if self.gone.is_set():
            return False
        self.arrived.clear()
        await self.arrived.wait()
        return not self.gone.is_set()

    async def read_request(self) -> Incoming | None:
        """Read one request, `None` when the client has closed."""
        while b"\r\n\r\n" not in self.buffer:
            if not await self.more():
                return None
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        try:
            method, target, _ = lines[0].split(" ")
        except ValueError:
            raise BadRequestError(400, "malformed request line") from None
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        incoming = Incoming(method, target, headers, first_byte=self.first_byte)
        self.buffer = bytearray(rest)
        if headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in headers.get("transfer-encoding", ""):
            body = await self._read_chunks()
        else:
            body = await self._read_exactly(int(headers.get("content-length", "0")))
        if body is None:
            return None
        incoming.body = body
        incoming.complete = self.last_byte
        self.first_byte = self.last_byte
        return incoming

    async def _read_exactly(self, size: int) -> bytes | None:
        if size > LIMIT:
            raise BadRequestError(413, "Request exceeds the maximum size")
        while len(self.buffer) < size:
            if not await self.more():
                return None
        body = bytes(self.buffer[:size])
        del self.buffer[:size]
        return body

    async def _read_chunks(self) -> bytes | None:
        body = bytearray()
        while True:
            while b"\r\n" not in self.buffer:
                if not await self.more():
                    return None
            line, _, rest = bytes(self.buffer).partition(b"\r\n")
            self.buffer = bytearray(rest)
            size = int(line.split(b";")[0], 16)
            chunk = await self._read_exactly(size + 2)
            if chunk is None:
                return None
            if size == 0:
                return bytes(body)
            body += chunk[:-2]

    def send(self, data: bytes) -> None:
        """Write bytes; raises `ConnectionError` when the client has left."""
        if self.gone.is_set() or self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client has left")
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the kernel has taken everything."""
        await self.writable.wait()
        if self.gone.is_set():
            raise ConnectionResetError("the client has left")

    async def pause(self, seconds: float) -> None:
        """Wait, but not longer than the client stays."""
        if seconds <= 0:
            return
        try:
            await asyncio.wait_for(self.gone.wait(), seconds)
        except TimeoutError:
            return
        raise ConnectionResetError("the client has left")

    def head(self, status: int, headers: dict[str, str]) -> None:
        """Write a status line and headers."""
        try:
            reason = HTTPStatus(status).phrase
        except ValueError:
            reason = "Overloaded" if status == 529 else "Status"
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def chunk(self, data: bytes) -> None:
        """Write one chunk of a body of unknown length; an empty one ends it."""
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def respond(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Write a whole response."""
        self.head(status, {"content-type": "application/json", **headers, "content-length": str(len(body))})
        self.send(body)
        await self.drain()

    def drop(self) -> None:
        """Break the connection off after what was written."""
        if self.transport is not None:
            self.transport.close()
