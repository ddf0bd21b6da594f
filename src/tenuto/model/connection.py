"""Direct HTTP/1.1 connections under httpx: asyncio's sockets, and h11 for what is on them.

httpx's own transport brings httpcore and anyio along, 30 ms of imports before the first request. Where no proxy stands
in between, nothing of them is needed. Imported with the first request only.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any, cast

import h11
import httpx

IDLE_SECONDS = 5.0
"""How long a connection is kept for the next request; servers close theirs not long after."""
BUFFERED_BYTES = 1_000_000
"""Beyond this the other side has to wait until somebody reads."""
EYEBALLS_SECONDS = 0.25
"""After which the next address is tried beside the first (RFC 8305)."""

Origin = tuple[str, str, int]


class DirectTransport(httpx.AsyncBaseTransport):
    """Connects to each server itself and keeps the connections for what comes next.

    `verify` is for https: the context to trust by, or `True` for the authorities that httpx trusts.
    """

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._verify = verify
        self._idle: dict[Origin, list[_Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response, whose body is still to come. Raises `httpx.TransportError`."""
        seconds = cast("dict[str, float | None]", request.extensions.get("timeout", {}))
        connection = self._take(_origin(request.url)) or await self._connect(request.url, seconds.get("connect"))
        try:
            await connection.send(request, seconds.get("write"))
            head = await connection.receive_head(seconds.get("read"))
        except BaseException:
            connection.abort()
            raise
        body = _Body(self, connection, seconds.get("read"))
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=body)

    async def aclose(self) -> None:
        """Close what is kept."""
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()

    def give_back(self, connection: _Connection) -> None:
        """Keep a connection whose response has been read; close one in the middle of something."""
        if connection.begin_anew():
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(connection.origin, []).append(connection)
        else:
            connection.abort()

    def _take(self, origin: Origin) -> _Connection | None:
        connections = self._idle.get(origin, [])
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while connections:
            connection = connections.pop()
            if connection.is_quiet and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _connect(self, url: httpx.URL, seconds: float | None) -> _Connection:
        if url.scheme not in ("http", "https") or not url.host:
            raise httpx.UnsupportedProtocol(f"{url} is no http:// or https:// address")
        origin = _origin(url)
        _, host, port = origin
        tls = self._tls() if url.scheme == "https" else None
        try:
            async with asyncio.timeout(seconds):
                _, link = await asyncio.get_running_loop().create_connection(
                    _Link,
                    host,
                    port,
                    ssl=tls,
                    server_hostname=host if tls else None,
                    happy_eyeballs_delay=EYEBALLS_SECONDS,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error) or f"no connection to {host}:{port} in time") from error
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(str(error)) from error
        return _Connection(origin, link)

    def _tls(self) -> ssl.SSLContext:
        if not isinstance(self._verify, ssl.SSLContext):
            self._verify = httpx.create_ssl_context(verify=self._verify)
        self._verify.set_alpn_protocols(["http/1.1"])
        return self._verify


class _Body(httpx.AsyncByteStream):
    """The body of a response, as it comes."""

    def __init__(self, transport: DirectTransport, connection: _Connection, seconds: float | None) -> None:
        self._transport = transport
        self._connection: _Connection | None = connection
        self._seconds = seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection is not None:
            data = await self._connection.receive_body(self._seconds)
            if not data:
                break
            yield data
        await self.aclose()

    async def aclose(self) -> None:
        """Nothing more is wanted."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.give_back(connection)


class _Connection:
    """One connection and how far its request and response have come."""

    def __init__(self, origin: Origin, link: _Link) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._link = link
        self._http = h11.Connection(h11.CLIENT)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has come unasked, the end above all."""
        return not self._link.ended and not self._link.has_data

    async def send(self, request: httpx.Request, seconds: float | None) -> None:
        """Send a request with its body."""
        head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        try:
            data = self._http.send(head) or b""
            async for chunk in cast("httpx.AsyncByteStream", request.stream):
                data += self._http.send(h11.Data(data=chunk)) or b""
            data += self._http.send(h11.EndOfMessage()) or b""
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        try:
            async with asyncio.timeout(seconds):
                await self._link.send(data)
        except TimeoutError as error:
            raise httpx.WriteTimeout("the request was not taken in time") from error
        except OSError as error:
            raise httpx.WriteError(str(error)) from error

    async def receive_head(self, seconds: float | None) -> h11.Response:
        """Return the status and headers of the response; interim ones (1xx) are passed over."""
        while True:
            event = await self._receive(seconds)
            if isinstance(event, h11.Response):
                return event

    async def receive_body(self, seconds: float | None) -> bytes:
        """Return more of the body, empty at its end."""
        while True:
            event = await self._receive(seconds)
            if isinstance(event, h11.Data):
                if event.data:
                    return bytes(event.data)
            else:
                return b""

    def begin_anew(self) -> bool:
        """Get ready for another request; say whether that can be."""
        if self._link.ended or not (self._http.our_state is self._http.their_state is h11.DONE):
            return False
        self._http.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close it, whatever is under way."""
        self._link.abort()

    async def _receive(self, seconds: float | None) -> Any:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(seconds):
                    data = await self._link.receive()
                self._http.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except TimeoutError as error:
            raise httpx.ReadTimeout("no data came in time") from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error
        return event


class _Link(asyncio.Protocol):
    """The bytes of one connection."""

    def __init__(self) -> None:
        self.ended = False
        self._received = bytearray()
        self._failure: Exception | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def has_data(self) -> bool:
        """Whether something has come that nobody has read."""
        return bool(self._received)

    async def send(self, data: bytes) -> None:
        """Write, and wait while the other side does not keep up. Raises OSError when it is gone."""
        if self._transport is None or self.ended:
            raise self._failure or ConnectionResetError("the server has closed the connection")
        self._transport.write(data)
        await self._writable.wait()
        if self._failure is not None:
            raise self._failure

    async def receive(self) -> bytes:
        """Return what has come, empty at the end. Raises OSError when the connection broke."""
        if not self._received and not self.ended:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        if not self._received and self._failure is not None:
            raise self._failure
        data = bytes(self._received)
        self._received.clear()
        if self._transport is not None and not self.ended:
            self._transport.resume_reading()
        return data

    def abort(self) -> None:
        """Close without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    # --- what the event loop says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._received += data
        if len(self._received) > BUFFERED_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The other side has said everything."""
        self.ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self.ended = True
        self._failure = exc
        self._transport = None
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        """The other side does not keep up."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._writable.set()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _origin(url: httpx.URL) -> Origin:
    return url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)
