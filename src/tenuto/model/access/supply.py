"""A key that is fetched when it is needed: by a command of the user's, or out of the keyring."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from tenuto.guard.secrets import KNOWN
from tenuto.model.access.stored import fetch_from_keyring
from tenuto.model.endpoint import Endpoint
from tenuto.protocol.model import ModelError


class RunCommand(Protocol):
    """How a command of the user's is run: what it printed. Raises `ModelError` that says why there is nothing."""

    def __call__(self, text: str, about: str) -> Awaitable[str]:
        """Run the command `text`; `about` says in an error what it is for."""
        ...


class KeySupply:
    """The key of one provider, fetched with the first request and kept for a time (`most`, seconds)."""

    def __init__(
        self, fetch: Callable[[], Awaitable[str]], clock: Callable[[], float], most: float | None = None
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._most = most
        self._key = ""
        self._fetched = 0.0
        self._lock = asyncio.Lock()

    async def get(self) -> str:
        """Return the key; whoever asks meanwhile waits for the same one. Raises `ModelError`."""
        async with self._lock:
            is_fresh = self._most is None or 0 <= self._clock() - self._fetched < self._most
            return self._key if self._key and is_fresh else await self._renew()

    async def renew(self, refused: str) -> str:
        """The server has refused a key: fetch it again, unless somebody else has done so. Raises `ModelError`."""
        async with self._lock:
            return await self._renew() if self._key in ("", refused) else self._key

    async def _renew(self) -> str:
        self._key = ""
        self._key = await self._fetch()
        self._fetched = self._clock()
        return self._key


def supply_for(endpoint: Endpoint, run: RunCommand | None, clock: Callable[[], float]) -> KeySupply | None:
    """Return what supplies the key of an endpoint, `None` where the key is known or none is needed."""
    if endpoint.key_command:
        return KeySupply(lambda: _by_command(endpoint, run), clock, endpoint.key_seconds)
    if endpoint.keyring:
        return KeySupply(lambda: _by_keyring(endpoint), clock)
    return None


async def _by_command(endpoint: Endpoint, run: RunCommand | None) -> str:
    about = f"api_key_cmd of {endpoint.provider}"
    if run is None:
        raise ModelError("auth", f"{about} is not run here")
    key = (await run(endpoint.key_command, about)).strip()
    hint = f"it stands under [providers.{endpoint.provider}] and has to print the key and nothing else"
    if not key:
        raise ModelError("auth", f"{about} printed nothing", hint=hint)
    if strange := strangeness(key):
        raise ModelError("auth", f"what {about} printed {strange}", hint=hint)
    KNOWN.learn(f"key of {endpoint.provider}", key)
    return key


async def _by_keyring(endpoint: Endpoint) -> str:
    # In a thread: the keyring asks other programs, and these the user.
    key = (await asyncio.to_thread(fetch_from_keyring, endpoint.provider, endpoint.keyring)).strip()
    KNOWN.learn(f"key of {endpoint.provider}", key)
    return key


def strangeness(key: str) -> str:
    """Return what is wrong with a key at first sight."""
    if key[:1] in ("'", '"') or key[-1:] in ("'", '"'):
        return "has quotes around it"
    if any(character.isspace() for character in key):
        return "has a space or a line break in it"
    return "" if key.isascii() and key.isprintable() else "has characters that no key has"
