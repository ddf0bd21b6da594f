"""Windows and prices of known models, from a snapshot of genai-prices (see `catalogue_build.py`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tenuto.protocol.model import ModelFacts

SNAPSHOT = Path(__file__).with_name("catalogue.json")


class CatalogueModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One model: window in tokens, prices in US dollars per million tokens, and which names mean it."""

    id: str
    window: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    match: list[Any] = []


class CatalogueProvider(msgspec.Struct, frozen=True, kw_only=True):
    """One provider; `api_pattern` is a regular expression for its base URLs."""

    id: str
    api_pattern: str
    models: tuple[CatalogueModel, ...]


class _Unread(msgspec.Struct, frozen=True):
    """A provider whose models are still JSON: a start asks for one of sixteen, and all of them take 2 ms."""

    id: str
    api_pattern: str
    models: msgspec.Raw


@cache
def providers() -> tuple[CatalogueProvider, ...]:
    """Return the whole snapshot; empty when it cannot be read."""
    return tuple(_provider(unread.id) for unread in _unread())


@cache
def _unread() -> tuple[_Unread, ...]:
    try:
        return msgspec.json.decode(SNAPSHOT.read_bytes(), type=tuple[_Unread, ...])
    except (OSError, msgspec.DecodeError):
        return ()


@cache
def _provider(provider_id: str) -> CatalogueProvider:
    """Return one of the snapshot's providers with its models."""
    unread = next(found for found in _unread() if found.id == provider_id)
    try:
        models = msgspec.json.decode(unread.models, type=tuple[CatalogueModel, ...])
    except msgspec.DecodeError:
        models = ()
    return CatalogueProvider(id=unread.id, api_pattern=unread.api_pattern, models=models)


def find_provider(base_url: str) -> CatalogueProvider | None:
    """Return the provider that serves a base URL."""
    return next((_provider(found.id) for found in _unread() if re.match(found.api_pattern, base_url)), None)


def find_model(base_url: str, name: str) -> CatalogueModel | None:
    """Return what is known of a model of the provider at `base_url`."""
    provider = find_provider(base_url)
    if provider is None:
        return None
    lower = name.lower()
    exact = _by_id(provider.id).get(lower)
    return exact or next((model for model in provider.models if matches(model.match, lower)), None)


@cache
def _by_id(provider_id: str) -> dict[str, CatalogueModel]:
    """Return a provider's models by their names in lower case."""
    return {model.id.lower(): model for model in _provider(provider_id).models}


def complete(facts: ModelFacts, base_url: str) -> ModelFacts:
    """Return the facts with what the catalogue adds; what the facts say already stays."""
    model = find_model(base_url, facts.name)
    if model is None:
        return facts
    if facts.context_window is None and model.window is not None:
        facts = msgspec.structs.replace(facts, context_window=model.window, source="catalogue")
    if facts.input_price is None:
        facts = msgspec.structs.replace(
            facts,
            input_price=model.input,
            output_price=model.output,
            cache_read_price=model.cache_read,
            cache_write_price=model.cache_write,
        )
    return facts


def matches(clause: list[Any], name: str) -> bool:
    """Whether a clause of the snapshot covers a name in lower case."""
    match clause:
        case ["any", inner]:
            return any(matches(one, name) for one in inner)
        case ["all", inner]:
            return all(matches(one, name) for one in inner)
        case ["regex", pattern]:
            return re.search(pattern, name) is not None
        case [kind, str(text)]:
            text = text.lower()
            return {
                "equals": name == text,
                "starts": name.startswith(text),
                "ends": name.endswith(text),
                "contains": text in name,
            }.get(kind, False)
        case _:
            return False
