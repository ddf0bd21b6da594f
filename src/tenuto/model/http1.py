"""HTTP/1.1 as bytes: a request written, a response read piece by piece. No I/O, and next to nothing to import.

A library for it costs 6 to 30 ms of imports before the first request. What is written here is what a client needs
(RFC 9112): one request at a time, no upgrades, no trailers that anybody reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

MAX_HEAD_BYTES = 100_000
"""Of a status line with its headers."""
MAX_LINE_BYTES = 16_384
"""Of a line between chunks: a size, or a trailer."""
MAX_DIGITS = 20
CUT_OFF = "the server closed the connection in the middle of its answer"
NOT_HTTP = "what answers does not speak HTTP/1.1"
_STATUS_LINE = b"HTTP/1."
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_FORBIDDEN = re.compile(r"[\x00\r\n]")

Part = Literal["head", "body", "rest", "chunk size", "chunk", "chunk end", "trailers", "nothing"]
"""What of a response comes next. `rest` is a body that ends with the connection."""


class ProtocolError(Exception):
    """What came is not HTTP/1.1, or what is to be sent cannot be said in it."""


class ForeignError(ProtocolError):
    """What answers speaks something else, or a part of HTTP that nobody asked it for."""


class Head:
    """Status and headers of a response; header names in lower case, repeated ones joined with commas."""

    __slots__ = ("headers", "status", "version")

    def __init__(self, version: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.version = version
        self.status = status
        self.headers = headers

    @property
    def stays_open(self) -> bool:
        """Whether the server takes another request on this connection."""
        options = {option.strip().lower() for option in self.headers.get("connection", "").split(",")}
        return self.version == b"HTTP/1.1" and "close" not in options


def encode_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """Return the request line and the headers with the empty line behind them.

    Raises `ProtocolError` for a header that HTTP cannot carry, a key with a line end above all.
    """
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if not _TOKEN.match(name) or _FORBIDDEN.search(value):
            raise ProtocolError(f"the header {name!r} has characters that cannot be sent")
        lines.append(f"{name}: {value.strip()}")
    try:
        return "\r\n".join([*lines, "", ""]).encode("latin-1")
    except UnicodeEncodeError as error:
        line = error.object[: error.start].rpartition("\n")[2]
        raise ProtocolError(f"the header {line.partition(':')[0]!r} has characters that cannot be sent") from None


class ResponseReader:
    """Reads one response. `receive` takes what came, `take_head` and `take_body` give what is complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._ended = False
        self._head: Head | None = None
        self._next: Part = "head"
        self._left = 0
        """Bytes of the body, or of this chunk, that are still to come."""

    @property
    def can_go_on(self) -> bool:
        """Whether another request may follow on the connection: all is read, and nothing came unasked."""
        if self._head is None or not self.is_complete or self._ended or self._buffer:
            return False
        return self._head.stays_open

    @property
    def is_complete(self) -> bool:
        """Whether the body has been read to its end."""
        return self._next == "nothing"

    def receive(self, data: bytes) -> None:
        """Take what came; nothing says that the server has closed."""
        if data:
            self._buffer += data
        else:
            self._ended = True

    def take_head(self) -> Head | None:
        """Return status and headers, `None` while they are not whole. Interim ones (1xx) are passed over."""
        if not _STATUS_LINE.startswith(bytes(self._buffer[: len(_STATUS_LINE)])):
            raise ForeignError(NOT_HTTP)  # at once: a server of another kind may wait for us
        while (lines := self._take_lines()) is not None:
            head = _parse_head(lines)
            if head.status >= 200:
                self._head = head
                self._next, self._left = _expect_body(head)
                return head
            if head.status == 101:
                raise ForeignError("the server changed to another protocol")
        return None

    def take_body(self) -> bytes | None:
        """Return more of the body, empty at its end, `None` while there is nothing."""
        while not self.is_complete:
            if self._next not in ("body", "chunk", "rest"):
                if not self._pass_line():
                    return None
            elif data := self._take_data():
                return data
            elif not self.is_complete:
                return None
        return b""

    def _take_data(self) -> bytes:
        """Return what there is of a body or of a chunk, and note its end."""
        if self._next == "rest":
            data = bytes(self._buffer)
            self._buffer.clear()
            if self._ended and not data:
                self._next = "nothing"
            return data
        data = bytes(self._buffer[: self._left])
        del self._buffer[: len(data)]
        self._left -= len(data)
        if not self._left:
            self._next = "nothing" if self._next == "body" else "chunk end"
        elif self._ended and not data:
            raise ProtocolError(CUT_OFF)
        return data

    def _pass_line(self) -> bool:
        """Read one of the lines between chunks; say whether it was whole."""
        if (
            self._next == "chunk end"
            and not b"\r\n".startswith(self._buffer[:2])
            and not self._buffer.startswith(b"\n")
        ):
            raise ProtocolError("a chunk is longer than the server said")
        line = self._take_line()
        if line is None:
            return False
        if self._next == "chunk size":
            size = line.partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size):
                raise ProtocolError("the size of a chunk is no number")
            self._left = int(size, 16)
            self._next = "chunk" if self._left else "trailers"
        elif self._next == "chunk end":
            self._next = "chunk size"
        elif not line:
            self._next = "nothing"
        return True

    def _take_line(self) -> bytes | None:
        """Return the next line without its end, `None` while it is not whole."""
        end = self._buffer.find(b"\n")
        if end > MAX_LINE_BYTES or (end < 0 and len(self._buffer) > MAX_LINE_BYTES):
            raise ProtocolError("a line between the chunks of the answer is too long")
        if end < 0:
            if self._ended:
                raise ProtocolError(CUT_OFF)
            return None
        line = bytes(self._buffer[:end]).removesuffix(b"\r")
        del self._buffer[: end + 1]
        return line

    def _take_lines(self) -> list[bytes] | None:
        """Return the lines of a head, `None` while it is not whole."""
        found = re.search(rb"\n\r?\n", self._buffer)
        if (found.end() if found else len(self._buffer)) > MAX_HEAD_BYTES:
            raise ProtocolError("the headers of the answer are too long")
        if found is None:
            if self._ended:
                raise ProtocolError(CUT_OFF if self._buffer else "the server closed the connection without an answer")
            return None
        lines = bytes(self._buffer[: found.start()]).split(b"\n")
        del self._buffer[: found.end()]
        return [line.removesuffix(b"\r") for line in lines]


def _expect_body(head: Head) -> tuple[Part, int]:
    """Return how the body goes on, and for how many bytes (RFC 9112, 6.3)."""
    coding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
    if head.status in {204, 304}:
        return "nothing", 0
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise ForeignError(f"the server sends its answer as {coding!r}, which was not asked for")
        return "chunk size", 0
    if length is None:
        return "rest", 0
    size, *others = {size.strip() for size in length.split(",")}
    if others or not (size.isascii() and size.isdigit() and len(size) <= MAX_DIGITS):
        raise ProtocolError("the length of the answer is no number")
    return ("body", int(size)) if int(size) else ("nothing", 0)


def _parse_head(lines: list[bytes]) -> Head:
    """Return what status line and header lines say."""
    found = re.fullmatch(rb"(HTTP/1\.[01]) ([1-9][0-9]{2})(?: .*)?", lines[0])
    if found is None:
        raise ForeignError(NOT_HTTP)
    headers: dict[str, str] = {}
    last = ""
    for line in lines[1:]:
        text = line.decode("latin-1")
        if text[:1] in (" ", "\t") and last:  # a header that goes on, as old servers write it
            headers[last] = f"{headers[last]} {text.strip()}"
            continue
        name, colon, value = text.partition(":")
        if not colon or not _TOKEN.match(name):
            raise ProtocolError("a header of the answer cannot be read")
        last = name.lower()
        value = value.strip()
        headers[last] = f"{headers[last]}, {value}" if last in headers else value
    return Head(found[1], int(found[2]), headers)
