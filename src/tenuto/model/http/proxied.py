"""Connections through a proxy: httpx's, with `NO_PROXY`, SOCKS and the system's settings as users expect them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from tenuto.import_tricks import import_without
from tenuto.model.http.connection import judge_tls
from tenuto.model.http.exchange import (
    ACCEPTED,
    BrokenError,
    Exchange,
    ProxyError,
    SilentError,
    Unpacker,
    UnreachableError,
    UnusableError,
)

if TYPE_CHECKING:
    import httpx


def load_httpx() -> ModuleType:
    """Return the httpx module, without the command line that it brings along: 24 ms."""
    return import_without("httpx", "click")


HINT = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"


class ProxiedPool:
    """An httpx client (`model/http/exchange.py` Pool). Raises `ProxyError` for proxies that it cannot use."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        httpx = load_httpx()
        try:
            self._client = httpx.AsyncClient(verify=verify)
        except ImportError as error:
            hint = "a SOCKS proxy needs the package socksio: pip install 'httpx[socks]', or unset ALL_PROXY"
            raise ProxyError(f"the proxy cannot be used: {error}", hint) from error
        except (httpx.InvalidURL, ValueError) as error:
            raise ProxyError(f"the proxy settings cannot be used: {error}", HINT) from error

    async def ask(self, exchange: Exchange) -> ProxiedResponse:
        """Send a request and return its response, whose body is still to come. Raises `ExchangeError`."""
        httpx = load_httpx()
        silence = exchange.silent_seconds
        timeout = httpx.Timeout(connect=exchange.connect_seconds, read=silence, write=silence, pool=silence)
        with _errors_as_ours(exchange.url):
            body = exchange.body
            request = self._client.build_request(
                exchange.method,
                exchange.url,
                headers={"Accept-Encoding": ACCEPTED, **_length_of(body), **exchange.headers},
                content=_pour(body) if body else None,
                timeout=timeout,
            )
            response = await self._client.send(request, stream=True)
        try:
            return ProxiedResponse(response)
        except BaseException:
            await response.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _length_of(body: bytes) -> Mapping[str, str]:
    return {"Content-Length": str(len(body))} if body else {}


async def _pour(body: bytes) -> AsyncGenerator[bytes]:
    """Yield the whole body, once. Given as it is it would stay with the request, which its response refers to.

    Both are in a circle that only the garbage collector opens, and it counts objects: of 500 steps it kept 100 MB.
    """
    yield body


class ProxiedResponse:
    """A response as it comes (`model/http/exchange.py` Response)."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._unpacker = Unpacker(response.headers.get("content-encoding", ""))
        self._pieces = response.aiter_raw()

    async def read(self) -> bytes:
        """Return more of the body, empty at its end. Raises `ExchangeError`."""
        while not (piece := self._unpacker.take()):
            with _errors_as_ours():
                data = await anext(self._pieces, b"")
            if not data:
                break
            self._unpacker.feed(data)
        return piece

    async def aclose(self) -> None:
        """Nothing more is wanted."""
        await self._response.aclose()


@contextmanager
def _errors_as_ours(url: str = "") -> Generator[None]:
    """Turn the library's errors into ours; `url` is what is being connected to."""
    httpx = load_httpx()
    try:
        yield
    except httpx.ReadTimeout as error:
        raise SilentError(str(error)) from error
    except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
        raise BrokenError(str(error) or type(error).__name__) from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UnusableError(str(error) or type(error).__name__) from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        host = httpx.URL(url).host if url else ""
        raise judge_tls(error, host) or UnreachableError(str(error) or type(error).__name__) from error
