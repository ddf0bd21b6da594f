"""Direct connections: kept, given up, slow, broken, encrypted."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
import sys
import zlib
from contextlib import aclosing
from pathlib import Path

import pytest

from tenuto.model.http.connection import DirectPool, parse_target
from tenuto.model.http.exchange import (
    BrokenError,
    Exchange,
    ExchangeError,
    UnreachableError,
    UntrustedError,
    UnusableError,
)
from tests.model.tiny_server import TinyServer, always, chunked, plain

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("task_start")]


class Client:
    """A pool, asked in short."""

    def __init__(self, verify: ssl.SSLContext | bool = False, seconds: float = 5) -> None:
        self.pool = DirectPool(verify)
        self.seconds = seconds

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.aclose()

    async def ask(self, method: str, url: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        exchange = Exchange(method, url, headers, body, self.seconds, self.seconds)
        async with aclosing(await self.pool.ask(exchange)) as response:
            pieces: list[bytes] = []
            while data := await response.read():
                pieces.append(data)
            return response.status, b"".join(pieces)

    async def get(self, url: str) -> bytes:
        return (await self.ask("GET", url))[1]

    async def post(self, url: str, body: bytes) -> bytes:
        return (await self.ask("POST", url, body))[1]


async def test_a_connection_that_the_server_gave_up_is_not_used_again():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain("200 OK", b"yes"))
        await writer.drain()
        writer.close()

    async with TinyServer(answer) as server, Client() as http:
        for _ in range(3):
            assert await http.post(server.base_url, b"x") == b"yes"
            await asyncio.sleep(0.05)
        assert server.connections == 3


async def test_a_kept_connection_that_ends_under_a_request_is_no_failure():
    """A server that gives connections up after some seconds may do so while the next request is on its way."""
    answered: list[asyncio.StreamWriter] = []

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if writer in answered:
            writer.close()
            return
        answered.append(writer)
        writer.write(plain("200 OK", body))

    async with TinyServer(answer) as server, Client() as http:
        for number in range(4):
            assert await http.post(server.base_url, b"%d" % number) == b"%d" % number
        assert server.connections == 4
        assert [body for _, body in server.requests] == [b"0", b"1", b"1", b"2", b"2", b"3", b"3"]


@pytest.mark.parametrize("begun", [b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
async def test_a_kept_connection_that_ends_within_an_answer_is_a_failure(begun: bytes):
    answers = [plain("200 OK", b"yes"), begun]

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))
        await writer.drain()
        if not answers:
            writer.close()

    async with TinyServer(answer) as server, Client() as http:
        assert await http.post(server.base_url, b"x") == b"yes"
        with pytest.raises(BrokenError):
            await http.post(server.base_url, b"y")
        assert len(server.requests) == 2


async def test_a_new_connection_that_ends_without_an_answer_is_a_failure():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with TinyServer(answer) as server, Client() as http:
        with pytest.raises(BrokenError):
            await http.post(server.base_url, b"x")
        assert len(server.requests) == 1


async def test_what_a_server_says_unasked_is_no_answer_to_the_next_request():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain("200 OK", b"yes"))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(plain("408 Request Timeout", b"too late"))

    async with TinyServer(answer) as server, Client() as http:
        for _ in range(2):
            assert await http.ask("GET", server.base_url) == (200, b"yes")
            await asyncio.sleep(0.1)
        assert server.connections == 2


async def test_connection_close_is_heeded():
    async with TinyServer(always(plain("200 OK", b"yes", "Connection: close"))) as server, Client() as http:
        for _ in range(2):
            assert await http.get(server.base_url) == b"yes"
        assert server.connections == 2


async def test_interim_responses_are_passed_over_and_encodings_undone():
    packed = gzip.compress(b"hello " * 100)
    response = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + plain("200 OK", packed, "Content-Encoding: gzip")
    async with TinyServer(always(response)) as server, Client() as http:
        assert await http.get(server.base_url) == b"hello " * 100


async def test_requests_at_the_same_time_have_connections_of_their_own():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(plain("200 OK", body))

    async with TinyServer(answer) as server, Client() as http:
        answers = await asyncio.gather(*(http.post(server.base_url, b"%d" % number) for number in range(4)))
        assert answers == [b"0", b"1", b"2", b"3"]
        assert server.connections == 4
        await http.post(server.base_url, b"again")
        assert server.connections == 4


async def test_large_bodies_both_ways():
    large = bytes(range(256)) * 40_000

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked([body[at : at + 100_000] for at in range(0, len(body), 100_000)]))

    async with TinyServer(answer) as server, Client() as http:
        async with aclosing(await http.pool.ask(Exchange("POST", server.base_url, {}, large, 5, 5))) as response:
            await asyncio.sleep(0.3)  # the server is ahead of the reader
            pieces: list[bytes] = []
            while data := await response.read():
                pieces.append(data)
            assert b"".join(pieces) == large


async def test_a_server_that_takes_no_more_is_not_waited_for():
    async def deaf(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    server = await asyncio.start_server(deaf, "127.0.0.1", 0, limit=1)
    port = server.sockets[0].getsockname()[1]
    async with Client(seconds=0.2) as http:
        with pytest.raises(UnreachableError, match="not taken in time"):
            await http.post(f"http://127.0.0.1:{port}/", b"x" * 50_000_000)
    server.close()


async def test_cancelling_closes_the_connection():
    gone = asyncio.Event()

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await asyncio.sleep(0.01)
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
        except ConnectionError:
            gone.set()

    async with TinyServer(answer) as server, Client() as http:
        asking = asyncio.create_task(http.get(server.base_url))
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.wait_for(gone.wait(), 30)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"nonsense\r\n\r\n", UnusableError),
        (b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", UnusableError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: zigzag\r\n\r\n", UnusableError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", BrokenError),
    ],
)
async def test_what_is_no_http_is_an_error_of_the_protocol(data: bytes, kind: type[ExchangeError]):
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    async with TinyServer(answer) as server, Client() as http:
        with pytest.raises(kind):
            await http.get(server.base_url)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http:///nowhere"])
async def test_what_is_no_address_of_the_web_is_refused(url: str):
    async with Client() as http:
        with pytest.raises(UnusableError):
            await http.get(url)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
async def test_tls_is_checked_against_what_is_trusted(tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(plain("200 OK", b"secret"))

    server = await asyncio.start_server(serve, "localhost", 0, ssl=serving)
    port = server.sockets[0].getsockname()[1]
    async with Client(ssl.create_default_context(cafile=str(certificate))) as http:
        for _ in range(2):
            assert await http.get(f"https://localhost:{port}/") == b"secret"
    async with Client(True) as http:
        with pytest.raises(UntrustedError, match=r"certificate of localhost is not trusted"):
            await http.get(f"https://localhost:{port}/")
    server.close()


async def test_an_answer_that_is_packed_in_pieces_comes_as_it_comes():
    pack = zlib.compressobj(wbits=31)
    first = pack.compress(b"first ") + pack.flush(zlib.Z_SYNC_FLUSH)
    going_on = asyncio.Event()

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n%s\r\n" % (len(first), first))
        await going_on.wait()
        rest = pack.compress(b"second") + pack.flush()
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(rest), rest))

    async with TinyServer(answer) as server, Client() as http:
        async with aclosing(await http.pool.ask(Exchange("GET", server.base_url, {}, b"", 5, 5))) as response:
            assert await response.read() == b"first "
            going_on.set()
            assert await response.read() == b"second"
            assert await response.read() == b""


@pytest.mark.parametrize(
    ("header", "body"), [("br", b"x"), ("gzip", b"this is no gzip"), ("gzip", b"")], ids=["other", "wrong", "empty"]
)
async def test_what_cannot_be_unpacked_is_a_broken_answer(header: str, body: bytes):
    async with TinyServer(always(plain("200 OK", body, f"Content-Encoding: {header}"))) as server, Client() as http:
        if body:
            with pytest.raises(UnusableError if header == "br" else BrokenError):
                await http.get(server.base_url)
        else:
            assert await http.get(server.base_url) == b""


async def test_what_the_request_says_of_itself():
    async with TinyServer(always(plain("200 OK", b"{}"))) as server, Client() as http:
        url = f"http://me:se%20cret@127.0.0.1:{server.port}/v1/a b?q=ä&r=%20#part"
        await http.ask("POST", url, b"body", Accept="text/event-stream")
        head = server.requests[0][0]
        lines = head.splitlines()
        assert lines[0] == "POST /v1/a%20b?q=%C3%A4&r=%20 HTTP/1.1"
        assert f"Host: 127.0.0.1:{server.port}" in lines
        assert "Content-Length: 4" in lines
        assert "Authorization: Basic bWU6c2UgY3JldA==" in lines
        assert [line for line in lines if line.startswith("Accept:")] == ["Accept: text/event-stream"]


@pytest.mark.parametrize("value", ["key\nwith: more", "key\r\n", "\x00", "schlüssel…"])
async def test_a_header_that_cannot_be_sent_is_refused_before_anything_is(value: str):
    async with TinyServer(always(plain("200 OK", b""))) as server, Client() as http:
        with pytest.raises(ExchangeError, match="characters that cannot be sent") as caught:
            await http.ask("GET", server.base_url, Authorization=value)
        assert "schl" not in str(caught.value)
        assert server.requests == []


def test_addresses():
    target = parse_target("https://[::1]/")
    assert (target.host, target.port, target.host_header, target.path) == ("::1", 443, "[::1]", "/")
    assert parse_target("http://Bücher.example:8080").host_header == "xn--bcher-kva.example:8080"
    with pytest.raises(UnusableError):
        parse_target("http://host:99999/")


def test_a_request_needs_h11_and_no_larger_http_library():
    code = (
        "import asyncio, sys\n"
        "from tenuto.model.http.connection import DirectPool\n"
        "from tenuto.model.http.exchange import Exchange, UnreachableError\n"
        "async def ask():\n"
        "    try: await DirectPool(False).ask(Exchange('GET', 'http://127.0.0.1:1/', {}, b'', 5, 5))\n"
        "    except UnreachableError: pass\n"
        "asyncio.run(ask())\n"
        "assert not {'httpx', 'httpcore', 'anyio', 'certifi', 'email', 'http'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
