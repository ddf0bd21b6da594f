"""OAuth as the SDK has it, against a small authorisation server: login, use, another address, an end."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tenuto.config.mcp.servers import McpServer
from tenuto.tool.mcp.login import log_in, login_path
from tests.tool.mcp.servers import hub_of


class Handler(BaseHTTPRequestHandler):
    """The server, its metadata and its authorisation, all at one address."""

    def log_message(self, *_words) -> None:
        pass

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def say(self, status: int, values: object = None, **headers: str) -> None:
        data = b"" if values is None else json.dumps(values).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if path.startswith("/.well-known/oauth-protected-resource"):
            self.say(200, {"resource": f"{self.base}/mcp", "authorization_servers": [f"{self.base}/"]})
        elif path.startswith("/.well-known/oauth-authorization-server"):
            self.say(
                200,
                {
                    "issuer": f"{self.base}/",
                    "authorization_endpoint": f"{self.base}/authorize",
                    "token_endpoint": f"{self.base}/token",
                    "registration_endpoint": f"{self.base}/register",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                },
            )
        elif path == "/authorize":
            back = f"{query['redirect_uri'][0]}?code=the-code&state={query['state'][0]}"
            self.say(302, None, Location=back)
        else:
            self.say(405 if path == "/mcp" else 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/register":
            self.say(201, {**json.loads(body), "client_id": "us"})
        elif self.path == "/token":
            assert parse_qs(body.decode())["code"] == ["the-code"]
            self.say(200, {"access_token": "the-token", "token_type": "Bearer", "expires_in": 3600})
        elif self.headers.get("Authorization") != "Bearer the-token":
            where = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource"'
            self.say(401, None, WWW_Authenticate=where)
        else:
            self.answer(json.loads(body))

    def answer(self, request: dict) -> None:
        info = {"name": "s", "version": "1"}
        match request["method"]:
            case "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}
            case _:
                if "id" not in request:
                    return self.say(202)
                error = {"code": -32601, "message": "no"}
                return self.say(200, {"jsonrpc": "2.0", "id": request["id"], "error": error})
        return self.say(200, {"jsonrpc": "2.0", "id": request["id"], "result": result})


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    server.server_close()


async def test_a_login_in_the_browser_is_kept_and_used(tmp_path, address):
    async with hub_of(tmp_path, closed=McpServer(url=address)) as running:
        await running.hub.wait(20)
        assert "tenuto mcp login closed" in running.said[0]
    opened: list[asyncio.Task] = []

    def browse(page: str) -> None:
        opened.append(asyncio.ensure_future(asyncio.to_thread(lambda: urllib.request.urlopen(page).read())))

    await asyncio.wait_for(log_in(tmp_path, "closed", address, browse), 30)
    assert b"Logged in" in await opened[0]
    file = login_path(tmp_path, "closed")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and "the-token" in file.read_text()
    async with hub_of(tmp_path, closed=McpServer(url=address)) as running:
        await running.hub.wait(20)
        assert [schema.name for schema in running.hub.offered] == ["mcp__closed__one"]


async def test_tokens_never_go_to_another_address(tmp_path, address):
    file = login_path(tmp_path, "closed")
    file.parent.mkdir(mode=0o700)
    stored = {"url": "https://elsewhere.example/mcp", "tokens": {"access_token": "the-token", "token_type": "Bearer"}}
    file.write_text(json.dumps(stored))
    async with hub_of(tmp_path, closed=McpServer(url=address)) as running:
        await running.hub.wait(20)
        assert running.hub.servers["closed"].state == "failed"
        assert "its login is over: tenuto mcp login closed" in running.said[0]
