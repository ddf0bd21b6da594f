"""The one seam to the network: bytes out, bytes in, errors classified where they happen.

httpx is imported with the first request. Cloud transports that need an SDK's signing plug in by provider through
`register_transport`; the factory imports the SDK when it is called, not before. The words of errors (a hundred
patterns) are compiled with the first error.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tenuto.model.endpoint import Endpoint
from tenuto.model.http_library import load_httpx
from tenuto.model.wire_json import decode_object
from tenuto.protocol.model import ModelError

if TYPE_CHECKING:
    import ssl

    import httpx

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
MAX_ERROR_BYTES = 65_536
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
    """Let `factory` make the transport of the provider with this name instead of httpx."""
    _factories[provider] = factory


def unregister_transport(provider: str) -> None:
    """Let httpx serve the provider with this name again."""
    _factories.pop(provider, None)


def make_transport(endpoint: Endpoint) -> Transport:
    """Return the transport of an endpoint; nothing is imported or connected yet."""
    return _factories.get(endpoint.provider, HttpxTransport)(endpoint)


class HttpxTransport:
    """HTTP over httpx, with proxies and trust as the environment says."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the bytes of the response body (see `Transport`)."""
        httpx = load_httpx()

        answered = False
        try:
            async with self._connected().stream("POST", url, headers=dict(headers), content=body) as response:
                if not response.is_success:
                    raise await self._refusal(response)
                answered = True
                async for chunk in response.aiter_bytes():
                    yield chunk
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            raise self._failure(error, url, answered=answered) from error

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object at `url` (see `Transport`); gives up after a few seconds."""
        httpx = load_httpx()

        try:
            response = await self._connected().get(url, headers=dict(headers), timeout=LIST_TIMEOUT)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._failure(error, url, answered=False) from error
        if not response.is_success:
            raise await self._refusal(response)
        found = decode_object(response.content)
        if found is None:
            raise ModelError("invalid", f"{url} did not answer with a JSON object", status=response.status_code)
        return found

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connected(self) -> httpx.AsyncClient:
        """Return the connection pool of the running loop; a pool never outlives its loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._new_client(), loop
        return self._client

    def _new_client(self) -> httpx.AsyncClient:
        httpx = load_httpx()

        endpoint = self._endpoint
        silence = endpoint.stream_timeout
        timeout = httpx.Timeout(connect=endpoint.connect_timeout, read=silence, write=silence, pool=silence)
        verify = trust(endpoint.base_url)
        try:
            if has_proxies():
                return httpx.AsyncClient(verify=verify, timeout=timeout)
            from tenuto.model.connection import DirectTransport

            return httpx.AsyncClient(transport=DirectTransport(verify), timeout=timeout)
        except ImportError as error:
            hint = "a SOCKS proxy needs the package socksio: pip install 'httpx[socks]', or unset ALL_PROXY"
            raise ModelError("unreachable", f"the proxy cannot be used: {error}", hint=hint) from error
        except (httpx.InvalidURL, ValueError) as error:
            hint = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
            raise ModelError("unreachable", f"the proxy settings cannot be used: {error}", hint=hint) from error

    async def _refusal(self, response: httpx.Response) -> ModelError:
        from tenuto.model.errors import classify, parse_retry_after, with_hint

        data = b""
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > MAX_ERROR_BYTES:
                break
        status, text = response.status_code, data[:MAX_ERROR_BYTES].decode("utf-8", "replace")
        error = classify(self._endpoint.provider, status, text, retry_after=parse_retry_after(response.headers))
        return with_hint(error, self._endpoint)

    def _failure(self, error: Exception, url: str, *, answered: bool) -> ModelError:
        """Turn what went wrong on the way into one of ours."""
        httpx = load_httpx()

        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.ReadTimeout):
            seconds = self._endpoint.stream_timeout
            return ModelError("broken_stream", f"no data from {self._endpoint.host} for {seconds:g} seconds")
        if answered or isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
            return ModelError("broken_stream", f"the connection broke: {reason}")
        hint = f"check the address {self._endpoint.base_url}, the network and the proxy settings"
        if self._endpoint.is_local:
            hint = f"is the server at {self._endpoint.base_url} running?"
        return ModelError("unreachable", f"cannot reach {url}: {reason}", hint=hint)


def has_proxies() -> bool:
    """Say whether the environment, or the system's settings, may want a proxy for something."""
    from urllib.request import getproxies

    return any(getproxies().get(scheme) for scheme in ("http", "https", "all"))


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
