"""The catalogue: what it is made of, and what a name behind any address means in it (B6)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.catalogue import installed

from tenuto.model.catalogue.build import build, max_output
from tenuto.model.catalogue.lookup import VENDORS, Catalogue, matches
from tenuto.model.catalogue.names import forms, key, version
from tenuto.model.catalogue.snapshot import CatalogueError, CatalogueModel
from tenuto.model.endpoint import Endpoint, ProviderKind
from tenuto.protocol.model import ModelFacts

GATEWAY = "https://gateway.example/v1"
PACKAGED = Catalogue(Path("/there/is/none"))
KINDS: tuple[ProviderKind, ...] = get_args(ProviderKind)


def complete(
    name: str, base_url: str = GATEWAY, kind: ProviderKind = "openai-chat", catalogue: Catalogue = PACKAGED
) -> ModelFacts:
    endpoint = Endpoint(provider="mine", kind=kind, base_url=base_url)
    return catalogue.complete(ModelFacts(provider="mine", name=name), endpoint)


# --- what it is made of ---


def test_the_snapshot_is_that_of_the_installed_package():
    """`python -m scripts.catalogue` writes it again. Prices change on dates, so they may differ by age."""
    fresh = build(installed(), datetime.now(UTC))
    kept = tuple(PACKAGED.providers())
    assert [provider.id for provider in kept] == [provider.id for provider in fresh]
    for old, new in zip(kept, fresh, strict=True):
        assert [(model.id, model.window, model.max_output, model.match) for model in old.models] == [
            (model.id, model.window, model.max_output, model.match) for model in new.models
        ]


@pytest.mark.parametrize("hours", range(0, 24 * 40, 53))
def test_prices_are_those_of_the_package_on_every_day_and_hour(hours: int):
    from genai_prices.data_snapshot import get_snapshot

    now = datetime(2026, 10, 20, tzinfo=UTC) + timedelta(hours=hours)
    theirs = {provider.id: provider for provider in get_snapshot().providers}
    for provider in build(installed(), now):
        for ours, model in zip(provider.models, theirs[provider.id].models, strict=True):
            prices = model.get_prices(now)
            names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
            found = [getattr(prices, name) for name in names]
            expected = [None if price is None else float(getattr(price, "base", price)) for price in found]
            assert [ours.input, ours.output, ours.cache_read, ours.cache_write] == expected, (provider.id, model.id)


def test_names_mean_what_they_mean_to_the_package():
    from genai_prices.data_snapshot import get_snapshot

    providers = {provider.id: provider for provider in get_snapshot().providers}
    for kept in PACKAGED.providers():
        for model in kept.models:
            theirs = providers[kept.id].find_model(model.id)
            ours = next((one for one in kept.models if matches(one.match, model.id.lower())), None)
            assert (ours.id if ours else None) == (theirs.id if theirs else None)


@pytest.mark.parametrize(
    ("name", "window", "limit"),
    [
        ("claude-opus-5-5", 1_000_000, 128_000),
        ("anthropic/claude-sonnet-4.5", 1_000_000, 64_000),
        ("claude-opus-4-1-20250805", 200_000, 32_000),
        ("gpt-6.1-sol", 1_050_000, 128_000),
        ("gemini-3.8-flash", 1_000_000, 65_535),
        ("gpt-6.1-sol", 128_000, None),
        ("gpt-6-image", 1_000_000, None),
        ("llama-3.3-70b", 131_072, None),
    ],
)
def test_output_limits_stand_where_a_maker_states_one_that_the_window_has_room_for(
    name: str, window: int, limit: int | None
):
    assert max_output(name, window) == limit


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not the data of genai-prices"),
        (b"{}", "not the data of genai-prices"),
        (b"\xff\xfe", "not the data of genai-prices"),
        (b"[]", "no models of anthropic"),
        (b'[{"id":"anthropic","api_pattern":"x","models":[]}]', "no models of anthropic"),
    ],
)
def test_what_is_no_catalogue_is_refused(data: bytes, reason: str):
    with pytest.raises(CatalogueError, match=reason):
        build(data, datetime.now(UTC))


def test_a_pattern_that_could_take_for_ever_or_is_none_means_no_name():
    provider = {"api_pattern": "https://x", "models": []}
    models = [
        {"id": f"m{place}", "context_window": 9, "match": {"regex": pattern}}
        for place, pattern in enumerate((r"(a+)+$", "(", "a" * 400, "^good$"))
    ]
    data = [{"id": name, **provider, "models": models} for name in ("anthropic", "openai")]
    anthropic = build(json.dumps(data).encode(), datetime.now(UTC))[0]
    assert [model.match for model in anthropic.models] == [[], [], [], ["regex", "^good$"]]
    assert not matches([], "m0")


# --- by address ---


@pytest.mark.parametrize(
    ("base_url", "name", "window"),
    [
        ("https://api.anthropic.com", "claude-sonnet-5-5", 1_000_000),
        ("https://api.anthropic.com", "claude-sonnet-5-5-20261012", 1_000_000),
        ("https://api.openai.com/v1", "gpt-5.6-terra-2026-07-30", 1_050_000),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", 1_000_000),
    ],
)
def test_the_provider_of_the_address_knows_its_models(base_url: str, name: str, window: int):
    facts = complete(name, base_url)
    assert (facts.context_window, facts.source, facts.price_source, facts.assumed_from) == (
        window,
        "catalogue",
        "catalogue",
        "",
    )
    assert facts.input_price is not None


# --- by name ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-5-5",
        "Claude-Opus-5-5",
        "claude-opus-5.5",
        "claude-opus-5-5-20261012",
        "claude-opus-5-5-2026-10-12",
        "claude-opus-5-5@20261012",
        "claude-opus-5-5@default",
        "claude-opus-5-5-latest",
        "anthropic/claude-opus-5-5",
        "openrouter/anthropic/claude-opus-5.5",
        "models/claude-opus-5-5",
        "anthropic.claude-opus-5-5-v1:0",
        "us.anthropic.claude-opus-5-5-20261012-v1:0",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us-gov.anthropic.claude-opus-5-5-20261012-v1:0",
    ],
)
def test_b6_behind_any_gateway_a_model_is_found_by_its_name(kind: ProviderKind, name: str):
    facts = complete(name, kind=kind)
    assert (facts.context_window, facts.source) == (1_000_000, "name")
    assert (facts.max_output_tokens, facts.output_source) == (128_000, "name")
    assert (facts.input_price, facts.output_price, facts.price_source) == (4.0, 20.0, "name")
    assert facts.assumed_from == "claude-opus-5-5"


@pytest.mark.parametrize(
    ("name", "kind", "assumed", "window"),
    [
        ("claude-opus-5-7", "anthropic", "claude-opus-5-5", 1_000_000),
        ("us.anthropic.claude-opus-5-7-20270101-v1:0", "openai-chat", "claude-opus-5-5", 1_000_000),
        ("claude-sonnet-4-3", "anthropic", "claude-sonnet-4-0", 200_000),
        ("gpt-6.2-astra", "openai", "gpt-6-astra", 1_050_000),
        ("gpt-6.2-sol", "openai-chat", "gpt-6.1-sol", 1_050_000),
        ("gemini-3.9-flash", "openai-chat", "gemini-3.8-flash", 1_000_000),
        ("grok-5", "openai-chat", "grok-4.7", 500_000),  # 4.20 is older than 4.3
    ],
)
def test_b6_an_unknown_version_is_taken_for_the_newest_older_one_of_its_family(
    name: str, kind: ProviderKind, assumed: str, window: int
):
    facts = complete(name, kind=kind)
    assert (facts.context_window, facts.source, facts.assumed_from) == (window, "nearest", assumed)
    assert facts.input_price is not None
    assert facts.price_source == "nearest"


def test_b6_the_vendor_itself_may_have_a_model_that_the_catalogue_does_not_know_yet():
    facts = complete("gpt-6.2-astra", "https://api.openai.com/v1", "openai")
    assert (facts.context_window, facts.source, facts.assumed_from) == (1_050_000, "nearest", "gpt-6-astra")


@pytest.mark.parametrize(
    "name",
    [
        "new-thing",
        "claude-nova-5-5",  # another family
        "gpt-6-nova",
        "claude-opus-1",  # nothing is older
        "llama3",
        "gpt",
        "5",
        "",
        "/",
        ":free",
        "a" * 5_000,
    ],
)
def test_b6_a_model_of_another_family_is_never_taken(name: str):
    facts = complete(name)
    assert (facts.context_window, facts.source, facts.input_price, facts.assumed_from) == (None, "default", None, "")


def test_b6_another_offer_of_a_model_has_its_window_and_not_its_price():
    facts = complete("openrouter/deepseek/deepseek-v4-pro:free")
    assert (facts.context_window, facts.source) == (1_000_000, "name")
    assert (facts.input_price, facts.price_source) == (None, "")


def test_b6_an_entry_without_a_window_is_not_the_end_of_the_search():
    assert next(model for model in by_provider("google") if model.id == "gemini-2.5-pro").window is None
    facts = complete("gemini-2.5-pro")
    assert (facts.context_window, facts.source, facts.price_source) == (1_048_576, "name", "name")


def test_b6_what_the_provider_said_stays():
    said = ModelFacts(
        provider="mine",
        name="claude-opus-5-5",
        context_window=64_000,
        input_price=1.0,
        output_price=2.0,
        source="provider",
    )
    facts = PACKAGED.complete(said, Endpoint(provider="mine", kind="anthropic", base_url=GATEWAY))
    assert (facts.context_window, facts.source, facts.input_price) == (64_000, "provider", 1.0)
    assert (facts.max_output_tokens, facts.output_source) == (128_000, "name")


@pytest.mark.parametrize(
    "base_url",
    [
        "http://localhost:11434/v1",
        "http://127.0.0.1:8080/v1",
        "http://10.0.0.7/v1",
        "http://192.168.1.2/v1",
        "http://[::1]:8080/v1",
        "http://box.local/v1",
        "http://llm.internal/v1",
    ],
)
@pytest.mark.parametrize("name", ["claude-opus-5-5", "gpt-oss-120b", "llama-3.3-70b", "gpt-7"])
def test_b6_a_local_server_gets_nothing_by_name(base_url: str, name: str):
    assert complete(name, base_url) == ModelFacts(provider="mine", name=name)


@cache
def by_provider(provider_id: str) -> tuple[CatalogueModel, ...]:
    return next(provider.models for provider in PACKAGED.providers() if provider.id == provider_id)


@cache
def ids() -> tuple[str, ...]:
    return tuple(model.id for provider in PACKAGED.providers() for model in provider.models)


PREFIXES = st.sampled_from(
    ("", "models/", "anthropic/", "openrouter/x-ai/", "accounts/fireworks/models/", "us.vendor.", "bedrock/eu.vendor.")
)
SUFFIXES = st.sampled_from(
    ("", "-20260101", "-2026-01-01", "-v1:0", "-20260101-v2:0", "@20260101", "@default", "-latest")
)


@given(st.data(), PREFIXES, SUFFIXES, st.sampled_from(KINDS))
def test_b6_every_name_finds_itself_through_every_prefix_and_suffix(
    data: st.DataObject, prefix: str, suffix: str, kind: ProviderKind
):
    name = data.draw(st.sampled_from(ids()))
    plain, dressed = complete(name, kind=kind), complete(prefix + name + suffix, kind=kind)
    for field in ("context_window", "max_output_tokens", "input_price", "source", "assumed_from"):
        assert getattr(dressed, field) == getattr(plain, field), field


@given(st.data(), st.sampled_from(KINDS))
def test_b6_a_name_with_a_window_has_it_behind_a_gateway(data: st.DataObject, kind: ProviderKind):
    """Whoever lists it: makers may name another window for their model than those who serve it."""
    provider_id = data.draw(st.sampled_from([provider.id for provider in PACKAGED.providers()]))
    model = data.draw(st.sampled_from([model for model in by_provider(provider_id) if model.window]))
    facts = complete(model.id, kind=kind)
    assert facts.context_window is not None
    assert facts.source == "name"
    if provider_id == VENDORS[kind]:
        assert facts.context_window == model.window


@given(st.text(max_size=60))
def test_b6_any_text_is_read_as_a_name_and_none_is_a_fault(name: str):
    for form in forms(name):
        _, numbers = version(form.text)
        assert all(number < 100 for number in numbers)
        assert key(form.text) == key(key(form.text))
        assert form.text
    complete(name)


@pytest.mark.parametrize(
    ("name", "family", "numbers"),
    [
        ("claude-opus-5-5", ("claude", "opus"), (5, 5)),
        ("claude-3-5-sonnet", ("claude", "sonnet"), (3, 5)),
        ("gpt-6.2-astra", ("gpt", "astra"), (6, 2)),
        ("gpt-4o-mini", ("gpt", "4o", "mini"), ()),
        ("o4-mini", ("o", "mini"), (4,)),
        ("qwen3.8-27b", ("qwen", "27b"), (3, 8)),
        ("grok-4.20", ("grok",), (4, 2)),
        ("gemini-2.0-flash", ("gemini", "flash"), (2,)),
        ("mistral-large-2512", ("mistral", "large", "2512"), ()),
    ],
)
def test_a_core_is_a_family_and_a_version(name: str, family: tuple[str, ...], numbers: tuple[int, ...]):
    assert version(name) == (family, numbers)
