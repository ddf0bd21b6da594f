"""The server itself: what it records, how it breaks off, that it notices a client that leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server import (
    Call,
    Cut,
    Hang,
    HttpError,
    RawStream,
    Reply,
    Request,
    ScriptedServer,
    ServerThread,
    StreamError,
)
from tests.server.scripts import fix_tests, markdown, script

BODY = {"model": "test", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
ROOT = Path(__file__).parents[2]


async def send(server: ScriptedServer, client: httpx.AsyncClient, body: dict[str, Any] = BODY) -> httpx.Response:
    """Send a chat request."""
    return await client.post(f"{server.openai_url}/chat/completions", json=body)


async def test_requests_are_recorded_with_body_and_times() -> None:
    async with ScriptedServer([Reply("one"), Reply("two")]) as server, httpx.AsyncClient() as client:
        await send(server, client)
        await asyncio.sleep(0.05)
        await send(server, client)
        first, second = server.requests
        assert json.loads(first.raw) == first.body == BODY
        assert (first.index, second.index, server.remaining) == (0, 1, 0)
        assert first.received <= first.started <= first.ended < second.received
        assert server.gaps[0] >= 0.05
        assert first.items[0].text == "hi" == first.last_user
        third = await send(server, client)
        assert third.status_code == 400
        assert "no reply left" in server.refusals[0]


async def test_one_connection_serves_many_requests_and_chunked_bodies() -> None:
    async def pieces() -> Any:
        raw = json.dumps(BODY).encode()
        for start in range(0, len(raw), 7):
            yield raw[start : start + 7]

    async with ScriptedServer(lambda _: Reply("ok")) as server, httpx.AsyncClient() as client:
        for _ in range(3):
            response = await client.post(f"{server.base_url}/chat/completions", content=pieces())
            assert "[DONE]" in response.text
        assert server.connections_made == 1


async def test_a_client_that_leaves_is_noticed() -> None:
    slow = Reply("word " * 400, delay_per_event=0.02, chunk_size=5)
    async with ScriptedServer([slow, Hang(), Hang(headers_first=True)]) as server:
        for number in range(3):
            async with httpx.AsyncClient(timeout=0.3) as client:
                with pytest.raises((httpx.TimeoutException, TimeoutError)):
                    async with asyncio.timeout(0.3):
                        await send(server, client)
            async with asyncio.timeout(60):
                while not server.requests[number].ended:
                    await asyncio.sleep(0.01)
        assert [request.aborted for request in server.requests] == [True, True, True]


async def test_cuts_and_errors_end_a_stream_in_their_own_ways() -> None:
    replies = [Cut(Reply("a" * 500), 3), Cut(Reply("a" * 500), 3, how="clean"), StreamError(2, "server_error")]
    async with ScriptedServer(replies) as server, httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await send(server, client)
        clean = await send(server, client)
        assert (clean.text.count("data:"), "[DONE]" in clean.text) == (3, False)
        failed = await send(server, client)
        assert (failed.text.count("data:"), "server_error" in failed.text) == (3, True)


@pytest.mark.parametrize("shape", ["failed", "error", "flat"])
async def test_responses_errors_have_three_shapes(shape: Any) -> None:
    failure = StreamError(3, "context_length_exceeded", shape=shape)
    async with ScriptedServer([failure]) as server, httpx.AsyncClient() as client:
        body = {"model": "test", "stream": True, "input": "hi"}
        response = await client.post(f"{server.openai_url}/responses", json=body)
        last = json.loads(response.text.strip().split("\n\n")[-1].split("data: ")[1])
        inner = {"failed": lambda: last["response"]["error"], "error": lambda: last["error"], "flat": lambda: last}
        assert inner[shape]()["code"] == "context_length_exceeded"
        assert last["type"] == ("response.failed" if shape == "failed" else "error")


async def test_http_errors_keep_status_headers_and_body() -> None:
    replies = [
        HttpError(429, "Rate limit reached", {"retry-after": "7"}),
        HttpError(529, "Overloaded"),
        HttpError(400),
        HttpError(502, b"<html>Bad gateway</html>", {"content-type": "text/html"}),
    ]
    async with ScriptedServer(replies) as server, httpx.AsyncClient() as client:
        limited = await send(server, client)
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
        assert limited.json()["error"] == {
            "message": "Rate limit reached",
            "type": "rate_limit_error",
            "param": None,
            "code": None,
        }
        body = {"model": "test", "max_tokens": 9, "messages": BODY["messages"]}
        headers = {"anthropic-version": "2026-10-21"}
        loaded = await client.post(f"{server.base_url}/v1/messages", json=body, headers=headers)
        assert (loaded.status_code, loaded.json()["error"]["type"]) == (529, "overloaded_error")
        bare = await send(server, client)
        assert (bare.status_code, bare.content) == (400, b"")
        page = await send(server, client)
        assert (page.status_code, page.text) == (502, "<html>Bad gateway</html>")


async def test_raw_streams_go_out_as_they_are() -> None:
    async with ScriptedServer([RawStream([b": ping\n", b"\n", b"data: {"])]) as server, httpx.AsyncClient() as client:
        assert (await send(server, client)).content == b": ping\n\ndata: {"


async def test_usage_counts_what_the_prefix_cache_would_have_read() -> None:
    async with ScriptedServer(lambda _: Reply("ok")) as server, httpx.AsyncClient() as client:
        whole = {**BODY, "stream": False}
        first = (await send(server, client, whole)).json()["usage"]
        assert first["prompt_tokens_details"]["cached_tokens"] == 0
        longer = {"role": "user", "content": "more " * 100}
        grown = {**whole, "messages": [*BODY["messages"], {"role": "assistant", "content": "ok"}, longer]}
        second = (await send(server, client, grown)).json()["usage"]
        assert 0 < second["prompt_tokens_details"]["cached_tokens"] <= first["prompt_tokens"]
        assert server.prefix_breaks() == []
        await send(server, client, {**grown, "messages": [longer, *grown["messages"][1:]]})
        assert server.prefix_breaks() == [(2, 0)]


async def test_lists_and_counts() -> None:
    async with ScriptedServer([], window=5000, listed_window=9000) as server, httpx.AsyncClient() as client:
        headers = {"anthropic-version": "2026-10-21"}
        listed = (await client.get(f"{server.base_url}/v1/models", headers=headers)).json()
        assert listed["data"][0]["max_input_tokens"] == 9000
        assert (await client.get(f"{server.openai_url}/models")).json()["data"][0]["id"] == "test"
        assert (await client.get(f"{server.openai_url}/models/none")).status_code == 404
        body = {"model": "test", "messages": [{"role": "user", "content": "x" * 400}]}
        counted = await client.post(f"{server.base_url}/v1/messages/count_tokens", json=body, headers=headers)
        assert 100 <= counted.json()["input_tokens"] < 120
        assert server.requests == []


async def test_a_fault_of_the_script_is_kept_and_answered() -> None:
    def broken(request: Request) -> Reply:
        raise RuntimeError("the script is wrong")

    async with ScriptedServer(broken) as server, httpx.AsyncClient() as client:
        assert (await send(server, client)).status_code == 500
        assert "the script is wrong" in server.faults[0]


def test_in_a_thread_it_serves_code_that_blocks() -> None:
    with ServerThread([Reply("from a thread")], api_key="secret") as server:
        headers = {"authorization": "Bearer secret"}
        response = httpx.post(f"{server.openai_url}/chat/completions", json={**BODY, "stream": False}, headers=headers)
        assert response.json()["choices"][0]["message"]["content"] == "from a thread"
        assert server.environ()["OPENAI_API_KEY"] == "secret"


def test_as_a_process_it_writes_its_port_and_can_be_asked(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    command = [sys.executable, "-m", "tests.server", "--script", "hello", "--port-file", str(port_file)]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        try:
            deadline = time.monotonic() + 120
            while not port_file.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            base = f"http://127.0.0.1:{int(port_file.read_text())}"
            text = httpx.post(f"{base}/v1/chat/completions", json=BODY).text
            assert "scripted model" in text
            (record,) = httpx.get(f"{base}/_/requests").json()
            assert record["ended"] > record["received"] > 0
            httpx.post(f"{base}/_/reset", content=b"steps:2")
            assert httpx.get(f"{base}/_/requests").json() == []
            assert '"bash"' in httpx.post(f"{base}/v1/chat/completions", json=BODY).text
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def answers(request_messages: list[dict[str, Any]]) -> Reply:
    """What `fix_tests` says to a chat history."""
    raw = json.dumps({"model": "test", "messages": request_messages}).encode()
    return fix_tests(Request("POST", "/chat/completions", {}, raw))


def test_fix_tests_goes_by_the_conversation(sample_repo: Path) -> None:
    """Play the script against the real repository with the smallest possible tools."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "fix the tests"}]
    for number in range(10):
        reply = answers(history)
        if not reply.tool_calls:
            break
        calls = [
            {"id": f"c{number}{n}", "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for n, c in enumerate(reply.tool_calls)
        ]
        history.append({"role": "assistant", "content": reply.text, "tool_calls": calls})
        for call, given in zip(calls, reply.tool_calls, strict=True):
            history.append({"role": "tool", "tool_call_id": call["id"], "content": perform(given, sample_repo)})
    assert "Fixed" in reply.text
    assert len(history) == 1 + 4 + 5


def perform(call: Call, directory: Path) -> str:
    """Run one call of `fix_tests`."""
    assert isinstance(call.args, dict)
    match call.name:
        case "bash":
            environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            ran = subprocess.run(
                call.args["command"],
                check=False,
                shell=True,
                cwd=directory,
                env=environ,
                capture_output=True,
                text=True,
            )
            return ran.stdout + ran.stderr
        case "edit":
            path = directory / call.args["path"]
            text = path.read_text()
            assert text.count(call.args["old_string"]) == 1
            path.write_text(text.replace(call.args["old_string"], call.args["new_string"]))
            return "edited"
        case _:
            return (directory / call.args["path"]).read_text()


def test_scripts_by_name() -> None:
    assert len(markdown(200).encode()) >= 200 * 1024
    for wrong in ("nothing", "steps", "steps:x", "hello:3"):
        with pytest.raises(ValueError, match="no script"):
            script(wrong)
