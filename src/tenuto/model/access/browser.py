"""A key from a login in the browser, as OpenRouter documents it for programs of others (PKCE, no registration).

The page asks the user, and sends the browser on to a port of this machine with a code, or shows the code. The code is
exchanged for a key with a secret that never left this process.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import threading
from collections.abc import Callable
from contextlib import aclosing
from urllib.parse import parse_qs, urlencode, urlsplit

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Body, make_transport
from tenuto.protocol.model import ModelError
from tenuto.text import json_access
from tenuto.text.json_access import as_text

BROWSER_LOGINS = frozenset({"openrouter"})
"""Providers that document it."""
LOGIN_SECONDS = 600.0
"""As long as a code counts."""
METHOD = "S256"
HEAD_BYTES = 16_384
_PAGE = "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{text}\n"


class BrowserLogin:
    """One login at a provider; its secret is made anew each time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._verifier = secrets.token_urlsafe(32)

    def page(self, callback: str = "") -> str:
        """Return the address of the page; without a `callback` it shows the code."""
        digest = hashlib.sha256(self._verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        query = {"callback_url": callback} if callback else {}
        query |= {"code_challenge": challenge, "code_challenge_method": METHOD, "key_label": "Tenuto"}
        parts = urlsplit(self._endpoint.base_url)
        return f"{parts.scheme}://{parts.netloc}/auth?{urlencode(query)}"

    async def exchange(self, code: str) -> str:
        """Return the key for a code. Raises `ModelError`."""
        fields = {"code": code, "code_verifier": self._verifier, "code_challenge_method": METHOD}
        headers = {"content-type": "application/json", "accept": "application/json"}
        answer, transport = Body(), make_transport(self._endpoint)
        try:
            url = self._endpoint.url("/auth/keys")
            async with aclosing(transport.post_stream(url, headers, json_access.encode(fields))) as chunks:
                async for chunk in chunks:
                    answer.add(chunk)
        except ModelError as error:
            if error.status is None:
                raise
            raise ModelError(
                "auth", f"{self._endpoint.provider} gave no key: {error.text}", status=error.status
            ) from error
        finally:
            await transport.close()
        key = as_text((json_access.decode_object(answer.data) or {}).get("key"))
        if not key:
            raise ModelError("invalid", f"{self._endpoint.provider} answered without a key")
        return key


async def log_in(endpoint: Endpoint, open_page: Callable[[str], None], seconds: float = LOGIN_SECONDS) -> str:
    """Return a key: `open_page` gets the page's address, in a thread. Raises `ModelError`, also after `seconds`."""
    login = BrowserLogin(endpoint)
    arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    # The page returns nothing by which an answer could be known as ours, so the path is a secret of its own.
    path = f"/callback/{secrets.token_urlsafe(16)}"

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        code = _code_in(await reader.readline(), path)
        status, text = ("200 OK", "Tenuto has the key. You can close this page.") if code else ("404 Not Found", "")
        writer.write(_PAGE.format(status=status, text=text).encode())
        await writer.drain()
        writer.close()
        if code and not arrived.done():
            arrived.set_result(code)

    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=HEAD_BYTES)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        address = login.page(f"http://localhost:{port}{path}")
        # Some browsers take the terminal until they are closed; nobody waits for them.
        threading.Thread(target=open_page, args=(address,), daemon=True).start()
        try:
            code = await asyncio.wait_for(arrived, seconds)
        except TimeoutError as error:
            raise ModelError("auth", f"nobody logged in within {seconds / 60:g} minutes") from error
    return await login.exchange(code)


def _code_in(line: bytes, path: str) -> str:
    """Return the code that the first line of a request brings to our path; empty for any other request."""
    words = line.decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != "GET":
        return ""
    target = urlsplit(words[1])
    if not secrets.compare_digest(target.path.encode(), path.encode()):
        return ""
    return parse_qs(target.query).get("code", [""])[0]
