"""OAuth of servers at addresses, as the SDK has it: tokens in a private file, and the login in the user's browser."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, ValidationError

from tenuto.private_files import make_directory, replace_file
from tenuto.tool.mcp.remote import ConnectionLost

FOLDER = "mcp-logins"
LOGIN_SECONDS = 300.0
_DONE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nLogged in. You can close this page.\n"


class _Stored(BaseModel):
    """What the file holds."""

    url: str
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None


class LoginFile:
    """The tokens of one server; they count for the address that they were given for and for no other."""

    def __init__(self, home: Path, name: str, url: str) -> None:
        self.path = login_path(home, name)
        self._stored = _Stored(url=url)
        try:
            stored = _Stored.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            return
        if stored.url == url:
            self._stored = stored

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        return self._stored.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self._stored.tokens = tokens
        self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what the server knows us as."""
        return self._stored.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep what the server knows us as."""
        self._stored.client = client_info
        self._write()

    def _write(self) -> None:
        make_directory(self.path.parent)
        replace_file(self.path, self._stored.model_dump_json(exclude_none=True).encode())


def login_path(home: Path, name: str) -> Path:
    """Return the file of a server's tokens."""
    return home / FOLDER / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"


def stored_login(home: Path, name: str, url: str) -> httpx2.Auth | None:
    """Return what sends and renews the tokens of a server, `None` where there was no login."""
    if not login_path(home, name).is_file():
        return None

    async def refuse(_address: str) -> None:
        raise ConnectionLost(f"its login is over: tenuto mcp login {name}")

    async def nothing() -> AuthorizationCodeResult:
        raise ConnectionLost(f"its login is over: tenuto mcp login {name}")

    return OAuthClientProvider(url, _metadata(0), LoginFile(home, name, url), refuse, nothing)


def _metadata(port: int) -> OAuthClientMetadata:
    return OAuthClientMetadata(client_name="Tenuto", redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")])


async def log_in(home: Path, name: str, url: str, open_page: Callable[[str], None]) -> None:
    """Log in at a server: `open_page` gets the address of the page to open. Raises what the SDK raises."""
    login_path(home, name).unlink(missing_ok=True)
    arrived: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode("ascii", "replace").split()
        query = parse_qs(urlsplit(words[1]).query) if len(words) > 1 else {}
        writer.write(_DONE)
        await writer.drain()
        writer.close()
        if "code" in query and not arrived.done():
            found = {key: values[0] for key, values in query.items() if key in AuthorizationCodeResult.model_fields}
            arrived.set_result(AuthorizationCodeResult.model_validate(found))

    async def redirect(address: str) -> None:
        open_page(address)

    async def wait() -> AuthorizationCodeResult:
        return await asyncio.wait_for(arrived, LOGIN_SECONDS)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        auth = OAuthClientProvider(url, _metadata(port), LoginFile(home, name, url), redirect, wait)
        async with (
            httpx2.AsyncClient(auth=auth, timeout=LOGIN_SECONDS) as client,
            Client(streamable_http_client(url, http_client=client)) as connected,
        ):
            await connected.list_tools()
