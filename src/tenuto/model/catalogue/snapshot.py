"""A catalogue as a file: a line that says what it is, then the providers as JSON.

The line stands alone so that a start reads of two files only the newer. Its checksum is of the rest.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenuto.text.writable import to_json

FORMAT = 1
PACKAGED = Path(__file__).with_name("catalogue.json")
"""The snapshot that comes with the program."""
MAKERS = ("anthropic", "openai", "google", "deepseek", "meta", "minimax", "mistral", "moonshotai", "x-ai", "zai")
HOSTS = ("zhipuai", "cerebras", "fireworks", "groq", "together", "openrouter")
"""In the order in which a name is looked for: who makes a model comes before who serves it."""
FETCHED = Path("cache") / "catalogue.json"
"""A fetched one, in Tenuto's home."""
MAX_BYTES = 8_000_000
MAX_HEADER = 1_000

Tokens = Annotated[int, Meta(ge=0, le=100_000_000)]
Price = Annotated[float, Meta(ge=0, le=1_000_000)]
Name = Annotated[str, Meta(min_length=1, max_length=300)]


class CatalogueError(Exception):
    """A catalogue that cannot be used; the text says why, in the middle of a sentence."""


class CatalogueModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One model: window and longest answer in tokens, prices in US dollars per million tokens, which names mean it."""

    id: Name
    window: Tokens | None = None
    max_output: Tokens | None = None
    input: Price | None = None
    output: Price | None = None
    cache_read: Price | None = None
    cache_write: Price | None = None
    match: list[Any] = []


class CatalogueProvider(msgspec.Struct, frozen=True, kw_only=True):
    """One provider; `api_pattern` is a regular expression for its base URLs."""

    id: Name
    api_pattern: str
    models: tuple[CatalogueModel, ...]


class UnreadProvider(msgspec.Struct, dict=True):
    """A provider whose models are still JSON: a start asks for one of sixteen, and all of them take 2 ms."""

    id: str
    api_pattern: str
    models: msgspec.Raw

    def mentions(self, *texts: str) -> bool:
        """Whether all of some texts stand in it, `.` and `-` being the same: most providers need not be read."""
        return all(text.replace(".", "-").encode() in self._lower for text in texts)

    @cached_property
    def _lower(self) -> bytes:
        return bytes(self.models).lower().replace(b".", b"-")

    def read(self) -> CatalogueProvider:
        """Return the provider with its models; with none where they cannot be read."""
        try:
            models = msgspec.json.decode(self.models, type=tuple[CatalogueModel, ...])
        except (msgspec.DecodeError, UnicodeDecodeError):
            models = ()
        return CatalogueProvider(id=self.id, api_pattern=self.api_pattern, models=models)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: when the catalogue was made (seconds since the epoch), and the checksum of what follows."""

    format: int
    made: int
    sha256: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A catalogue that was read."""

    made: int
    providers: tuple[UnreadProvider, ...]


def pack(providers: tuple[CatalogueProvider, ...], made: int) -> bytes:
    """Return the file of a catalogue. Raises `CatalogueError` for one that could not be read again."""
    body = to_json(providers).replace(b'},{"id"', b'},\n{"id"') + b"\n"
    try:
        msgspec.json.decode(body, type=tuple[CatalogueProvider, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"it has what no catalogue has ({error})") from error
    if len(body) > MAX_BYTES:
        raise CatalogueError(f"it has more than {MAX_BYTES // 1_000_000} MB")
    header = Header(format=FORMAT, made=made, sha256=hashlib.sha256(body).hexdigest())
    return to_json(header) + b"\n" + body


def read_header(path: Path) -> Header | None:
    """Return what a file says that it is, `None` where there is no file. Raises `CatalogueError`."""
    try:
        with path.open("rb") as file:
            return _header(file.readline(MAX_HEADER))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CatalogueError(f"it cannot be read ({error.strerror or error})") from error


def read(path: Path) -> Snapshot:
    """Return the catalogue of a file. Raises `CatalogueError`."""
    try:
        with path.open("rb") as file:
            header, body = _header(file.readline(MAX_HEADER)), file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CatalogueError(f"it cannot be read ({error.strerror or error})") from error
    if len(body) > MAX_BYTES or hashlib.sha256(body).hexdigest() != header.sha256:
        raise CatalogueError("it is damaged (its checksum is another)")
    try:
        providers = msgspec.json.decode(body, type=tuple[UnreadProvider, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"it is damaged ({error})") from error
    return Snapshot(made=header.made, providers=providers)


def _header(line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CatalogueError("it is damaged (its first line cannot be read)") from error
    if header.format != FORMAT:
        age = "a newer" if header.format > FORMAT else "an older"
        raise CatalogueError(f"it is of {age} Tenuto (format {header.format}, not {FORMAT})")
    return header
