"""What a transport asks of a pool of connections, and how that can fail below HTTP's status codes."""

from __future__ import annotations

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
