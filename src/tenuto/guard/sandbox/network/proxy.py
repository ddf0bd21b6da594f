"""The proxy that lets commands reach the domains that the user has listed, and nothing else.

It runs outside of the sandbox and listens inside: its socket was made in the session's network. It takes one request a
connection, looks names up itself, and connects to an address that it has looked at. What a tunnel carries it does not
read. Everything is bounded: heads, waits, connections.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from tenuto.guard.addresses import look_up
from tenuto.guard.sandbox.network.domains import Domain, usable_addresses, why_refused
from tenuto.guard.sandbox.network.requests import ProxyRequest, RequestError, answer, read_request, read_response

_HEAD_BYTES = 65_536
_CHUNK = 65_536
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_ANSWER_SECONDS = 600.0
_LAST_SECONDS = 30.0
"""How long the other direction may go on once the client has ended its own."""
_MOST_CONNECTIONS = 128
_MOST_REFUSALS = 100
_ENDS = b"\r\n\r\n"

LookUp = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a host for a port. Raises `OSError`."""
Upstream = Callable[[str, str], str]
"""Returns the address of the user's own proxy for a scheme and a host, empty for none."""
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Server(Struct):
    """A connection to where a request goes, and what is sent there first."""

    stream: Stream
    head: bytes = b""


class RefusedError(Exception):
    """What is asked for is not allowed."""


def own_proxy(scheme: str, host: str) -> str:
    """Return the proxy that the user's environment names."""
    from urllib.request import getproxies, proxy_bypass  # 20 ms, with the first connection

    proxies = getproxies()
    return "" if proxy_bypass(host) else proxies.get(scheme) or proxies.get("all") or ""


class DomainProxy:
    """It serves on the running loop from the moment it is made until it is closed."""

    def __init__(
        self,
        domains: Sequence[Domain],
        listener: socket.socket,
        *,
        find: LookUp = look_up,
        upstream: Upstream = own_proxy,
    ) -> None:
        self._domains = domains
        self._listener = listener
        self._find = find
        self._upstream = upstream
        self._refused: deque[str] = deque(maxlen=_MOST_REFUSALS)
        self.refusals = 0
        """How many there were."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        listener.setblocking(False)
        self._loop.add_reader(listener, self._accept)

    def refused_since(self, count: int) -> list[str]:
        """Return what was refused after the first `count`, each thing once, in words; a hundred are kept."""
        new = min(self.refusals - count, len(self._refused))
        return list(dict.fromkeys(list(self._refused)[len(self._refused) - new :]))

    def close(self) -> None:
        """Break off everything."""
        if not self._loop.is_closed():
            self._loop.remove_reader(self._listener)
            for task in self._tasks:
                task.cancel()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        if len(self._tasks) >= _MOST_CONNECTIONS:
            connection.close()
            return
        task = self._loop.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        """Answer one connection; whatever goes wrong in it ends here."""
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=_HEAD_BYTES)
        except OSError:
            connection.close()
            return
        try:
            await self._answer(reader, writer)
        except (OSError, EOFError):
            return  # one of the two has gone
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = read_request(await _read_head(reader))
            server = await self._connect(request)
        except RequestError as error:
            writer.write(answer(error.status, str(error)))
        except RefusedError as error:
            self.refusals += 1
            self._refused.append(str(error))
            writer.write(answer(403, str(error)))
        else:
            try:
                await _pass_on(request, (reader, writer), server.stream, server.head)
            finally:
                server.stream[1].close()
            return
        await writer.drain()

    async def _connect(self, request: ProxyRequest) -> _Server:
        """Return a connection for the request. Raises `RefusedError`, `RequestError`."""
        refused = why_refused(self._domains, request.host, request.port)
        if refused:
            raise RefusedError(refused)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                proxy = self._upstream("https" if request.is_tunnel else "http", request.host)
                return await _through(proxy, request) if proxy else await self._directly(request)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise RequestError(502, f"{request.host} cannot be reached: {error}") from error

    async def _directly(self, request: ProxyRequest) -> _Server:
        found = await self._find(request.host, request.port)
        usable = usable_addresses(self._domains, found, request.port)
        if found and not usable:
            raise RefusedError(f"{request.host} has the private address {found[0]}, which is not in sandbox.domains")
        fault = OSError("it has no address")
        for address in usable:
            try:
                stream = await asyncio.open_connection(address, request.port, limit=_HEAD_BYTES)
            except OSError as error:
                fault = error
            else:
                return _Server(stream, b"" if request.is_tunnel else request.head())
        raise fault


async def _through(proxy: str, request: ProxyRequest) -> _Server:
    """Return a connection through the user's own proxy, which looks names up itself. Raises `OSError` and others."""
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise OSError(f"your own proxy is not one for HTTP ({parts.scheme})")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    stream = await asyncio.open_connection(
        parts.hostname, port, limit=_HEAD_BYTES, ssl=True if parts.scheme == "https" else None
    )
    extra: list[bytes] = []
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        extra.append(b"Proxy-Authorization: Basic " + base64.b64encode(pair))
    if not request.is_tunnel:
        return _Server(stream, request.head(extra=extra, whole_address=True))
    try:
        target = request.authority.encode()
        stream[1].write(b"\r\n".join((b"CONNECT %b HTTP/1.1" % target, b"Host: " + target, *extra, b"", b"")))
        status, _ = read_response(await stream[0].readuntil(_ENDS))
        if status // 100 != 2:
            raise OSError(f"your own proxy answers {status}")
    except BaseException:
        stream[1].close()
        raise
    return _Server(stream)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a request. Raises `RequestError`, and `EOFError` where none comes."""
    try:
        async with asyncio.timeout(_HEAD_SECONDS):
            return await reader.readuntil(_ENDS)
    except asyncio.LimitOverrunError as error:
        raise RequestError(431, "the head of the request is too long") from error
    except TimeoutError as error:
        raise RequestError(408, "no request came") from error


async def _pass_on(request: ProxyRequest, client: Stream, server: Stream, head: bytes) -> None:
    """Carry bytes both ways until both have ended, or the server has and all of it has arrived."""
    if request.is_tunnel:
        client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    server[1].write(head)
    up = asyncio.ensure_future(_pump(client[0], server[1]))
    down = asyncio.ensure_future(_pump(server[0], client[1]) if request.is_tunnel else _respond(server[0], client[1]))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if request.is_tunnel or not down.done():
            await asyncio.wait({up, down}, timeout=_LAST_SECONDS)
    finally:
        for pump in (up, down):
            pump.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass the response on, and say in it that this connection is for no other request."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            status = 100
            while status < 200:
                status, head = read_response(await reader.readuntil(_ENDS))
                writer.write(head)
    except (RequestError, TimeoutError, EOFError, asyncio.LimitOverrunError, OSError):
        writer.write(answer(502, "the server's answer cannot be read"))
        return
    await _pump(reader, writer)
