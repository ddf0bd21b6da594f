"""Direct connections: kept, given up, slow, broken, encrypted."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tenuto.model.connection import DirectTransport
from tests.model.tiny_server import TinyServer, always, chunked, plain


def client(verify: ssl.SSLContext | bool = False, **options: object) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=DirectTransport(verify), **options)  # pyright: ignore


async def test_a_connection_that_the_server_gave_up_is_not_used_again():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain("200 OK", b"yes"))
        await writer.drain()
        writer.close()

    async with TinyServer(answer) as server, client() as http:
        for _ in range(3):
            assert (await http.post(server.base_url, content=b"x")).text == "yes"
            await asyncio.sleep(0.05)
        assert server.connections == 3


async def test_what_a_server_says_unasked_is_no_answer_to_the_next_request():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain("200 OK", b"yes"))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(plain("408 Request Timeout", b"too late"))

    async with TinyServer(answer) as server, client() as http:
        for _ in range(2):
            assert (await http.get(server.base_url)).status_code == 200
            await asyncio.sleep(0.1)
        assert server.connections == 2


async def test_connection_close_is_heeded():
    async with TinyServer(always(plain("200 OK", b"yes", "Connection: close"))) as server, client() as http:
        for _ in range(2):
            assert (await http.get(server.base_url)).text == "yes"
        assert server.connections == 2


async def test_interim_responses_are_passed_over_and_encodings_undone():
    packed = gzip.compress(b"hello " * 100)
    response = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + plain("200 OK", packed, "Content-Encoding: gzip")
    async with TinyServer(always(response)) as server, client() as http:
        assert (await http.get(server.base_url)).text == "hello " * 100


async def test_requests_at_the_same_time_have_connections_of_their_own():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(plain("200 OK", body))

    async with TinyServer(answer) as server, client() as http:
        answers = await asyncio.gather(*(http.post(server.base_url, content=str(n)) for n in range(4)))
        assert [one.text for one in answers] == ["0", "1", "2", "3"]
        assert server.connections == 4
        await http.post(server.base_url, content="again")
        assert server.connections == 4


async def test_large_bodies_both_ways():
    large = bytes(range(256)) * 40_000

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked([body[at : at + 100_000] for at in range(0, len(body), 100_000)]))

    async with TinyServer(answer) as server, client() as http:
        async with http.stream("POST", server.base_url, content=large) as response:
            await asyncio.sleep(0.3)  # the server is ahead of the reader
            assert b"".join([part async for part in response.aiter_bytes()]) == large


async def test_a_server_that_takes_no_more_is_not_waited_for():
    async def deaf(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    server = await asyncio.start_server(deaf, "127.0.0.1", 0, limit=1)
    port = server.sockets[0].getsockname()[1]
    async with client(timeout=httpx.Timeout(5, write=0.2)) as http:
        with pytest.raises(httpx.WriteTimeout):
            await http.post(f"http://127.0.0.1:{port}/", content=b"x" * 50_000_000)
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

    async with TinyServer(answer) as server, client() as http:
        asking = asyncio.create_task(http.get(server.base_url))
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
async def test_what_is_no_http_is_an_error_of_the_protocol(data: bytes):
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    async with TinyServer(answer) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get(server.base_url)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http:///nowhere"])
async def test_what_is_no_address_of_the_web_is_refused(url: str):
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol):
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
    async with client(ssl.create_default_context(cafile=str(certificate))) as http:
        for _ in range(2):
            assert (await http.get(f"https://localhost:{port}/")).text == "secret"
    async with client(True) as http:
        with pytest.raises(httpx.ConnectError, match=r"CERTIFICATE_VERIFY_FAILED"):
            await http.get(f"https://localhost:{port}/")
    server.close()


def test_a_request_needs_neither_httpcore_nor_anyio():
    code = (
        "import asyncio, sys\n"
        "from tenuto.model.http_library import load_httpx\n"
        "httpx = load_httpx()\n"
        "from tenuto.model.connection import DirectTransport\n"
        "async def ask():\n"
        "    async with httpx.AsyncClient(transport=DirectTransport(False)) as http:\n"
        "        try: await http.get('http://127.0.0.1:1/')\n"
        "        except httpx.ConnectError: pass\n"
        "asyncio.run(ask())\n"
        "assert not {'httpcore', 'anyio', 'certifi'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
