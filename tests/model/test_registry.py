"""Models by name: facts, keys, clients, what is learned, what is chosen first."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from tenuto.config.settings import ModelSettings, ProviderSettings, RequestSettings, Settings
from tenuto.model.access.stored import read_stored
from tenuto.model.endpoints import find_local_servers
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.model import ModelError
from tests.model.tiny_server import TinyServer, always, plain

SONNET = "anthropic/claude-sonnet-5-5"
KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}


def registry(
    home: Path, environ: dict[str, str] | None = None, now: float = 1_000.0, **settings: object
) -> ModelRegistry:
    return ModelRegistry(Settings(**settings), home, {} if environ is None else environ, clock=lambda: now)  # pyright: ignore


def model_list(*models: dict[str, object]) -> bytes:
    return plain("200 OK", json.dumps({"data": list(models)}).encode())


def own(base_url: str, **fields: object) -> dict[str, ProviderSettings]:
    return {"mine": ProviderSettings(base_url=base_url, **fields)}  # pyright: ignore


# --- facts ---


def test_facts_of_a_known_model_need_no_network(tmp_path: Path):
    facts = registry(tmp_path).facts(SONNET)
    assert (facts.id, facts.context_window, facts.source) == (SONNET, 1_000_000, "catalogue")
    assert facts.input_price is not None
    assert facts.cache_read_price is not None
    assert facts.thinking
    assert "high" in facts.efforts


def test_an_unknown_model_has_no_window(tmp_path: Path):
    facts = registry(tmp_path).facts("openai/new-thing")
    assert (facts.context_window, facts.source, facts.thinking) == (None, "default", False)


@pytest.mark.parametrize("model_id", ["nonsense", "/x", "x/", "", "nobody/model"])
def test_what_is_no_model_says_so(tmp_path: Path, model_id: str):
    for ask in (registry(tmp_path).facts, registry(tmp_path).require):
        with pytest.raises(ModelError) as caught:
            ask(model_id)
        assert caught.value.kind == "not_found"
        assert caught.value.hint


def test_settings_of_a_model_win(tmp_path: Path):
    models = {SONNET: ModelSettings(context_window=16_384, max_output_tokens=2_048, thinking=False)}
    facts = registry(tmp_path, models=models).facts(SONNET)
    assert (facts.context_window, facts.max_output_tokens, facts.thinking, facts.source) == (
        16_384,
        2_048,
        False,
        "settings",
    )


async def test_the_list_of_the_provider_comes_before_the_catalogue_and_is_kept(tmp_path: Path):
    listed = model_list({"id": "m", "context_window": 50_000, "max_completion_tokens": 4_000})
    async with TinyServer(always(listed)) as server:
        first = registry(tmp_path, providers=own(server.base_url))
        facts = await first.refresh("mine/m")
        assert (facts.context_window, facts.max_output_tokens, facts.source) == (50_000, 4_000, "provider")
        await first.refresh("mine/other")
        second = registry(tmp_path, providers=own(server.base_url))
        assert second.facts("mine/m").context_window == 50_000
        await second.refresh("mine/m")
        assert len(server.requests) == 1
        much_later = registry(tmp_path, now=30 * 24 * 3600.0, providers=own(server.base_url))
        await much_later.refresh("mine/m")
        assert len(server.requests) == 2
        for each in (first, second, much_later):
            await each.close()


async def test_a_list_that_cannot_be_had_is_no_error(tmp_path: Path):
    async with TinyServer(always(plain("500 Oops", b""))) as server:
        models = registry(tmp_path, providers=own(server.base_url))
        assert (await models.refresh("mine/m")).context_window is None
        await models.refresh("mine/m")
        assert len(server.requests) == 1
        await models.close()


async def test_a_window_of_the_settings_asks_nobody(tmp_path: Path):
    async with TinyServer(always(model_list({"id": "m"}))) as server:
        models = registry(
            tmp_path, providers=own(server.base_url), models={"mine/m": ModelSettings(context_window=9_000)}
        )
        assert (await models.refresh("mine/m")).context_window == 9_000
        assert not server.requests


async def test_a_broken_list_on_disk_is_asked_for_again(tmp_path: Path):
    async with TinyServer(always(model_list({"id": "m", "context_length": 7_000}))) as server:
        first = registry(tmp_path, providers=own(server.base_url))
        await first.refresh("mine/m")
        await first.close()
        (kept,) = (tmp_path / "cache").iterdir()
        kept.write_text("{half")
        second = registry(tmp_path, providers=own(server.base_url))
        assert (await second.refresh("mine/m")).context_window == 7_000
        await second.close()


@pytest.mark.parametrize(
    ("entry", "window", "output"),
    [
        ({"id": "m", "max_input_tokens": 1_000_000, "max_tokens": 64_000}, 1_000_000, 64_000),
        ({"id": "m", "max_model_len": 32_768}, 32_768, None),
        ({"id": "m", "meta": {"n_ctx": 4_096}}, 4_096, None),
        ({"id": "m", "context_length": 131_072, "top_provider": {"max_completion_tokens": 8_192}}, 131_072, 8_192),
        ({"id": "m", "context_length": None, "max_completion_tokens": "x"}, None, None),
    ],
)
async def test_every_provider_has_its_own_words_for_the_window(
    tmp_path: Path, entry: dict[str, object], window: int | None, output: int | None
):
    async with TinyServer(always(model_list(entry))) as server:
        models = registry(tmp_path, providers=own(server.base_url))
        facts = await models.refresh("mine/m")
        assert (facts.context_window, facts.max_output_tokens) == (window, output)
        await models.close()


async def test_capabilities_and_prices_of_a_list(tmp_path: Path):
    effort = {"low": {"supported": True}, "high": {"supported": True}, "max": {"supported": False}}
    capabilities = {
        "effort": effort,
        "image_input": {"supported": False},
        "thinking": {"types": {"adaptive": {"supported": True}}},
    }
    prices = {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}
    entry = {"id": "m", "context_length": 1, "capabilities": capabilities, "pricing": prices}
    async with TinyServer(always(model_list(entry))) as server:
        models = registry(tmp_path, providers=own(server.base_url))
        facts = await models.refresh("mine/m")
        assert (facts.thinking, facts.efforts, facts.images) == (True, ("low", "high"), False)
        assert (facts.input_price, facts.output_price, facts.cache_read_price) == (3.0, 15.0, 0.3)
        await models.close()


# --- learned windows (R-023) ---


def test_r023_a_learned_window_is_kept_for_its_model_and_only_ever_lower(tmp_path: Path):
    models = registry(tmp_path)
    assert models.learn_window(SONNET, 200_000)
    assert not models.learn_window(SONNET, 300_000)
    assert not models.learn_window(SONNET, 2_000_000)
    assert not models.learn_window(SONNET, 0)
    assert (models.facts(SONNET).context_window, models.facts(SONNET).source) == (200_000, "learned")
    again = registry(tmp_path)
    assert again.facts(SONNET).context_window == 200_000
    assert again.facts("anthropic/claude-opus-5-5").context_window == 1_000_000
    elsewhere = registry(tmp_path, {"ANTHROPIC_BASE_URL": "https://gateway.example"})
    assert elsewhere.facts(SONNET).context_window != 200_000


def test_r023_two_processes_do_not_raise_each_others_window(tmp_path: Path):
    one, other = registry(tmp_path), registry(tmp_path)
    assert one.facts(SONNET).context_window == other.facts(SONNET).context_window
    assert one.learn_window(SONNET, 100_000)
    assert not other.learn_window(SONNET, 150_000)
    assert registry(tmp_path).facts(SONNET).context_window == 100_000


# --- keys ---


def test_a_missing_key_names_its_variable(tmp_path: Path):
    with pytest.raises(ModelError) as caught:
        registry(tmp_path).require(SONNET)
    assert caught.value.kind == "auth"
    assert "ANTHROPIC_API_KEY" in str(caught.value)
    registry(tmp_path, {"ANTHROPIC_API_KEY": "k"}).require(SONNET)
    registry(tmp_path, {"ANTHROPIC_AUTH_TOKEN": "t"}).require(SONNET)
    registry(tmp_path).require("offline/tenuto")
    registry(tmp_path, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}).require("openai-chat/local")


def test_a_stored_key_counts_after_the_environment_and_is_private(tmp_path: Path):
    file = tmp_path / "auth.json"
    file.write_text('{"anthropic": "stored"}')
    file.chmod(0o644)
    registry(tmp_path).require(SONNET)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    with pytest.raises(ModelError):
        registry(tmp_path).require(SONNET)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"anthropic": 7}'])
def test_a_broken_key_file_is_as_good_as_none(tmp_path: Path, content: str):
    (tmp_path / "auth.json").write_text(content)
    assert read_stored(tmp_path) == {}


def test_a_provider_of_the_settings_without_an_address_says_what_to_set(tmp_path: Path):
    with pytest.raises(ModelError) as caught:
        registry(tmp_path, providers=own("")).require("mine/m")
    assert "[providers.mine]" in str(caught.value)


async def test_endpoints_of_the_environment_and_the_settings(tmp_path: Path):
    listed = model_list({"id": "m", "context_window": 5_000})
    async with TinyServer(always(listed)) as server:
        environ = {"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": "secret-a"}
        models = registry(tmp_path, environ)
        assert (await models.refresh("anthropic/m")).context_window == 5_000
        head = server.requests[0][0].lower()
        assert head.startswith("get /v1/models?limit=1000")
        assert "x-api-key: secret-a" in head
        await models.close()
        named = own(server.base_url, api_key_env="MY_KEY", headers={"x-team": "blue"})
        models = registry(tmp_path, {"MY_KEY": "secret-b"}, providers=named)
        await models.refresh("mine/m")
        head = server.requests[1][0].lower()
        assert "authorization: bearer secret-b" in head
        assert "x-team: blue" in head
        await models.close()


# --- choosing ---


def test_the_default_model(tmp_path: Path):
    assert registry(tmp_path, KEYS, model="mine/m").default_model() == "mine/m"
    assert registry(tmp_path, KEYS).default_model().startswith("anthropic/")
    assert registry(tmp_path, {"OPENAI_API_KEY": "o"}).default_model().startswith("openai/")
    assert registry(tmp_path).default_model() == "offline/tenuto"


@pytest.mark.parametrize("environ", [{"ANTHROPIC_API_KEY": "a"}, {"OPENAI_API_KEY": "o"}])
def test_the_default_models_exist(tmp_path: Path, environ: dict[str, str]):
    models = registry(tmp_path, environ)
    assert models.facts(models.default_model()).context_window


async def test_local_servers_are_found_on_their_ports(tmp_path: Path):
    async with TinyServer(always(model_list({"id": "qwen3:8b"}))) as server:
        port = server.port
        (found,) = await find_local_servers([("ollama", port)])
    assert (found.provider, found.base_url, found.models) == ("ollama", f"http://127.0.0.1:{port}/v1", ("qwen3:8b",))
    assert await find_local_servers([("ollama", port)]) == []


@pytest.mark.parametrize(
    "response",
    [plain("404 Not Found", b"{}"), plain("200 OK", b"<html>"), plain("200 OK", b'{"data": []}'), b"SSH-2.0-hello\r\n"],
)
async def test_something_else_on_a_usual_port_is_no_model_server(response: bytes):
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(response)
        writer.close()

    async with TinyServer(answer) as server:
        assert await find_local_servers([("llamacpp", server.port)]) == []


async def test_a_port_that_never_answers_costs_a_moment(monkeypatch: pytest.MonkeyPatch):
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(600)

    async with TinyServer(answer) as server:
        assert await asyncio.wait_for(find_local_servers([("lmstudio", server.port)]), 60) == []


async def test_what_is_available(tmp_path: Path):
    async with TinyServer(always(model_list({"id": "m", "context_window": 5_000}, {"id": "n"}))) as server:
        models = registry(
            tmp_path, providers=own(server.base_url), models={"mine/m": ModelSettings(max_output_tokens=7)}
        )
        found = {facts.id: facts for facts in await models.available()}
        assert {"mine/m", "mine/n", "offline/tenuto"} <= found.keys()
        assert not any(name.startswith(("anthropic/", "openai/")) for name in found)
        assert found["mine/m"].max_output_tokens == 7
        await models.close()


async def test_one_client_a_provider(tmp_path: Path):
    models = registry(tmp_path, KEYS, request=RequestSettings(connect_timeout=3.0))
    assert models.client("anthropic") is models.client("anthropic")
    with pytest.raises(ModelError):
        models.client("nobody")
    await models.close()


# --- windows of local servers, from their own interfaces ---


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/api/v0/models", {"data": [{"id": "m", "max_context_length": 131_072, "loaded_context_length": 8_192}]}),
        ("/props", {"default_generation_settings": {"n_ctx": 8_192}}),
        ("/api/ps", {"models": [{"name": "m", "context_length": 8_192}]}),
    ],
)
async def test_the_window_that_a_local_server_really_uses(tmp_path: Path, path: str, told: dict[str, object]):
    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if " /v1/models " in line:
            writer.write(model_list({"id": "m"}))
        elif f" {path} " in line:
            writer.write(plain("200 OK", json.dumps(told).encode()))
        else:
            writer.write(plain("404 Not Found", b"<html>"))

    async with TinyServer(answer) as server:
        models = registry(tmp_path, providers=own(server.base_url))
        assert (await models.refresh("mine/m")).context_window == 8_192
        await models.close()


async def test_a_local_list_is_soon_asked_for_again(tmp_path: Path):
    async with TinyServer(always(model_list({"id": "m", "context_length": 4_000}))) as server:
        for now in (1_000.0, 1_030.0, 1_100.0):
            models = registry(tmp_path, now=now, providers=own(server.base_url))
            await models.refresh("mine/m")
            await models.close()
        assert len(server.requests) == 2


async def test_a_cancelled_question_is_asked_again(tmp_path: Path):
    hold = asyncio.Event()

    async def answer(line: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        await hold.wait()
        writer.write(model_list({"id": "m", "context_length": 4_000}))

    async with TinyServer(answer) as server:
        models = registry(tmp_path, providers=own(server.base_url))
        asking = asyncio.create_task(models.refresh("mine/m"))
        while not server.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        hold.set()
        assert (await models.refresh("mine/m")).context_window == 4_000
        await models.close()


@pytest.mark.parametrize("family", ["haiku", "sonnet", "opus"])
def test_j5_the_newest_model_of_a_family_goes_by_its_numbers(tmp_path: Path, family: str):
    models = registry(tmp_path)
    newest = models.newest_of("anthropic", family)
    assert newest.startswith(f"anthropic/claude-{family}-")
    same = [name for name in models._catalogued(models._endpoints.get("anthropic")) if f"-{family}-" in name]
    versions = {name: tuple(int(part) for part in name.split("-") if part.isdecimal()) for name in same}
    assert versions[newest.partition("/")[2]] == max(versions.values())
    assert models.newest_of("openai", family) == models.newest_of("offline", family) == ""
