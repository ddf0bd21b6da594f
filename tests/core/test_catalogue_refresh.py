"""A newer catalogue of models, fetched beside an interactive start and never beside another (B6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.core import runtime as runtime_module
from tenuto.core.runtime import Runtime
from tenuto.model.catalogue import refresh
from tenuto.model.catalogue.snapshot import FETCHED
from tests.core.harness import make_start
from tests.model.test_catalogue_refresh import GATEWAY, ok, published
from tests.model.tiny_server import TinyServer, always

MODEL = "anthropic/claude-opus-7"


@pytest.fixture(autouse=True)
def due(monkeypatch: pytest.MonkeyPatch):
    """A catalogue is always old, and nobody waits for the first frames."""
    monkeypatch.setattr(refresh, "MAX_AGE", float("-inf"))
    monkeypatch.setattr(runtime_module, "CATALOGUE_DELAY", 0.0)


async def opened(tmp_path: Path, url: str, **changes) -> Runtime:
    environ = {**GATEWAY, "TENUTO_CATALOGUE__URL": url, **changes.pop("environ", {})}
    runtime = Runtime(make_start(tmp_path, environ, model=MODEL, **changes))
    await runtime.open()
    return runtime


async def settle(runtime: Runtime) -> None:
    """Wait for all that runs beside a session."""
    await runtime.opener.wait_for_facts()
    if runtime._refreshing is not None:  # pyright: ignore[reportPrivateUsage]
        await runtime._refreshing  # pyright: ignore[reportPrivateUsage]


async def test_b6_an_interactive_start_fetches_a_newer_catalogue(tmp_path: Path):
    async with TinyServer(always(ok(published()))) as server:
        runtime = await opened(tmp_path, server.base_url)
        assert runtime.opener.models.facts(MODEL).source == "nearest"
        await settle(runtime)
        assert runtime.opener.models.facts(MODEL).context_window == 3_000_000
        await runtime.close()
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "changes",
    [{"interactive": False}, {"environ": {"TENUTO_CATALOGUE__REFRESH": "false"}}],
)
async def test_b6_a_run_without_a_user_or_with_the_switch_off_fetches_nothing(tmp_path: Path, changes: dict):
    async with TinyServer(always(ok(published()))) as server:
        runtime = await opened(tmp_path, server.base_url, **changes)
        await settle(runtime)
        await runtime.close()
        assert not server.requests


async def test_b6_a_place_that_hangs_keeps_nobody_from_leaving(tmp_path: Path):
    asked = asyncio.Event()

    async def hang(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with TinyServer(hang) as server:
        runtime = await opened(tmp_path, server.base_url)
        await asyncio.wait_for(asked.wait(), 60)
        await asyncio.wait_for(runtime.close(), 60)
    assert not (tmp_path / "home" / FETCHED).exists()
