"""What a transport asks of a pool of connections, and how that can fail below HTTP's status codes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Exchange(Struct, frozen=True):
    """One request, and for how many seconds it is waited: for a connection, and for each piece of the answer."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    connect_seconds: float
    silent_seconds: float


class ExchangeError(Exception):
    """A request that no status answers."""


class UnreachableError(ExchangeError):
    """There is no connection, or no request that could be sent on it."""


class ProxyError(UnreachableError):
    """The proxy cannot be used as it is set; `hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class HeaderError(ExchangeError):
    """A header has characters that cannot be sent: a key that was copied with its line end."""


class BrokenError(ExchangeError):
    """The connection broke, or what came over it is no HTTP."""


class UnusableError(ExchangeError):
    """The address, or what answers at it, is none that can be talked to: asking again changes nothing."""


class UntrustedError(UnusableError):
    """What answers cannot prove who it is, or speaks no TLS; `hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SilentError(ExchangeError):
    """Nothing came for too long."""


class Response(Protocol):
    """The answer to one request; header names are in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Return more of the body, empty at its end. Raises `ExchangeError`."""
        ...

    async def aclose(self) -> None:
        """Nothing more is wanted."""
        ...


class Pool(Protocol):
    """Connections that are kept for what comes next."""

    async def ask(self, exchange: Exchange) -> Response:
        """Send a request and return its response, whose body is still to come. Raises `ExchangeError`."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


PIECE_BYTES = 1_000_000
"""The most that one `take` returns."""
ACCEPTED = "gzip"
"""What a request asks for at most, for the header `Accept-Encoding`."""
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class Unpacker:
    """`feed` takes bytes of a body, `take` gives what they mean. `coding` is the header `Content-Encoding`.

    Raises `UnusableError` for a coding that nobody asked for.
    """

    def __init__(self, coding: str) -> None:
        coding = coding.strip().lower()
        if coding not in _PACKED | {"identity", ""}:
            raise UnusableError(f"the answer is encoded as {coding!r}, which was not asked for")
        self._packed = zlib.decompressobj(_GZIP_OR_ZLIB) if coding in _PACKED else None
        self._waiting = b""
        self._goes_on = False
        """Whether the last piece was full, so that there may be more in what was fed."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; what was fed before has been taken."""
        self._waiting = data

    def take(self) -> bytes:
        """Return a piece, empty when more has to be fed first. Raises `BrokenError`."""
        data, self._waiting = self._waiting, b""
        if self._packed is None:
            return data
        if self._packed.eof or not (data or self._goes_on):
            return b""
        try:
            piece = self._packed.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise BrokenError(f"the answer cannot be unpacked: {error}") from error
        self._waiting = self._packed.unconsumed_tail
        self._goes_on = len(piece) == PIECE_BYTES
        return piece
