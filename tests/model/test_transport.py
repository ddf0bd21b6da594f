"""The way over the network: what breaks on it, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import ssl
import subprocess
import sys

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.connection import DirectPool
from tenuto.model.http.exchange import Exchange
from tenuto.model.http.proxied import ProxiedPool
from tenuto.model.http.transport import HttpTransport, is_bypassed, trust
from tenuto.model.openai.chat import ChatClient
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest, TextDelta
from tenuto.protocol.part import text_of
from tests.model.streams import CHAT, chunk
from tests.model.tiny_server import TinyServer, always, chunked, plain
from tests.model.views import load_blob, request, user

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("task_start")]

FOR_EVER = 3600.0
PATIENCE = 120.0
REQUEST = request("openai-chat", [user("hi")])


def endpoint(base_url: str, **fields: object) -> Endpoint:
    given: dict[str, object] = {
        "provider": "openai-chat",
        "kind": "openai-chat",
        "base_url": base_url,
        "key": "K",
        "key_name": "SOME_KEY",
    }
    return Endpoint(**{**given, **fields})  # pyright: ignore


async def ask(client: ChatClient, request: ModelRequest = REQUEST) -> AssistantMessage:
    async for part in client.stream(request):
        if isinstance(part, Finished):
            return part.message
    raise AssertionError("no answer")


async def failure(base_url: str, **fields: object) -> ModelError:
    client = ChatClient(endpoint(base_url, **fields), load_blob)
    with pytest.raises(ModelError) as caught:
        await ask(client)
    await client.close()
    return caught.value


async def test_an_answer_over_a_real_socket():
    async with TinyServer(always(chunked(CHAT["text"]))) as server:
        client = ChatClient(endpoint(server.base_url), load_blob)
        assert text_of((await ask(client)).parts) == "Hello, wörld \u2028 👋"
        head, body = server.requests[0]
        assert head.startswith("POST /v1/chat/completions HTTP/1.1")
        assert "authorization: bearer k" in head.lower()
        assert json.loads(body)["messages"][0]["content"] == "hi"
        await client.close()


async def test_the_connection_is_used_again():
    async with TinyServer(always(chunked(CHAT["text"]))) as server:
        client = ChatClient(endpoint(server.base_url), load_blob)
        for _ in range(3):
            await ask(client)
        assert (server.connections, len(server.requests)) == (1, 3)
        await client.close()


async def test_a_body_that_never_ends_does_not_hold_a_finished_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tenuto.model.wire.stream.LINGER_SECONDS", FOR_EVER)
    async with TinyServer(always(chunked(CHAT["text"], end=False))) as server:
        client = ChatClient(endpoint(server.base_url, stream_timeout=FOR_EVER), load_blob)
        async with asyncio.timeout(PATIENCE):
            await ask(client)
        await client.close()


async def test_r046_leaving_the_stream_closes_the_connection():
    closed = asyncio.Event()

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked([chunk({"content": "He"})], end=False))
        await writer.drain()
        try:
            while True:
                await asyncio.sleep(0.01)
                writer.write(b"2\r\n: \r\n")
                await writer.drain()
        except ConnectionError:
            closed.set()

    async with TinyServer(answer) as server:
        client = ChatClient(endpoint(server.base_url), load_blob)
        stream = client.stream(REQUEST)
        assert isinstance(await anext(stream), TextDelta)
        await stream.aclose()
        await asyncio.wait_for(closed.wait(), 30)
        await client.close()


async def test_an_unreachable_server_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        error = await failure(base_url)
    assert error.kind == "unreachable"
    assert base_url in str(error)
    assert "connection refused" in str(error) and "Errno" not in str(error)


@pytest.mark.parametrize(
    ("base_url", "kind"), [("http://no-such-host.invalid/v1", "unreachable"), ("http://[bad/v1", "invalid")]
)
async def test_an_address_that_cannot_be_is_named(base_url: str, kind: str):
    error = await failure(base_url)
    assert error.kind == kind
    assert base_url in str(error)


async def test_r092_a_connection_that_breaks_in_the_middle_is_a_broken_stream():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked([chunk({"content": "He"})], end=False))
        await writer.drain()
        writer.close()

    async with TinyServer(answer) as server:
        assert (await failure(server.base_url)).kind == "broken_stream"


async def test_r092_a_server_that_hangs_up_at_once_is_one_to_try_again():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with TinyServer(answer) as server:
        assert (await failure(server.base_url)).kind == "broken_stream"


async def test_silence_ends_the_stream():
    async with TinyServer(always(chunked([chunk({"content": "He"})], end=False))) as server:
        error = await failure(server.base_url, stream_timeout=0.2)
    assert error.kind == "broken_stream"
    assert "0.2 seconds" in str(error)


async def test_r093_a_refusal_carries_its_wait():
    body = json.dumps({"error": {"message": "Rate limit reached"}}).encode()
    async with TinyServer(always(plain("429 Too Many Requests", body, "Retry-After: 7"))) as server:
        error = await failure(server.base_url)
    assert (error.kind, error.status, error.retry_after) == ("rate_limit", 429, 7.0)


async def test_a_refused_key_names_its_variable():
    async with TinyServer(always(plain("401 Unauthorized", b""))) as server:
        assert "SOME_KEY" in str(await failure(server.base_url))
        assert "set SOME_KEY" in str(await failure(server.base_url, key=""))


async def test_a_key_with_a_line_end_is_named_and_not_tried_again():
    async with TinyServer(always(plain("200 OK", b""))) as server:
        error = await failure(server.base_url, key="half\nkey")
    assert (error.kind, server.requests) == ("auth", [])
    assert "SOME_KEY" in str(error)
    assert "half" not in str(error)


async def test_r020_a_400_without_a_body_is_ambiguous():
    async with TinyServer(always(plain("400 Bad Request", b""))) as server:
        assert (await failure(server.base_url)).kind == "ambiguous"


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent"])
@pytest.mark.parametrize("proxied", [False, True])
async def test_a3_a_redirect_is_told_and_not_followed(monkeypatch: pytest.MonkeyPatch, status: str, proxied: bool):
    async with TinyServer(always(chunked(CHAT["text"]))) as other:
        address = other.base_url
        moved = plain(status, b"moved", f"Location: {address}/chat/completions")
        async with TinyServer(always(moved)) as server:
            if proxied:
                monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
                monkeypatch.delenv("NO_PROXY", raising=False)
                monkeypatch.delenv("no_proxy", raising=False)
            error = await failure("http://models.example/v1" if proxied else server.base_url)
        assert other.requests == []
    assert error.kind == "invalid"
    assert f"answered {status[:3]}: moved to {address}/chat/completions" in str(error)
    assert f"make {address} the base_url of openai-chat" in str(error)


async def test_a_refused_option_is_left_out_at_once_and_for_good():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if b"stream_options" in body:
            text = json.dumps({"error": {"message": "Unrecognized request argument supplied: stream_options"}})
            writer.write(plain("400 Bad Request", text.encode()))
        else:
            writer.write(chunked(CHAT["text"]))

    async with TinyServer(answer) as server:
        client = ChatClient(endpoint(server.base_url), load_blob)
        await ask(client)
        await ask(client)
        assert [b"stream_options" in body for _, body in server.requests] == [True, False, False]
        await client.close()


async def test_the_other_name_of_the_output_limit_is_tried():
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if b'"max_tokens"' in body:
            text = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            writer.write(plain("400 Bad Request", json.dumps({"error": {"message": text}}).encode()))
        else:
            writer.write(chunked(CHAT["text"]))

    async with TinyServer(answer) as server:
        client = ChatClient(endpoint(server.base_url), load_blob)
        await ask(client, msgspec.structs.replace(REQUEST, max_output_tokens=16_384))
        assert b'"max_completion_tokens":16384' in server.requests[1][1]
        await client.close()


async def test_the_models_of_a_server():
    body = json.dumps({"data": [{"id": "a", "context_length": 4096}, {"id": "b"}]}).encode()
    async with TinyServer(always(plain("200 OK", body))) as server:
        client = ChatClient(endpoint(server.base_url), load_blob)
        found = await client.models()
        assert [(facts.name, facts.context_window) for facts in found] == [("a", 4096), ("b", None)]
        await client.close()


# --- proxies and trust ---


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    async with TinyServer(always(chunked(CHAT["text"]))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        client = ChatClient(endpoint("http://models.example/v1"), load_blob)
        await ask(client)
        assert proxy.requests[0][0].startswith("POST http://models.example/v1/chat/completions")
        await client.close()


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
NAMES = (
    "localhost",
    "127.0.0.1",
    "::1",
    "example.com",
    ".example.com",
    "models.example.com",
    "*",
    "10.0.0.0/8",
    "",
    "com",
)
HOSTS = (
    "localhost",
    "127.0.0.1",
    "models.example.com",
    "example.com",
    "notexample.com",
    "EXAMPLE.com",
    "10.1.2.3",
    "com",
)


async def test_a_proxy_is_left_aside_for_a_host_that_no_proxy_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "localhost, 127.0.0.1")
    async with TinyServer(always(chunked(CHAT["text"]))) as server:
        transport = HttpTransport(endpoint(server.base_url))
        assert await transport.get(f"{server.base_url}/models", {}, 1_000_000)
        assert isinstance(transport._connected(), DirectPool)  # pyright: ignore - httpx would cost 50 ms
        await transport.close()


@given(
    lower=st.none() | st.lists(st.sampled_from(NAMES), max_size=3).map(", ".join),
    upper=st.none() | st.lists(st.sampled_from(NAMES), max_size=3).map(",".join),
    host=st.sampled_from(HOSTS),
)
def test_what_no_proxy_means_is_what_httpx_reads(lower: str | None, upper: str | None, host: str) -> None:
    environ = {"HTTP_PROXY": "http://127.0.0.1:9", "no_proxy": lower, "NO_PROXY": upper}
    with pytest.MonkeyPatch.context() as patch:
        for name in (*PROXIES, "no_proxy", "NO_PROXY"):
            patch.delenv(name, raising=False)
        for name, value in environ.items():
            if value is not None:
                patch.setenv(name, value)
        if is_bypassed(host):
            client = httpx.Client(verify=False)
            assert client._transport_for_url(httpx.URL(f"http://{host}/v1")) is client._transport  # pyright: ignore


class Body(bytes):
    """Bytes whose end can be seen: they take no weak references."""

    ended = 0

    def __del__(self) -> None:
        Body.ended += 1


@pytest.mark.parametrize("pool", [DirectPool, ProxiedPool])
async def test_a_request_that_is_over_keeps_nothing_of_its_body(pool: type[DirectPool | ProxiedPool]) -> None:
    async with TinyServer(always(chunked(CHAT["text"]))) as server:
        connections = pool(False)
        gc.disable()  # it counts objects and not bytes: what waits for it may wait for long
        try:
            before = Body.ended
            for _ in range(3):
                await _post(connections, server.base_url, Body(b"x" * 100_000))
            ended = Body.ended - before
        finally:
            gc.enable()
        assert [len(body) for _, body in server.requests] == [100_000] * 3
        assert ended >= 2  # the last one may be on its way
        await connections.aclose()


async def _post(pool: DirectPool | ProxiedPool, base_url: str, body: Body) -> None:
    response = await pool.ask(Exchange("POST", f"{base_url}/chat/completions", {}, body, PATIENCE, PATIENCE))
    while await response.read():
        pass
    await response.aclose()


def test_no_tls_context_for_plain_http(monkeypatch: pytest.MonkeyPatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    assert trust("http://127.0.0.1:1") is False
    checked = trust("https://api.anthropic.com")
    assert checked is True or (isinstance(checked, ssl.SSLContext) and checked.verify_mode == ssl.CERT_REQUIRED)
    monkeypatch.setenv("HTTP_PROXY", "https://proxy.example")
    assert trust("http://models.example") is not False


async def test_a_pool_is_not_carried_over_to_another_loop():
    transport = HttpTransport(endpoint("http://127.0.0.1:1/v1"))
    first = transport._connected()  # pyright: ignore
    assert transport._connected() is first  # pyright: ignore
    other = await asyncio.to_thread(lambda: asyncio.run(connected(transport)))
    assert other is not first
    await transport.close()


async def connected(transport: HttpTransport) -> object:
    return transport._connected()  # pyright: ignore


def test_heavy_modules_wait_for_the_first_request():
    code = (
        "import sys; import tenuto.model.registry, tenuto.protocol.model, tenuto.model.anthropic.client,"
        " tenuto.model.openai.responses,"
        " tenuto.model.openai.chat; heavy = {'httpx', 'pydantic', 'anthropic', 'openai', 'genai_prices',"
        " 'tenuto.model.error_text'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
