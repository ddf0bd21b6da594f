"""The one seam to the network: bytes out, bytes in, errors classified where they happen.

What carries it is imported with the first request, httpx behind proxies only. Cloud transports that need an SDK's
signing plug in by provider through `register_transport`; the factory imports the SDK when it is called, not before.
The words of errors (a hundred patterns) are compiled with the first error.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.exchange import (
    BrokenError,
    Exchange,
    ExchangeError,
    HeaderError,
    Pool,
    ProxyError,
    Response,
    SilentError,
    UntrustedError,
    UnusableError,
)
from tenuto.protocol.model import ModelError
from tenuto.text.json_access import decode_object

if TYPE_CHECKING:
    import ssl

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
MAX_ERROR_BYTES = 65_536
MAX_OBJECT_BYTES = 32_000_000
"""Of an answer that is one JSON object: a list of models, a conversation that the provider has compacted."""
LIST_TIMEOUT = 5.0


class Transport(Protocol):
    """How a client reaches its provider."""

    def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the bytes of the response body. Closing the iterator closes the response.

        Raises `ModelError`, also for a status of 400 and more.
        """
        ...

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object at `url`. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


TransportFactory = Callable[[Endpoint], Transport]
_factories: dict[str, TransportFactory] = {}


def register_transport(provider: str, factory: TransportFactory) -> None:
    """Let `factory` make the transport of the provider with this name instead of ours."""
    _factories[provider] = factory


def unregister_transport(provider: str) -> None:
    """Let ours serve the provider with this name again."""
    _factories.pop(provider, None)


def make_transport(endpoint: Endpoint) -> Transport:
    """Return the transport of an endpoint; nothing is imported or connected yet."""
    return _factories.get(endpoint.provider, HttpTransport)(endpoint)


class HttpTransport:
    """HTTP, with proxies and trust as the environment says."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pool: Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the bytes of the response body (see `Transport`)."""
        endpoint, answered = self._endpoint, False
        exchange = Exchange("POST", url, headers, body, endpoint.connect_timeout, endpoint.stream_timeout)
        try:
            async with aclosing(await self._connected().ask(exchange)) as response:
                if not _is_success(response):
                    raise await self._refusal(response, url)
                answered = True
                while data := await response.read():
                    yield data
        except (ExchangeError, OSError) as error:
            raise self._failure(error, url, answered=answered) from error

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object at `url` (see `Transport`); gives up after a few seconds."""
        found = decode_object(await self.get(url, headers, MAX_OBJECT_BYTES))
        if found is None:
            raise ModelError("invalid", f"{url} did not answer with a JSON object")
        return found

    async def get(self, url: str, headers: Mapping[str, str], most: int) -> bytes:
        """Return what is at `url`, at most so many bytes; a few seconds of silence end it. Raises `ModelError`."""
        exchange = Exchange("GET", url, headers, b"", LIST_TIMEOUT, LIST_TIMEOUT)
        body = Body(most)
        try:
            async with aclosing(await self._connected().ask(exchange)) as response:
                if not _is_success(response):
                    raise await self._refusal(response, url)
                while data := await response.read():
                    body.add(data)
        except (ExchangeError, OSError) as error:
            raise self._failure(error, url, answered=False) from error
        return body.data

    async def close(self) -> None:
        """Close the connections."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    def _connected(self) -> Pool:
        """Return the connection pool of the running loop; a pool never outlives its loop."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            self._pool, self._loop = self._new_pool(), loop
        return self._pool

    def _new_pool(self) -> Pool:
        verify = trust(self._endpoint.base_url)
        if has_proxies() and not is_bypassed(self._endpoint.host):
            from tenuto.model.http.proxied import ProxiedPool

            return ProxiedPool(verify)
        from tenuto.model.http.connection import DirectPool

        return DirectPool(verify)

    async def _refusal(self, response: Response, url: str) -> ModelError:
        from tenuto.model.errors import classify, judge_redirect, parse_retry_after, with_hint

        if 300 <= response.status < 400:
            return judge_redirect(response.status, response.headers.get("location", ""), url, self._endpoint)
        data = b""
        while len(data) <= MAX_ERROR_BYTES and (chunk := await response.read()):
            data += chunk
        text = data[:MAX_ERROR_BYTES].decode("utf-8", "replace")
        retry_after = parse_retry_after(response.headers)
        return with_hint(
            classify(self._endpoint.provider, response.status, text, retry_after=retry_after), self._endpoint
        )

    def _failure(self, error: Exception, url: str, *, answered: bool) -> ModelError:
        """Turn what went wrong on the way into one of ours."""
        reason = str(error) or type(error).__name__
        if isinstance(error, ProxyError):
            return ModelError("unreachable", str(error), hint=error.hint)
        if isinstance(error, HeaderError):
            hint = f"look at {self._endpoint.key_name or 'the key'} and at the headers in the settings"
            return ModelError("auth", reason, hint=hint)
        if isinstance(error, UntrustedError):
            return ModelError("invalid", str(error), hint=error.hint)
        if isinstance(error, UnusableError):
            hint = f"the address is {self._endpoint.base_url}; is it right, and is it a model that answers there?"
            return ModelError("invalid", f"{self._endpoint.host or url}: {reason}", hint=hint)
        if isinstance(error, SilentError):
            seconds = self._endpoint.stream_timeout
            return ModelError("broken_stream", f"no data from {self._endpoint.host} for {seconds:g} seconds")
        if answered or isinstance(error, BrokenError):
            return ModelError("broken_stream", f"the connection broke: {reason}")
        hint = f"check the address {self._endpoint.base_url}, the network and the proxy settings"
        if self._endpoint.is_local:
            hint = f"is the server at {self._endpoint.base_url} running?"
        return ModelError("unreachable", f"cannot reach {url}: {reason}", hint=hint)


class Body:
    """A body that is read whole, of a bounded size."""

    def __init__(self, most: int = MAX_OBJECT_BYTES) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        """Take more of it. Raises `ModelError` when that is too much."""
        self._size += len(data)
        if self._size > self._most:
            raise ModelError("invalid", f"the server sent more than {self._most // 1_000_000} MB of JSON")
        self._pieces.append(data)

    @property
    def data(self) -> bytes:
        """What came."""
        return b"".join(self._pieces)


def _is_success(response: Response) -> bool:
    return 200 <= response.status < 300


def has_proxies() -> bool:
    """Say whether the environment, or the system's settings, may want a proxy for something."""
    if sys.platform not in ("darwin", "win32"):  # elsewhere there are no settings to ask
        return any(os.environ.get(name) for name in PROXY_VARIABLES)
    from urllib.request import getproxies

    return any(getproxies().get(scheme) for scheme in ("http", "https", "all"))


def is_bypassed(host: str) -> bool:
    """Say whether `NO_PROXY` surely means this host; what it says in other ways httpx reads.

    A name means its subdomains too, but for `localhost` and addresses; with a dot before it, them alone; `*` all.
    The variable in lower case wins, as for curl.
    """
    host = host.lower()
    said = os.environ.get("no_proxy", os.environ.get("NO_PROXY", "")).lower()
    names = [name for name in map(str.strip, said.split(",")) if name]
    return "*" in names or host in names or any(_is_below(host, name) for name in names)


def _is_below(host: str, name: str) -> bool:
    domain = name.removeprefix(".")
    return domain[-1:].isalpha() and domain != "localhost" and host.endswith(f".{domain}")


def trust(base_url: str) -> ssl.SSLContext | bool:
    """Return what to verify servers with: the machine's own trust store, so that a company's CA works.

    Without TLS on the way no context is built, which saves its 20 to 50 ms.
    """
    proxies = [os.environ.get(name, "") for name in PROXY_VARIABLES]
    if not base_url.startswith("https:") and not any(proxy.startswith("https:") for proxy in proxies):
        return False
    import ssl

    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    if sys.platform == "darwin":
        # OpenSSL knows nothing of the keychain.
        try:
            import truststore
        except ImportError:
            return True
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()
    known = bool(paths.cafile) or bool(paths.capath and any(Path(paths.capath).iterdir()))
    return ssl.create_default_context() if known or sys.platform == "win32" else True
