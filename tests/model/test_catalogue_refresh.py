"""Fetching a newer catalogue over real HTTP, and which of two catalogues is used (B6)."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.catalogue import installed

from tenuto.config.settings import CatalogueSettings, Settings
from tenuto.model.catalogue.build import build
from tenuto.model.catalogue.lookup import Catalogue
from tenuto.model.catalogue.refresh import MAX_AGE, MIN_PAUSE, PUBLISHED, Attempt, is_due, last_attempt, refresh
from tenuto.model.catalogue.snapshot import (
    FETCHED,
    FORMAT,
    MAX_BYTES,
    PACKAGED,
    CatalogueError,
    pack,
    read,
    read_header,
)
from tenuto.model.endpoint import Endpoint
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.model import ModelFacts
from tests.model.tiny_server import TinyServer, always, plain

NOW = datetime(2030, 1, 2, tzinfo=UTC).timestamp()
GATEWAY = {"ANTHROPIC_BASE_URL": "http://gateway.invalid", "ANTHROPIC_API_KEY": "a"}
NEW = {"id": "claude-opus-7", "context_window": 3_000_000, "match": {"equals": "claude-opus-7"}}
PRICES = {"prices": {"input_mtok": 1, "output_mtok": {"base": 2, "tiers": [{"start": 9, "price": 4}]}}}


def published(**changes: object) -> bytes:
    """The project's data as it could be some day: a provider and kinds of data that nobody knows yet among them."""
    anthropic = {"id": "anthropic", "api_pattern": r"https://api\.anthropic\.com", "models": [NEW | PRICES | changes]}
    model = {"id": "gpt-6-sol", "context_window": 9_000, "match": {"like": "gpt"}, "prices": [], "tokens": {"a": 1}}
    openai = {"id": "openai", "api_pattern": r"https://api\.openai\.com", "models": [model], "motto": "x"}
    return json.dumps([{"id": "later", "api_pattern": "(", "models": []}, anthropic, openai]).encode()


def ok(body: bytes) -> bytes:
    return plain("200 OK", body, "Content-Type: text/plain; charset=utf-8")


def window(home: Path, name: str) -> int | None:
    endpoint = Endpoint(provider="mine", kind="anthropic", base_url="https://gateway.example")
    return Catalogue(home / FETCHED).complete(ModelFacts(provider="mine", name=name), endpoint).context_window


def test_the_address_is_that_of_the_package():
    from genai_prices.update_prices import DEFAULT_UPDATE_URL

    assert PUBLISHED == DEFAULT_UPDATE_URL


async def test_b6_what_is_fetched_is_used_from_then_on(tmp_path: Path):
    assert window(tmp_path, "claude-opus-7") == 1_000_000  # the nearest version
    async with TinyServer(always(ok(published()))) as server:
        await refresh(tmp_path, server.base_url, NOW)
    assert window(tmp_path, "claude-opus-7") == 3_000_000
    catalogue = Catalogue(tmp_path / FETCHED)
    assert (catalogue.made, catalogue.is_fetched, catalogue.problem) == (int(NOW), True, "")
    (model,) = next(provider.models for provider in catalogue.providers() if provider.id == "anthropic")
    assert (model.input, model.output) == (1.0, 2.0)
    assert last_attempt(tmp_path) == Attempt(NOW)
    assert stat.S_IMODE((tmp_path / FETCHED).stat().st_mode) == 0o600


async def test_the_published_data_of_today_makes_the_packaged_snapshot(tmp_path: Path):
    async with TinyServer(always(ok(installed()))) as server:
        await refresh(tmp_path, server.base_url, NOW)
    packaged = [provider.id for provider in Catalogue(tmp_path / "none").providers()]
    assert [provider.id for provider in Catalogue(tmp_path / FETCHED).providers()] == packaged
    assert window(tmp_path, "claude-opus-5-5") == 1_000_000


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (plain("404 Not Found", b"gone"), "gone"),
        (plain("302 Found", b"", "Location: https://elsewhere.example/"), "elsewhere"),
        (ok(b""), "not the data of genai-prices"),
        (ok(b"<html>Log in to the wifi</html>"), "not the data of genai-prices"),
        (ok(published()[:-40]), "not the data of genai-prices"),
        (ok(published(context_window=-1)), "has what no catalogue has"),
        (ok(published(context_window=10**30)), "has what no catalogue has|not the data"),
        (ok(published(prices={"input_mtok": -1})), "has what no catalogue has"),
        (ok(published(prices={"input_mtok": "much"})), "no price"),
        (ok(b"[" * 100_000), "not the data of genai-prices"),
        (ok(b" " * (MAX_BYTES + 1)), "more than 8 MB"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "connection broke"),
    ],
)
async def test_b6_what_cannot_be_used_leaves_the_older_one_in_its_place(tmp_path: Path, answer: bytes, reason: str):
    async with TinyServer(always(ok(published()))) as server:
        await refresh(tmp_path, server.base_url, NOW)
    before = (tmp_path / FETCHED).read_bytes()

    async def once(line: str, body: bytes, writer: object) -> None:
        writer.write(answer)  # pyright: ignore
        writer.close()  # pyright: ignore

    async with TinyServer(once) as server:
        with pytest.raises(CatalogueError, match=reason):
            await refresh(tmp_path, server.base_url, NOW + 1)
    assert (tmp_path / FETCHED).read_bytes() == before
    attempt = last_attempt(tmp_path)
    assert attempt is not None and attempt.tried == NOW + 1
    assert attempt.problem


@pytest.mark.parametrize("url", ["nonsense", "file:///etc/passwd", "http://", "ftp://x/y"])
async def test_an_address_that_is_none_is_named(tmp_path: Path, url: str):
    with pytest.raises(CatalogueError, match=r"set catalogue\.url"):
        await refresh(tmp_path, url, NOW)


async def test_a_disk_that_takes_nothing_is_named(tmp_path: Path):
    (tmp_path / "cache").write_text("in the way")
    async with TinyServer(always(ok(published()))) as server:
        with pytest.raises(CatalogueError, match="cannot be written"):
            await refresh(tmp_path, server.base_url, NOW)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: b"", "damaged"),
        (lambda data: data[: len(data) // 2], "damaged"),
        (lambda data: data.replace(b"3000000", b"9000000"), "damaged"),
        (lambda data: data.replace(b'"format":1', b'"format":%d' % (FORMAT + 1)), "of a newer Tenuto"),
        (lambda data: data.replace(b'"format":1', b'"format":0'), "of an older Tenuto"),
        (lambda data: data.replace(b"%d" % int(NOW), b"1000"), "older than the one that came with the program"),
    ],
)
def test_b6_the_packaged_one_takes_the_place_of_one_that_cannot_be_used(tmp_path: Path, damage, problem: str):  # pyright: ignore
    file = tmp_path / FETCHED
    file.parent.mkdir()
    file.write_bytes(damage(pack(build(published(), datetime.now(UTC)), int(NOW))))  # pyright: ignore
    catalogue = Catalogue(file)
    assert not catalogue.is_fetched
    assert problem in catalogue.problem
    assert window(tmp_path, "claude-opus-5-5") == 1_000_000


def test_a_catalogue_is_a_directory_or_unreadable(tmp_path: Path):
    (tmp_path / FETCHED).mkdir(parents=True)
    catalogue = Catalogue(tmp_path / FETCHED)
    assert catalogue.made
    assert "cannot be read" in catalogue.problem


@given(place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_no_flipped_bit_is_believed(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int):
    data = bytearray(pack(build(published(), datetime.fromtimestamp(NOW, UTC)), int(NOW)))
    data[place % len(data)] ^= 1 << bit
    file = tmp_path_factory.mktemp("flipped") / "catalogue.json"
    file.write_bytes(data)
    try:
        snapshot = read(file)
    except CatalogueError:
        return
    # The date has no checksum: another one makes a catalogue newer or older, and nothing else.
    assert [provider.id for provider in snapshot.providers] == ["anthropic", "openai"]


@pytest.mark.parametrize(
    ("age", "tried", "due"),
    [
        (MAX_AGE - 1, None, False),
        (MAX_AGE + 1, None, True),
        (MAX_AGE + 1, MIN_PAUSE - 1, False),
        (MAX_AGE + 1, MIN_PAUSE + 1, True),
        (-1e6, None, False),
    ],
)
def test_a_catalogue_is_fetched_each_week_and_after_a_failure_the_next_day(
    tmp_path: Path, age: float, tried: float | None, due: bool
):
    if tried is not None:
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache/catalogue-attempt.json").write_text(json.dumps({"tried": NOW - tried, "problem": "x"}))
    assert is_due(tmp_path, NOW - age, NOW) is due


def registry(home: Path, url: str, now: float = NOW) -> ModelRegistry:
    settings = Settings(catalogue=CatalogueSettings(url=url))
    return ModelRegistry(settings, home, GATEWAY, clock=lambda: now)


async def test_b6_a_registry_fetches_once_a_week_and_uses_it_at_once(tmp_path: Path):
    async with TinyServer(always(ok(published()))) as server:
        models = registry(tmp_path, server.base_url)
        assert models.facts("anthropic/claude-opus-7").source == "nearest"
        await models.refresh_catalogue("anthropic/claude-opus-7")
        facts = models.facts("anthropic/claude-opus-7")
        assert (facts.context_window, facts.source) == (3_000_000, "name")
        await models.refresh_catalogue("anthropic/claude-opus-7")
        await registry(tmp_path, server.base_url, NOW + MAX_AGE / 2).refresh_catalogue("anthropic/x")
        assert len(server.requests) == 1
        await registry(tmp_path, server.base_url, NOW + MAX_AGE + 2).refresh_catalogue("anthropic/x")
        assert len(server.requests) == 2


async def test_a_registry_is_silent_about_a_failure(tmp_path: Path):
    async with TinyServer(always(plain("500 Oops", b""))) as server:
        models = registry(tmp_path, server.base_url)
        await models.refresh_catalogue("anthropic/claude-opus-7")
        await models.refresh_catalogue("anthropic/claude-opus-7")
        assert len(server.requests) == 1
    attempt = last_attempt(tmp_path)
    assert attempt is not None and attempt.problem


@pytest.mark.parametrize("model", ["offline/tenuto", "ollama/llama3"])
async def test_nothing_leaves_the_place_for_a_model_that_is_offline_or_local(tmp_path: Path, model: str):
    async with TinyServer(always(ok(published()))) as server:
        await registry(tmp_path, server.base_url).refresh_catalogue(model)
        assert not server.requests


def test_the_packaged_snapshot_can_be_read():
    header = read_header(PACKAGED)
    assert header is not None and header.made == read(PACKAGED).made
