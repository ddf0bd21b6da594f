"""Which model has which levels of effort, and which suffixes are part of a name (finding B11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.settings import ModelSettings, ProviderSettings, Settings
from tenuto.model.efforts import BUDGETS, CLAUDE, EFFORTS, GPT, MIN_BUDGET, find_levels, odd_suffix, thinking_budget
from tenuto.model.model_list import complete
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.model import ModelError, ModelFacts
from tests.model.test_registry import model_list
from tests.model.tiny_server import TinyServer, always

TABLE: dict[str, dict[str, str]] = {
    "anthropic": {
        "claude-opus-5-5": "low medium high xhigh max",
        "claude-sonnet-5-5": "low medium high xhigh max",
        "claude-haiku-5-5": "none low medium high xhigh max",
        "claude-opus-5": "none low medium high xhigh max",
        "claude-fable-5-1": "low medium high xhigh max",
        "claude-opus-4-7": "none low medium high xhigh max",
        "anthropic/claude-sonnet-4.6": "none low medium high max",
        "claude-opus-4-5-20251101": "low medium high",
        "claude-haiku-4-5": "none low medium high",
        "claude-haiku-4-5-20251001": "none low medium high",
        "claude-sonnet-4-20250514": "none low medium high",
        "claude-3-7-sonnet-latest": "none low medium high",
        "claude-3-5-sonnet-20241022": "",
        "glm-5": "?",
    },
    "openai": {
        "gpt-6.1-sol": "low medium high xhigh max",
        "gpt-6-sol": "none low medium high xhigh max",
        "gpt-5.6-luna": "none low medium high xhigh max",
        "gpt-5.4-mini": "none low medium high xhigh",
        "gpt-5.2-pro": "medium high xhigh",
        "gpt-5.3-codex": "low medium high xhigh",
        "gpt-5.1": "none low medium high",
        "gpt-5.1-codex-mini": "low medium high",
        "gpt-5": "minimal low medium high",
        "gpt-5-2025-08-07": "minimal low medium high",
        "gpt-5-pro": "high",
        "o3": "low medium high",
        "o4-mini": "low medium high",
        "gpt-5-chat-latest": "",
        "gpt-4.1": "",
        "gpt-latest": "?",
        "my-deployment": "?",
    },
    "openai-chat": {
        "gpt-6.1-sol": "low medium high xhigh max",
        "openai/gpt-6.1-sol": "?",
        "anthropic/claude-opus-5.5": "?",
        "qwen3:8b": "?",
    },
}


@pytest.mark.parametrize(
    ("kind", "name", "levels"), [(kind, name, levels) for kind, rows in TABLE.items() for name, levels in rows.items()]
)
def test_b11_the_table_knows_each_generation(kind, name: str, levels: str) -> None:
    row = find_levels(name, kind)
    assert "?" if row is None else " ".join(row.levels) == levels, row
    assert (row is None) == (levels == "?")


def test_b11_every_row_is_the_first_for_some_model() -> None:
    used = {find_levels(name, kind) for kind, rows in TABLE.items() for name in rows}  # type: ignore[arg-type]
    assert used - {None} == {*CLAUDE, *GPT}
    for row in (*CLAUDE, *GPT):
        assert [level for level in EFFORTS if level in row.levels] == list(row.levels), "the weakest first"
        assert row.way != "budget" or set(row.levels) == {"none", *BUDGETS}


@given(st.sampled_from(EFFORTS), st.integers(0, 200_000))
def test_b11_a_budget_leaves_half_of_the_answer_and_is_never_too_small(effort: str, most: int) -> None:
    budget = thinking_budget(effort, most)
    assert budget == 0 or MIN_BUDGET <= budget <= most // 2
    assert budget > 0 or effort not in BUDGETS or most < 2 * MIN_BUDGET


@given(st.text(max_size=40))
def test_b11_only_what_stands_behind_a_colon_is_a_suffix(name: str) -> None:
    suffix = odd_suffix(name)
    assert not suffix or name.endswith(f":{suffix}")
    assert not odd_suffix(name.replace(":", "-"))


# --- what a provider's list says ---


def test_b11_the_list_goes_before_the_table() -> None:
    listed = ModelFacts(provider="anthropic", name="claude-opus-5-5", thinking=True, efforts=("low", "high"))
    assert complete(listed, "anthropic").efforts == ("low", "high")
    listed = ModelFacts(provider="anthropic", name="claude-opus-5", thinking=True, efforts=("low", "high"))
    assert complete(listed, "anthropic").efforts == ("none", "low", "high"), "a list has no word for that"


@pytest.mark.parametrize(
    ("entry", "efforts"),
    [
        ({"capabilities": {"effort": {"max": {"supported": True}, "low": {"supported": True}}}}, ("low", "max")),
        ({"supported_reasoning_levels": [{"effort": "ultra"}, {"effort": "low"}]}, ("low", "ultra")),
        ({"reasoning": {"supported_efforts": ["high", "minimal", "persistent"]}}, ("minimal", "high")),
        ({"reasoning": {"supported_efforts": None}, "capabilities": []}, ()),
        ({"supported_reasoning_levels": "all"}, ()),
    ],
)
async def test_b11_lists_name_levels_in_their_own_ways(tmp_path: Path, entry: dict[str, object], efforts) -> None:
    async with TinyServer(always(model_list({"id": "m", **entry}))) as server:
        models = registry(tmp_path, server.base_url)
        facts = await models.refresh("mine/m")
        assert facts.efforts == efforts
        if "ultra" in efforts:
            models.require_effort(facts, "ultra")
        if efforts:
            with pytest.raises(ModelError, match=", ".join(efforts)):
                models.require_effort(facts, "xhigh")
        await models.close()


# --- names with a colon ---


def registry(home: Path, address: str = "", **models: ModelSettings) -> ModelRegistry:
    providers = {"mine": ProviderSettings(kind="openai-chat", base_url=address or "https://gateway.invalid/v1")}
    own = {f"mine/{name}": settings for name, settings in models.items()}
    return ModelRegistry(Settings(providers=providers, models=own), home, {"OPENAI_API_KEY": "k", "MINE_API_KEY": "k"})


@pytest.mark.parametrize("name", ["m:custom", "qwen3:8b", "x/y:free", "ft:gpt-4.1:us::id", "anthropic.m-v2:0", "m"])
async def test_b11_names_may_have_a_colon(tmp_path: Path, name: str) -> None:
    async with TinyServer(always(model_list({"id": "m:custom"}, {"id": "m"}))) as server:
        models = registry(tmp_path, server.base_url)
        await models.require_name(f"mine/{name}")
        await models.close()


async def test_b11_a_suffix_that_no_list_has_is_refused_and_the_settings_may_name_it(tmp_path: Path) -> None:
    async with TinyServer(always(model_list({"id": "m"}))) as server:
        models = registry(tmp_path, server.base_url)
        for name, meant in (("m:hihg", "mine/m:high"), ("m:ultar", "mine/m:ultra"), ("m:together", "")):
            with pytest.raises(ModelError) as caught:
                await models.require_name(f"mine/{name}")
            assert caught.value.kind == "not_found"
            assert re.findall(r"did you mean (.*)\? ", f"{caught.value}") == ([meant] if meant else []), caught.value
            assert f'[models."mine/{name}"]' in f"{caught.value}"
        await models.close()
        named = ModelSettings(context_window=9_000)
        await registry(tmp_path, server.base_url, **{"m:together": named}).require_name("mine/m:together")


async def test_b11_a_local_server_without_a_list_may_have_any_name(tmp_path: Path) -> None:
    await registry(tmp_path, "http://127.0.0.1:9/v1").require_name("mine/m:custom")
    with pytest.raises(ModelError):
        await registry(tmp_path / "other").require_name("openai/gpt-6.1-sol:ultar")
