"""Direct HTTP/1.1 connections: asyncio's sockets, and h11 for what is on them.

httpx, which proxies need, would cost 25 ms more of imports before the first request.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import h11
from msgspec import Struct

from tenuto.model.http.exchange import (
    ACCEPTED,
    BrokenError,
    Exchange,
    HeaderError,
    SilentError,
    Unpacker,
    UnreachableError,
    UntrustedError,
    UnusableError,
)
from tenuto.version import __version__

if TYPE_CHECKING:
    import ssl

MAX_HEAD_BYTES = 100_000
"""Of a status line with its headers, of trailers, and of a line between chunks."""
_STATUS_LINE = b"HTTP/1."
_NOT_IMPLEMENTED = 501


class ProtocolError(Exception):
    """What came is not HTTP/1.1, or what is to be sent cannot be said in it."""


class ForeignError(ProtocolError):
    """What answers speaks something else, or a part of HTTP that nobody asked it for."""


class Head(NamedTuple):
    """Status and headers of a response; header names in lower case, repeated ones joined with commas."""

    status: int
    headers: Mapping[str, str]


class Conversation:
    """One request and its response. `receive` takes what came, `take_head` and `take_body` give what is complete."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Raises `ProtocolError` for a header that HTTP cannot carry, a key with a line end above all."""
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._begin = b""
        self._ended = False
        try:
            sent = [(name.encode("ascii"), value.strip(" \t").encode("latin-1")) for name, value in headers.items()]
            head = self._h11.send(h11.Request(method=method, target=target, headers=sent)) or b""
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise ProtocolError("a header has characters that cannot be sent") from None
        if body:
            self._h11.send_with_data_passthrough(h11.Data(data=body))
        self._h11.send(h11.EndOfMessage())
        self.request: tuple[bytes, bytes] = (head, body)
        """The bytes to send."""

    @property
    def can_go_on(self) -> bool:
        """Whether another request may follow on the connection: all is read, and nothing came unasked."""
        done = self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE
        return done and not self._ended and not self._h11.trailing_data[0]

    @property
    def has_begun(self) -> bool:
        """Whether a first byte of the response has come."""
        return bool(self._begin)

    def receive(self, data: bytes) -> None:
        """Take what came; nothing says that the server has closed."""
        self._ended = self._ended or not data
        if len(self._begin) < len(_STATUS_LINE):
            self._begin += data[: len(_STATUS_LINE)]
        self._h11.receive_data(data)

    def take_head(self) -> Head | None:
        """Return status and headers, `None` while they are not whole. Interim ones (1xx) are passed over."""
        if not self._begin.startswith(_STATUS_LINE[: len(self._begin)]):  # a server of another kind may wait for us
            raise ForeignError("what answers does not speak HTTP/1.1")
        while not isinstance(event := self._next(), h11.Response):
            if event is h11.NEED_DATA:
                return None
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Head(event.status_code, headers)

    def take_body(self) -> bytes | None:
        """Return more of the body, empty at its end, `None` while there is nothing."""
        event = self._next() if self._h11.their_state is h11.SEND_BODY else None
        if isinstance(event, h11.Data):
            return bytes(event.data)
        return None if event is h11.NEED_DATA else b""

    def _next(self) -> object:
        try:
            return self._h11.next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _NOT_IMPLEMENTED:
                raise ForeignError(f"the server sends its answer in a way that was not asked for: {error}") from None
            if self._ended:
                answer = "in the middle of its answer" if self._begin else "without an answer"
                raise ProtocolError(f"the server closed the connection {answer}") from None
            raise ProtocolError(f"the server's answer is not HTTP/1.1: {error}") from None


EXPIRED = frozenset({9, 10})
"""OpenSSL's numbers for a certificate that is not valid yet, or not any more."""
OTHER_HOST = frozenset({62, 63, 64})
"""The same for one that names another host or address."""
NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons when what answers does not speak TLS."""


def judge_tls(error: BaseException, host: str) -> UntrustedError | None:
    """Return what is wrong with the certificate or the address, `None` where something else is."""
    import ssl  # 4 ms, which a server without TLS does not need

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = cause.verify_message or str(cause)
        return UntrustedError(f"the certificate of {host} is not trusted: {reason}", _hint(cause.verify_code))
    if cause is not None and cause.reason in NO_TLS:
        return UntrustedError(f"{host} does not speak TLS", "is the address to begin with http:// instead of https://?")
    return None


def _hint(code: int) -> str:
    if code in EXPIRED:
        return "renew the certificate, or set this machine's clock"
    if code in OTHER_HOST:
        return "use the name that the certificate was made for as the address"
    return "if you trust the server, set SSL_CERT_FILE to a PEM file with its certificate, or with its signer's"


STAGGER_SECONDS = 0.25
"""After which the next address is tried beside those that have not answered."""


class Address(NamedTuple):
    """One address of a host: its family, and what sockets of that family connect to."""

    family: socket.AddressFamily
    sockaddr: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


async def dial(host: str, port: int) -> socket.socket:
    """Return a socket, connected to `host` by whichever of its addresses answers first. Raises OSError."""
    return await connect_to_first(await find_addresses(host, port))


async def find_addresses(host: str, port: int) -> list[Address]:
    """Return the addresses of `host` (ASCII), the families taking turns. Raises OSError."""
    name = host.encode()  # text would import the codec of international names
    try:  # numbers need no thread
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    families: dict[socket.AddressFamily, list[Address]] = {}
    for family, _, _, _, sockaddr in found:
        families.setdefault(family, []).append(Address(family, sockaddr))
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


async def connect_to_first(addresses: Iterable[Address], stagger: float = STAGGER_SECONDS) -> socket.socket:
    """Return a socket that is connected to the first address that answers.

    The next address is tried when one fails, or when none has answered for `stagger` seconds. Raises OSError with the
    reasons when all fail.
    """
    loop = asyncio.get_running_loop()
    waiting, failures = deque(addresses), list[str]()
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or running:
            if waiting:
                running.add(loop.create_task(_connect(waiting.popleft())))
            pause = stagger if waiting else None
            done, _ = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.remove(task)
                try:
                    return task.result()
                except OSError as error:
                    failures.append(_in_words(error))
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close_unused)
    raise OSError("; ".join(dict.fromkeys(failures)) or "the host has no address")


def _in_words(error: OSError | UnicodeError) -> str:
    """Return why a connection failed: the system's reason without its number, else what the error says."""
    if isinstance(error, ConnectionError) and error.errno is not None:
        return os.strerror(error.errno).lower()  # asyncio has put an address in its place
    return (error.strerror or "").lower() if isinstance(error, socket.gaierror) else str(error)


async def _connect(address: Address) -> socket.socket:
    # asyncio switches Nagle's delay off only where the protocol is named; a request in two writes would wait 40 ms.
    connection = socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address.sockaddr)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_unused(task: asyncio.Task[socket.socket]) -> None:
    """Close the connection of an attempt that came in later than another."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


IDLE_SECONDS = 5.0
"""How long a connection is kept for the next request; servers close theirs not long after."""
BUFFERED_BYTES = 1_000_000
"""Beyond this the other side has to wait until somebody reads."""
_PORTS = {"http": 80, "https": 443}
_IN_PATH = "/%:@!$&'()*+,;=~-._"
"""What stays as it is in a path; a query may have `?` as well."""


class Target(Struct, frozen=True):
    """Where a request goes."""

    scheme: str
    host: str
    port: int
    path: str
    """With the query."""
    host_header: str
    credentials: str = ""
    """User and password of the URL, as `Authorization` has them."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """What a connection can be used again for."""
        return self.scheme, self.host, self.port


def parse_target(url: str) -> Target:
    """Return where a URL points. Raises `UnusableError` for what is no address of the web."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, (parts.hostname or "").encode("idna" if not url.isascii() else "ascii").decode()
    except ValueError as error:  # UnicodeError is one
        raise UnusableError(f"{url} is no address: {error}") from error
    if parts.scheme not in _PORTS or not host:
        raise UnusableError(f"{url} is no http:// or https:// address")
    shown = f"[{host}]" if ":" in host else host
    path = quote(parts.path, _IN_PATH) or "/"
    return Target(
        scheme=parts.scheme,
        host=host,
        port=port or _PORTS[parts.scheme],
        path=f"{path}?{quote(parts.query, _IN_PATH + '?')}" if parts.query else path,
        host_header=shown if port in (None, _PORTS[parts.scheme]) else f"{shown}:{port}",
        credentials=_credentials(parts),
    )


def _credentials(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    from base64 import b64encode

    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(words.encode()).decode()}"


class DirectPool:
    """Connects to each server itself and keeps the connections for what comes next (`model/http/exchange.py` Pool).

    `verify` is for https: the context to trust by, or `True` for the authorities that come with certifi.
    """

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._verify = verify
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}

    async def ask(self, exchange: Exchange) -> DirectResponse:
        """Send a request and return its response, whose body is still to come. Raises `ExchangeError`."""
        target = parse_target(exchange.url)
        conversation = _conversation(exchange, target)
        kept = self._take(target.origin)
        if kept is not None:
            try:
                return await self._ask_on(kept, exchange, conversation)
            except BrokenError:
                if conversation.has_begun:
                    raise
                # The server gave the connection up while the request was on its way (RFC 9112, 9.3.1): not a failure.
                conversation = _conversation(exchange, target)
        connection = await self._connect(target, exchange.connect_seconds)
        return await self._ask_on(connection, exchange, conversation)

    async def _ask_on(self, connection: _Connection, exchange: Exchange, conversation: Conversation) -> DirectResponse:
        try:
            await connection.send(conversation, exchange.silent_seconds)
            head = await connection.receive_head(exchange.silent_seconds)
            return DirectResponse(self, connection, head, exchange.silent_seconds)
        except BaseException:
            connection.abort()
            raise

    async def aclose(self) -> None:
        """Close what is kept."""
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()

    def give_back(self, connection: _Connection) -> None:
        """Keep a connection whose response has been read; close one in the middle of something."""
        if connection.can_go_on:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(connection.origin, []).append(connection)
        else:
            connection.abort()

    def _take(self, origin: tuple[str, str, int]) -> _Connection | None:
        connections = self._idle.get(origin, [])
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while connections:
            connection = connections.pop()
            if connection.is_quiet and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _connect(self, target: Target, seconds: float) -> _Connection:
        tls = self._tls() if target.scheme == "https" else None
        try:
            async with asyncio.timeout(seconds):
                connected = await dial(target.host, target.port)
                _, link = await asyncio.get_running_loop().create_connection(
                    _Link, sock=connected, ssl=tls, server_hostname=target.host if tls else None
                )
        except TimeoutError as error:
            text = str(error) or f"no connection to {target.host}:{target.port} in time"
            raise UnreachableError(text) from error
        except (OSError, UnicodeError) as error:
            raise judge_tls(error, target.host) or UnreachableError(_in_words(error)) from error
        return _Connection(target.origin, link)

    def _tls(self) -> ssl.SSLContext:
        import ssl

        if not isinstance(self._verify, ssl.SSLContext):
            import certifi

            self._verify = ssl.create_default_context(cafile=certifi.where())
        self._verify.set_alpn_protocols(["http/1.1"])
        return self._verify


def _conversation(exchange: Exchange, target: Target) -> Conversation:
    headers = {
        "Host": target.host_header,
        "Accept": "*/*",
        "Accept-Encoding": ACCEPTED,
        "User-Agent": f"tenuto/{__version__}",
        **({"Authorization": target.credentials} if target.credentials else {}),
    }
    known = {name.lower(): name for name in headers}
    for name, value in exchange.headers.items():
        headers[known.get(name.lower(), name)] = value
    if exchange.body or exchange.method != "GET":
        headers["Content-Length"] = str(len(exchange.body))
    try:
        return Conversation(exchange.method, target.path, headers, exchange.body)
    except ProtocolError as error:
        raise HeaderError(str(error)) from error


class DirectResponse:
    """A response as it comes (`model/http/exchange.py` Response)."""

    def __init__(self, pool: DirectPool, connection: _Connection, head: Head, seconds: float) -> None:
        self.status = head.status
        self.headers = head.headers
        self._pool = pool
        self._connection: _Connection | None = connection
        self._seconds = seconds
        self._unpacker = Unpacker(head.headers.get("content-encoding", ""))

    async def read(self) -> bytes:
        """Return more of the body, empty at its end. Raises `ExchangeError`."""
        while not (piece := self._unpacker.take()) and self._connection is not None:
            data = await self._connection.receive_body(self._seconds)
            self._unpacker.feed(data)
            if not data:
                await self.aclose()
        return piece

    async def aclose(self) -> None:
        """Nothing more is wanted."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection)


class _Connection:
    """One connection and how far its response has come."""

    _conversation: Conversation
    """Of the newest request."""

    def __init__(self, origin: tuple[str, str, int], link: _Link) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._link = link

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has come unasked, the end above all."""
        return not self._link.ended and not self._link.has_data

    @property
    def can_go_on(self) -> bool:
        """Whether another request can be sent on it."""
        return self._conversation.can_go_on and not self._link.ended

    async def send(self, conversation: Conversation, seconds: float) -> None:
        """Send a request with its body."""
        self._conversation = conversation
        try:
            async with asyncio.timeout(seconds):
                await self._link.send(conversation.request)
        except TimeoutError as error:
            raise UnreachableError("the request was not taken in time") from error
        except OSError as error:
            raise BrokenError(str(error)) from error

    async def receive_head(self, seconds: float) -> Head:
        """Return the status and headers of the response."""
        try:
            while (head := self._conversation.take_head()) is None:
                await self._receive(seconds)
        except ForeignError as error:
            raise UnusableError(str(error)) from error
        except ProtocolError as error:
            raise BrokenError(str(error)) from error
        return head

    async def receive_body(self, seconds: float) -> bytes:
        """Return more of the body, empty at its end."""
        try:
            while (data := self._conversation.take_body()) is None:
                await self._receive(seconds)
        except ProtocolError as error:
            raise BrokenError(str(error)) from error
        return data

    def abort(self) -> None:
        """Close it, whatever is under way."""
        self._link.abort()

    async def _receive(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                self._conversation.receive(await self._link.receive())
        except TimeoutError as error:
            raise SilentError("no data came in time") from error
        except OSError as error:
            raise BrokenError(str(error)) from error


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

    async def send(self, pieces: tuple[bytes, ...]) -> None:
        """Write, and wait while the other side does not keep up. Raises OSError when it is gone."""
        if self._transport is None or self.ended:
            raise self._failure or ConnectionResetError("the server has closed the connection")
        # Not writelines(): in CPython 3.12 and 3.13.0 it never pauses the writer (CVE-2024-12254).
        for piece in pieces:
            self._transport.write(piece)
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
        """Take note that the connection is made (asyncio)."""
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
        """Take note that the connection is lost (asyncio); `exc` is why."""
        self.ended = True
        self._failure = exc
        self._transport = None
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        """The other side does not keep up."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on: the buffer has room (asyncio)."""
        self._writable.set()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
