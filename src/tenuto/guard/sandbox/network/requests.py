"""Requests to a proxy and heads of responses, read and written. Pure.

A request is understood in one way only, or not at all: what is sent on was written here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from tenuto.guard.sandbox.network.domains import plain_host

_REQUEST = re.compile(rb"([A-Z]{1,20}) ([!-~]+) HTTP/1\.[01]")
_AUTHORITY = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,255})(?::([0-9]{1,5}))?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n\0]*)?")
_OF_ONE_STEP = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate", b"upgrade"}
)
"""Fields that are between a client and a proxy, or a proxy and a server, and do not go on."""
PLAIN_PORT = 80
MOST_PORT = 65_535


class RequestError(Exception):
    """A request that is not understood: `status` is answered."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ProxyRequest(Struct, frozen=True):
    """What a client asks of a proxy: a tunnel to a host and port, or to send `head` on."""

    host: str
    port: int
    is_tunnel: bool
    method: bytes = b"CONNECT"
    path: bytes = b""
    fields: tuple[bytes, ...] = ()

    @property
    def authority(self) -> str:
        """Its host and port, as a tunnel is asked for."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def head(self, *, extra: Sequence[bytes] = (), whole_address: bool = False) -> bytes:
        """Return the head that is sent on: to a server, or with the whole address to another proxy."""
        host = self.authority.removesuffix(f":{PLAIN_PORT}").encode()
        address = b"http://" + host + self.path if whole_address else self.path
        words = b"%b %b HTTP/1.1" % (self.method, address)
        return b"\r\n".join((words, b"Host: " + host, *self.fields, *extra, b"Connection: close", b"", b""))


def read_request(head: bytes) -> ProxyRequest:
    """Return what a head asks for, which ends with an empty line. Raises `RequestError`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = _REQUEST.fullmatch(first)
    if words is None:
        raise RequestError(400, "this is no request to a proxy")
    method, target = words.groups()
    if method == b"CONNECT":
        host, port = _authority(target)
        if not port:
            raise RequestError(400, "a tunnel needs a port")
        return ProxyRequest(host, port, is_tunnel=True)
    if target[:7].lower() != b"http://":
        raise RequestError(400, "only http:// addresses, and tunnels by CONNECT")
    named = re.split(rb"[/?#]", target[7:], maxsplit=1)[0]
    host, port = _authority(named)
    path = target[7 + len(named) :]
    path = path if path.startswith(b"/") else b"/" + path
    fields = tuple(field for field in _kept(lines) if not field.lower().startswith(b"host:"))
    return ProxyRequest(host, port or PLAIN_PORT, is_tunnel=False, method=method, path=path, fields=fields)


def _authority(text: bytes) -> tuple[str, int]:
    parts = _AUTHORITY.fullmatch(text)
    port = int(parts[2] or 0) if parts is not None else -1
    if parts is None or not 0 <= port <= MOST_PORT:
        raise RequestError(400, "this names no host")
    return plain_host(parts[1].decode("ascii")), port


def _kept(lines: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the fields that go on. Raises `RequestError`."""
    fields = [(line, _FIELD.fullmatch(line)) for line in lines]
    if not all(field for _, field in fields):
        raise RequestError(400, "its fields cannot be read")
    found = [(line, field[1].lower(), field[2]) for line, field in fields if field is not None]
    named = {name.strip().lower() for _, key, value in found if key == b"connection" for name in value.split(b",")}
    return tuple(line for line, key, _ in found if key not in _OF_ONE_STEP and key not in named)


def read_response(head: bytes) -> tuple[int, bytes]:
    """Return the status of a response and its head as the client gets it. Raises `RequestError`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = _STATUS.fullmatch(first)
    if words is None:
        raise RequestError(502, "the server's answer cannot be read")
    status = int(words[1])
    closing = () if status < 200 else (b"Connection: close",)
    return status, b"\r\n".join((first, *_kept(lines), *closing, b"", b""))


def answer(status: int, text: str) -> bytes:
    """Return a whole response of ours; its text stands in its first line too, which clients show."""
    line = "".join(char if " " <= char <= "~" else "?" for char in text)
    body = f"Tenuto's sandbox: {line}\n".encode()
    head = f"HTTP/1.1 {status} {line}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
