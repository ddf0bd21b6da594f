"""HTTP/1.1 as bytes: held against h11, whatever the pieces; and what neither takes."""

from __future__ import annotations

import re

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.http1 import MAX_HEAD_BYTES, ProtocolError, ResponseReader, encode_head

Read = tuple[int, dict[str, str], bytes, bool]


def read(pieces: list[bytes], *, ended: bool) -> Read | str:
    """Status, headers, body and whether the connection can be used again; or "wrong", or "more" is wanted."""
    reader, head, body = ResponseReader(), None, b""
    try:
        for piece in [*(piece for piece in pieces if piece), *([b""] if ended else [])]:
            reader.receive(piece)
            head = head or reader.take_head()
            while head is not None and (data := reader.take_body()):
                body += data
        if head is None or reader.take_body() is None:
            return "more"
    except ProtocolError:
        return "wrong"
    headers = {name: text.lower() if name == "transfer-encoding" else text for name, text in head.headers.items()}
    return head.status, headers, body, reader.can_go_on


def read_by_h11(pieces: list[bytes], *, ended: bool) -> Read | str:
    connection, head, body, done = h11.Connection(h11.CLIENT), None, b"", False
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    try:
        for piece in [*(piece for piece in pieces if piece), *([b""] if ended else [])]:
            connection.receive_data(piece)
            while not done and (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    head = event
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    done = True
    except h11.RemoteProtocolError:
        return "wrong"
    if head is None or not done:
        return "more"
    headers: dict[str, str] = {}
    for name, value in head.headers:
        key, text = name.decode().lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    state = connection.our_state is connection.their_state is h11.DONE
    return head.status_code, headers, body, state and not ended and not connection.trailing_data[0]


NAMES = st.sampled_from(["Server", "x-one", "Content-Type", "Retry-After", "set-cookie"])
VALUES = st.text(st.sampled_from("abc ,;=\té"), max_size=12).map(str.strip)
BODIES = st.binary(max_size=40)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A response as servers write it, in one of the ways to say where its body ends."""
    status = draw(st.sampled_from(["200 OK", "200", "204 No Content", "304 Not Modified", "429 Slow", "500 "]))
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"]))
    version = draw(st.sampled_from(["1.1", "1.1", "1.0"]))
    lines = [
        f"HTTP/{version} {status}",
        *(f"{name}: {value}" for name, value in draw(st.lists(st.tuples(NAMES, VALUES)))),
    ]
    if draw(st.booleans()):
        lines.append("Connection: close")
    body = draw(BODIES)
    kind = draw(st.sampled_from(["length", "chunks", "end"]))
    if status.startswith(("204", "304")):
        kind, body = "length", b""
    if kind == "length":
        lines.append(f"Content-Length: {len(body)}")
    if kind == "chunks":
        lines.append(draw(st.sampled_from(["Transfer-Encoding: chunked", "transfer-encoding:CHUNKED"])))
        extension = draw(st.sampled_from([b"", b";name=value", b';a="b"']))
        cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
        parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        trailers = draw(st.sampled_from([b"", b"X-After: all\r\n"]))
        body = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts if part)
        body += b"0\r\n" + trailers + b"\r\n"
    end = draw(st.sampled_from(["\r\n", "\r\n", "\n"]))
    return interim + end.join([*lines, "", ""]).encode("latin-1") + body


@st.composite
def in_pieces(draw: st.DrawFn) -> list[bytes]:
    whole = draw(responses())
    if draw(st.integers(0, 5)) == 0:
        whole = whole[: draw(st.integers(0, len(whole)))]
    if draw(st.integers(0, 5)) == 0:
        whole += b"more"
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    return [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@given(in_pieces(), st.booleans())
def test_responses_are_read_as_h11_reads_them(pieces: list[bytes], ended: bool):
    ours, theirs = read(pieces, ended=ended), read_by_h11(pieces, ended=ended)
    begun = re.split(rb"\n\r?\n", b"".join(pieces))[-1][:7]
    if ours == "wrong" and theirs == "more":  # h11 waits for the line to end
        assert not b"HTTP/1.".startswith(begun)
    else:
        assert ours == theirs


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, ended: bool):
    read([data], ended=ended)
    read([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", data], ended=ended)


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nspace : x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 20_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_no_response_is_refused(data: bytes):
    assert read([data], ended=False) == "wrong"


def test_a_header_over_several_lines_and_one_said_twice():
    data = b"HTTP/1.1 200 OK\r\nA: one\r\n  two\r\nB: 1\r\nB: 2\r\nContent-Length: 3, 3\r\n\r\nabc"
    assert read([data], ended=False) == (200, {"a": "one two", "b": "1, 2", "content-length": "3, 3"}, b"abc", True)


def test_a_request_is_what_h11_reads():
    data = encode_head("POST", "/v1?a=b", {"Host": "x:1", "Content-Length": "2", "X": " spaced "}) + b"hi"
    server = h11.Connection(h11.SERVER)
    server.receive_data(data)
    request, body = server.next_event(), server.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method, request.target) == (b"POST", b"/v1?a=b")
    assert dict(request.headers) == {b"host": b"x:1", b"content-length": b"2", b"x": b"spaced"}
    assert isinstance(body, h11.Data)
    assert body.data == b"hi"
