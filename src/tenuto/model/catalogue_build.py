"""Makes `catalogue.json` from the package genai-prices: `python -m tenuto.model.catalogue_build`.

Importing that package and its data takes 0.6 s, reading the snapshot under 3 ms. A test holds the two against each
other, so the snapshot cannot fall behind the installed package unnoticed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tenuto.model.catalogue import SNAPSHOT, CatalogueModel, CatalogueProvider

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

PROVIDERS = (
    "anthropic",
    "openai",
    "cerebras",
    "deepseek",
    "fireworks",
    "google",
    "groq",
    "meta",
    "minimax",
    "mistral",
    "moonshotai",
    "openrouter",
    "together",
    "x-ai",
    "zai",
    "zhipuai",
)


def build(now: datetime) -> list[CatalogueProvider]:
    """Return the snapshot as it holds at `now` (prices change on dates)."""
    from genai_prices.data_snapshot import get_snapshot

    found = {provider.id: provider for provider in get_snapshot().providers}
    return [
        CatalogueProvider(
            id=name,
            api_pattern=found[name].api_pattern,
            models=tuple(_model(model, now) for model in found[name].models),
        )
        for name in PROVIDERS
    ]


def _model(model: ModelInfo, now: datetime) -> CatalogueModel:
    prices = model.get_prices(now)
    return CatalogueModel(
        id=model.id,
        window=model.context_window,
        input=_price(getattr(prices, "input_mtok", None)),
        output=_price(getattr(prices, "output_mtok", None)),
        cache_read=_price(getattr(prices, "cache_read_mtok", None)),
        cache_write=_price(getattr(prices, "cache_write_mtok", None)),
        match=_clause(model.match),
    )


def _price(value: Any) -> float | None:
    """Return a price; of tiers the first, which holds for requests of usual length."""
    value = getattr(value, "base", value)
    return None if value is None else float(value)


def _clause(clause: Any) -> list[Any]:
    for attribute, name in (
        ("equals", "equals"),
        ("starts_with", "starts"),
        ("ends_with", "ends"),
        ("contains", "contains"),
        ("regex", "regex"),
    ):
        if hasattr(clause, attribute):
            return [name, getattr(clause, attribute)]
    if hasattr(clause, "or_"):
        return ["any", [_clause(inner) for inner in clause.or_]]
    return ["all", [_clause(inner) for inner in clause.and_]]


def main() -> None:
    """Write the snapshot beside this file."""
    data = msgspec.json.encode(build(datetime.now(UTC)))
    Path(SNAPSHOT).write_bytes(data.replace(b'},{"id"', b'},\n{"id"') + b"\n")


if __name__ == "__main__":
    main()
