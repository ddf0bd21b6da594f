"""What we make of HTTP/1.1 by h11: responses in any pieces, what is refused and in which words, requests."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.http.connection import MAX_HEAD_BYTES, Conversation, ForeignError, ProtocolError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def ask(body: bytes = b"", **headers: str) -> Conversation:
    return Conversation("GET", "/", {"Host": "x", **headers}, body)


def read(pieces: list[bytes], *, ended: bool) -> tuple[int, bytes, bool] | None:
    """Status, body and whether the connection can be used again; `None` where more is wanted."""
    reader, head, body = ask(), None, b""
    for piece in [*(piece for piece in pieces if piece), *([b""] if ended else [])]:
        reader.receive(piece)
        head = head or reader.take_head()
        while head is not None and (data := reader.take_body()):
            body += data
    if head is None or reader.take_body() is None:
        return None
    return head.status, body, reader.can_go_on


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", (200, b"abc", True)),
        (b"HTTP/1.1 200\nContent-Length: 3\n\nabc", (200, b"abc", True)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", (200, b"abc", True)),
        (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", (429, b"", False)),
        (b"HTTP/1.0 500 \r\nContent-Length: 1\r\n\r\na", (500, b"a", False)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", True)),
        (b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 304 Same\r\n\r\n", (304, b"", True)),
        (CHUNKED + b"2;a=b\r\nab\r\n1\r\nc\r\n0\r\nX-After: all\r\n\r\n", (200, b"abc", True)),
        (CHUNKED + b"0\r\n\r\nmore", (200, b"", False)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", None),
        (CHUNKED + b"2\r\nab\r\n", None),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", None),
        (b"HTTP", None),
    ],
)
def test_responses_in_any_pieces(data: bytes, expected: tuple[int, bytes, bool] | None, one_by_one: bool):
    pieces = [data[at : at + 1] for at in range(len(data))] if one_by_one else [data]
    assert read(pieces, ended=False) == expected


def test_a_body_without_a_length_ends_with_the_connection():
    assert read([b"HTTP/1.1 200 OK\r\n\r\nto the ", b"end"], ended=True) == (200, b"to the end", False)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, ended: bool):
    for pieces in ([data], [CHUNKED, data], [b"HTTP/1.1 ", data]):
        with suppress(ProtocolError):
            read(pieces, ended=ended)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nspace : x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"1" * 5_000 + b"\r\n\r\n",
        CHUNKED + b"xyz\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"2\r\nabc\r\n",
        CHUNKED + b"2\r\nabc",
        CHUNKED + b"1" * MAX_HEAD_BYTES * 2,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * MAX_HEAD_BYTES,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_no_response_is_refused(data: bytes):
    with pytest.raises(ProtocolError):
        read([data], ended=False)


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"SSH-2.0",  # it waits for us, so there may never be a line
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ],
)
def test_a_foreign_server_is_told_from_a_broken_one(data: bytes):
    with pytest.raises(ForeignError):
        read([data], ended=False)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 20", "in the middle of its answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "in the middle of its answer"),
        (CHUNKED + b"2\r\nab\r\n", "in the middle of its answer"),
    ],
)
def test_an_answer_that_was_cut_off_is_said_so(data: bytes, words: str):
    with pytest.raises(ProtocolError, match=words):
        read([data], ended=True)


def test_a_header_over_several_lines_and_one_said_twice():
    reader = ask()
    reader.receive(b"HTTP/1.1 200 OK\r\nA: one\r\n  two\r\nB: 1\r\nb: \xe9\r\n\r\n")
    head = reader.take_head()
    assert head is not None
    assert head.headers == {"a": "one two", "b": "1, é"}


def test_a_request_as_it_goes_out():
    request = Conversation("POST", "/v1?a=b", {"Host": "x:1", "Content-Length": "2", "X": " é "}, b"hi").request
    assert b"".join(request) == b"POST /v1?a=b HTTP/1.1\r\nHost: x:1\r\nContent-Length: 2\r\nX: \xe9\r\n\r\nhi"


@pytest.mark.parametrize("value", ["key\r\nX: y", "key\n", "key\x00", "schlüssel…"])
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(value: str):
    with pytest.raises(ProtocolError) as caught:
        ask(Authorization=value)
    assert value[:3] not in str(caught.value)
