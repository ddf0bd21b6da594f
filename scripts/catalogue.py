"""Makes the packaged catalogue from the package genai-prices: `python -m scripts.catalogue`.

A test holds the two against each other, so the snapshot cannot fall behind the installed package unnoticed.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import msgspec
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice

from tenuto.model.catalogue.build import build
from tenuto.model.catalogue.snapshot import PACKAGED, pack


def installed() -> bytes:
    """Return the installed package's data as the project publishes it."""
    return msgspec.json.encode([published(provider) for provider in get_snapshot().providers])


def published(value: Any) -> Any:
    """Return an object of the package as its JSON: the trip back from what the package made of it."""
    if isinstance(value, ModelPrice):
        return {name: published(price) for name, price in vars(value).items() if price is not None}
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name.rstrip("_"): published(inner) for name, inner in named.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [published(inner) for inner in value]
    if isinstance(value, dict):
        return {str(name): published(inner) for name, inner in value.items()}
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date | time) else value if isinstance(value, str | int) else None


def main() -> None:
    """Write the snapshot."""
    now = datetime.now(UTC)
    PACKAGED.write_bytes(pack(build(installed(), now), int(now.timestamp())))


if __name__ == "__main__":
    main()
