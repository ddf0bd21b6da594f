"""A transport that puts a fetched key on each request, and fetches it again where a server refused it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from tenuto.model.access.supply import KeySupply
from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Transport
from tenuto.protocol.model import ModelError

REFUSED = 401


class KeyedTransport:
    """Another transport with the key on each request (see `Transport`). A header that the settings name wins."""

    def __init__(self, inner: Transport, endpoint: Endpoint, supply: KeySupply) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._supply = supply

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the bytes of the response body (see `Transport`)."""
        refused, key = "", await self._supply.get()
        while True:
            try:
                async with aclosing(self._inner.post_stream(url, self._with_key(headers, key), body)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except ModelError as error:
                refused, key = key, await self._other_key(refused, key, error)
            else:
                return

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object at `url` (see `Transport`)."""
        refused, key = "", await self._supply.get()
        while True:
            try:
                return await self._inner.get_json(url, self._with_key(headers, key))
            except ModelError as error:
                refused, key = key, await self._other_key(refused, key, error)

    async def close(self) -> None:
        """Close the connections."""
        await self._inner.close()

    def _with_key(self, headers: Mapping[str, str], key: str) -> dict[str, str]:
        named = {name.lower() for name in headers}
        own = {name: value for name, value in self._endpoint.key_headers(key).items() if name not in named}
        return {**own, **headers}

    async def _other_key(self, before: str, refused: str, error: ModelError) -> str:
        """Return another key than the refused one, once: `before` is the one that was refused before it.

        Raises the error where there is no other key, or where something else went wrong.
        """
        if (error.status != REFUSED and error.kind != "auth") or before:
            raise error
        key = await self._supply.renew(refused)
        if key == refused:
            raise error
        return key
