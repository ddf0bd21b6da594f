"""The snapshot of windows and prices."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tenuto.model import catalogue
from tenuto.model.catalogue_build import build
from tenuto.model.model_list import nearest_effort, thinks_adaptively


def test_the_snapshot_is_that_of_the_installed_package():
    """`python -m tenuto.model.catalogue_build` writes it again. Prices change on dates, so they may differ by age."""
    fresh = build(datetime.now(UTC))
    kept = catalogue.providers()
    assert [provider.id for provider in kept] == [provider.id for provider in fresh]
    for old, new in zip(kept, fresh, strict=True):
        assert [(model.id, model.window, model.match) for model in old.models] == [
            (model.id, model.window, model.match) for model in new.models
        ]


@pytest.mark.parametrize(
    ("base_url", "name", "found"),
    [
        ("https://api.anthropic.com", "claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("https://api.anthropic.com", "claude-sonnet-5-5-20261012", "claude-sonnet-5-5"),
        ("https://api.openai.com/v1", "gpt-5.6-terra-2026-07-30", "gpt-5.6-terra"),
        ("https://api.openai.com/v1", "nothing-like-it", None),
        ("https://somewhere.example/v1", "claude-sonnet-5-5", None),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5"),
    ],
)
def test_models_are_found_as_the_package_finds_them(base_url: str, name: str, found: str | None):
    model = catalogue.find_model(base_url, name)
    assert (model.id if model else None) == found


def test_names_mean_what_they_mean_to_the_package():
    from genai_prices.data_snapshot import get_snapshot

    providers = {provider.id: provider for provider in get_snapshot().providers}
    for kept in catalogue.providers():
        for model in kept.models:
            theirs = providers[kept.id].find_model(model.id)
            ours = next((one for one in kept.models if catalogue.matches(one.match, model.id.lower())), None)
            assert (ours.id if ours else None) == (theirs.id if theirs else None)


@pytest.mark.parametrize(
    ("name", "adaptive"),
    [
        ("claude-sonnet-5-5", True),
        ("claude-opus-4-6", True),
        ("claude-opus-5", True),
        ("claude-haiku-4-5-20251001", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-5-sonnet-20241022", False),
        ("claude-fable-5-1", True),
        ("qwen3", False),
    ],
)
def test_adaptive_thinking_is_told_from_the_name(name: str, adaptive: bool):
    assert thinks_adaptively(name) is adaptive


@pytest.mark.parametrize(
    ("asked", "efforts", "sent"),
    [
        ("high", ("low", "high"), "high"),
        ("max", ("low", "high"), "high"),
        ("medium", ("low", "high"), "low"),
        ("minimal", ("low", "high"), "low"),
        ("", ("low", "high"), ""),
        ("high", (), ""),
        ("frantic", ("low",), ""),
    ],
)
def test_an_effort_that_a_model_lacks_becomes_the_nearest_below(asked: str, efforts: tuple[str, ...], sent: str):
    assert nearest_effort(asked, efforts) == sent
