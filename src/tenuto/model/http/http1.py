"""One HTTP/1.1 exchange as bytes, by h11: a request written, a response read piece by piece. No I/O.

What is ours is what counts as a foreign server, and words that name no header's value: it may be a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import h11

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
