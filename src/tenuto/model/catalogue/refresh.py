"""Fetching the newest catalogue: the data that the genai-prices project publishes, made into one of ours.

It takes the place of the one before only after it was read again with what reads it at every start.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tenuto.model.catalogue.build import build
from tenuto.model.catalogue.snapshot import FETCHED, MAX_BYTES, CatalogueError, pack
from tenuto.model.endpoint import Endpoint, host_of
from tenuto.model.http.transport import HttpTransport
from tenuto.private_files import make_directory, replace_file
from tenuto.protocol.model import ModelError
from tenuto.text.writable import to_json

PUBLISHED = "https://raw.githubusercontent.com/pydantic/genai-prices/refs/heads/main/prices/new_data/v2/data.json"
"""Where the project keeps it; the package's own updates come from there."""
MAX_AGE = 7 * 24 * 3600.0
"""Seconds after which a catalogue is fetched again without being asked."""
MIN_PAUSE = 24 * 3600.0
"""Seconds between two attempts that nobody asked for."""
FETCH_SECONDS = 60.0
ATTEMPT = FETCHED.with_name("catalogue-attempt.json")


class Attempt(msgspec.Struct, frozen=True):
    """When a catalogue was last asked for (seconds since the epoch), and what became of it: empty is well."""

    tried: float
    problem: str = ""


async def refresh(home: Path, url: str, now: float) -> None:
    """Fetch the newest catalogue into `home`; an empty `url` is the project's own.

    Raises `CatalogueError` whose text is a sentence's end; what was there before then stays. Either is remembered.
    """
    try:
        data = await _fetch(url or PUBLISHED)
        await asyncio.to_thread(_keep, home, data, now)
    except CatalogueError as error:
        _note(home, Attempt(now, str(error)))
        raise
    _note(home, Attempt(now))


def last_attempt(home: Path) -> Attempt | None:
    """Return the last attempt, `None` when none was made, or that is not known any more."""
    try:
        return msgspec.json.decode((home / ATTEMPT).read_bytes(), type=Attempt)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def is_due(home: Path, made: float, now: float) -> bool:
    """Whether a catalogue of the age of `made` is to be fetched again: weekly, after a failure the next day.

    What the clock puts into the future is as good as fresh.
    """
    attempt = last_attempt(home)
    return now - made > MAX_AGE and (attempt is None or now - attempt.tried > MIN_PAUSE)


async def _fetch(url: str) -> bytes:
    if not url.startswith(("https://", "http://")) or not host_of(url):
        raise CatalogueError(f"“{url}” is not a URL; set catalogue.url to where the data is, or to nothing")
    transport = HttpTransport(Endpoint(provider="catalogue", kind="openai-chat", base_url=url))
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            return await transport.get(url, {"accept": "application/json"}, MAX_BYTES)
    except ModelError as error:
        raise CatalogueError(error.text if url in error.text else f"{url}: {error.text}") from error
    except TimeoutError as error:
        raise CatalogueError(f"{url} took more than {FETCH_SECONDS:g} seconds") from error
    finally:
        await transport.close()


def _keep(home: Path, data: bytes, now: float) -> None:
    try:
        packed = pack(build(data, datetime.fromtimestamp(now, UTC)), int(now))
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise CatalogueError(f"it is not the data of genai-prices ({error})") from error
    try:
        make_directory((home / FETCHED).parent)
        replace_file(home / FETCHED, packed)
    except OSError as error:
        raise CatalogueError(f"{home / FETCHED} cannot be written ({error.strerror or error})") from error


def _note(home: Path, attempt: Attempt) -> None:
    with contextlib.suppress(OSError):  # a disk that fails has said so already, or costs one attempt more
        make_directory((home / ATTEMPT).parent)
        replace_file(home / ATTEMPT, to_json(attempt))
