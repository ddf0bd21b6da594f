"""A raw HTTP server for what no well-behaved server does: it answers each connection with given bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType

Answer = Callable[[str, bytes, asyncio.StreamWriter], Awaitable[None]]


class TinyServer:
    """Hands each request (first line, body) to `answer`; connections are kept alive as HTTP 1.1 has it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self.requests: list[tuple[str, bytes]] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> TinyServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    length = next(
                        (
                            int(line.split(":")[1])
                            for line in head.split("\r\n")
                            if line.lower().startswith("content-length")
                        ),
                        0,
                    )
                    body = await reader.readexactly(length)
                    self.requests.append((head, body))
                    await self._answer(head.split("\r\n")[0], body, writer)
                    await writer.drain()
                    if writer.is_closing():
                        break
        finally:
            self._tasks.discard(task)
            writer.close()


def chunked(chunks: Sequence[bytes], *, end: bool = True, status: str = "200 OK") -> bytes:
    """A streamed response; without `end` the body is left open."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return head + body + (b"0\r\n\r\n" if end else b"")


def plain(status: str, body: bytes, *headers: str) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def always(response: bytes) -> Answer:
    """An answer that is the same for every request."""

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(response)

    return answer
