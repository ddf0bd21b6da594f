"""Whose habits a model has, by its name at any address (finding B11)."""

from __future__ import annotations

import pytest

from tenuto.protocol.model import Family, ModelFacts, family_of

NAMES: tuple[tuple[Family, tuple[str, ...]], ...] = (
    (
        "claude",
        (
            "claude-opus-5-5",
            "claude-haiku-4-5-20251001",
            "anthropic/claude-sonnet-5.5",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "databricks-claude-sonnet-4",
            "Claude-Opus-5-5",
        ),
    ),
    (
        "gpt",
        (
            "gpt-6.1-sol",
            "openai/gpt-latest",
            "~openai/gpt-sol-latest",
            "gpt-5.3-codex",
            "codex-mini-latest",
            "o3",
            "o4-mini",
            "chatgpt-4o-latest",
            "ft:gpt-4.1:us::id",
            "openai.gpt-oss-120b-1:0",
            "gpt-oss:20b",
        ),
    ),
    ("gemini", ("gemini-3-pro", "google/gemini-3-flash:free", "models/gemini-2.5-pro")),
    (
        "other",
        (
            "",
            "tenuto",
            "qwen3:8b",
            "deepseek-r1",
            "gemma3:27b",
            "EleutherAI/gpt-neox-20b",
            "gpt-j-6b",
            "GPT-JT-Moderation-6B",
            "minigpt-4",
            "olmo-2",
            "kimi-k2",
        ),
    ),
)


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, names in NAMES for name in names])
def test_b11_the_name_tells_the_family(family: Family, name: str) -> None:
    assert family_of(ModelFacts(provider="any", name=name)) == family
