"""From the data of the genai-prices project to a catalogue: the packaged snapshot and fetched ones alike. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, cast

import msgspec

from tenuto.model.catalogue.names import core, key
from tenuto.model.catalogue.snapshot import HOSTS, MAKERS, CatalogueError, CatalogueModel, CatalogueProvider
from tenuto.text.json_access import as_dict

NEEDED = ("anthropic", "openai")
"""Without these it is no catalogue."""
MAX_PATTERN = 300
_REPEATED_TWICE = re.compile(r"[+*}]\)[+*{]")
"""A repetition of a repetition, with which a pattern can take for ever."""

OUTPUT_LIMITS: tuple[tuple[str, int], ...] = (
    # platform.claude.com/docs/en/models/NAME/overview, “Max output”: opus-5, opus-4-6 and their neighbours.
    (r"claude-(?:opus|sonnet|haiku|fable)-5(?:-\d)?", 128_000),
    (r"claude-opus-4-[678]|claude-sonnet-4-6", 128_000),
    # docs.claude.com/en/docs/about-claude/models/overview, while these were current.
    (r"claude-(?:opus|sonnet|haiku)-4-5|claude-sonnet-4(?:-0)?|claude-4-sonnet|claude-3-7-sonnet", 64_000),
    (r"claude-opus-4(?:-[01])?|claude-4-opus", 32_000),
    (r"claude-3-5-haiku", 8_192),
    # developers.openai.com/api/docs/models/NAME, “max output tokens”; vercel.com/ai-gateway/models/gpt-6.1-sol.
    (r"gpt-(?:5|6)(?:-\d)?(?:-(?:codex|codex-max|codex-mini|mini|nano|sol|luna|terra|astra))?", 128_000),
    (r"gpt-5-\d-pro", 128_000),
    (r"o3|o4-mini", 100_000),
    (r"gpt-4o(?:-mini)?", 16_384),
    # ai.google.dev/gemini-api/docs/models/NAME, “Output token limit”: 65,536; Vertex names one less.
    (r"gemini-(?:2-5|3|3-\d)-(?:pro|flash|flash-lite)(?:-preview)?", 65_535),
    (r"gemini-(?:1-5-(?:pro|flash)|2-0-flash)", 8_192),
)
"""The longest answer of a model in tokens, by its core name with dashes: the project's data has no such number.

The first pattern that is the whole name counts. Families stand here whose makers state a number; no others.
"""
_LIMITS = tuple((re.compile(pattern), limit) for pattern, limit in OUTPUT_LIMITS)


class _Model(msgspec.Struct, frozen=True):
    id: str
    match: dict[str, Any]
    context_window: int | None = None
    prices: Any = None


class _Provider(msgspec.Struct, frozen=True):
    id: str
    api_pattern: str
    models: list[_Model]


def build(data: bytes, now: datetime) -> tuple[CatalogueProvider, ...]:
    """Return the catalogue as it holds at `now` (prices change on dates). Raises `CatalogueError`."""
    try:
        found = {provider.id: provider for provider in msgspec.json.decode(data, type=list[_Provider])}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogueError(f"it is not the data of genai-prices ({error})") from error
    kept = [found[name] for name in (*MAKERS, *HOSTS) if name in found and _pattern(found[name].api_pattern)]
    providers = tuple(
        CatalogueProvider(
            id=provider.id,
            api_pattern=provider.api_pattern,
            models=tuple(_model(model, now) for model in provider.models if model.id.isprintable()),
        )
        for provider in kept
    )
    for name in NEEDED:
        if not any(model.window for provider in providers if provider.id == name for model in provider.models):
            raise CatalogueError(f"it has no models of {name}")
    return providers


def max_output(name: str, window: int | None) -> int | None:
    """Return the longest answer of a model in tokens, where its maker states one that its window has room for."""
    text = key(core(name))
    found = next((limit for pattern, limit in _LIMITS if pattern.fullmatch(text)), None)
    return found if found is None or window is None or found < window else None


def _model(model: _Model, now: datetime) -> CatalogueModel:
    prices = _prices(model.prices, now)
    return CatalogueModel(
        id=model.id,
        window=model.context_window,
        max_output=max_output(model.id, model.context_window),
        input=_price(prices.get("input_mtok")),
        output=_price(prices.get("output_mtok")),
        cache_read=_price(prices.get("cache_read_mtok")),
        cache_write=_price(prices.get("cache_write_mtok")),
        match=_clause(model.match),
    )


def _prices(value: Any, now: datetime) -> Mapping[str, Any]:
    """Return the prices that hold at `now`: of several the last whose condition is met, else the first."""
    if not isinstance(value, list):
        return as_dict(value)
    offers = [as_dict(offer) for offer in cast("list[Any]", value)]
    holding = [offer for offer in offers if _holds(as_dict(offer.get("constraint")), now)]
    return as_dict((holding[-1:] or offers[:1] or [{}])[0].get("prices"))


def _holds(condition: Mapping[str, Any], now: datetime) -> bool:
    """Whether a condition is met: none is, one of another kind than a date or a time of the day is not."""
    if not condition:
        return True
    now = now.astimezone(UTC)
    try:
        if "start_date" in condition:
            return now.date() >= date.fromisoformat(condition["start_date"])
        start, end = (_utc(condition[name]) for name in ("start_time", "end_time"))
    except (KeyError, TypeError, ValueError):
        return False
    present = now.timetz()
    return present >= start or present < end if end < start else start <= present < end


def _utc(text: str) -> time:
    parsed = time.fromisoformat(text)
    if parsed.tzinfo is None:
        return parsed.replace(tzinfo=UTC)
    return datetime.combine(date(1970, 1, 1), parsed).astimezone(UTC).timetz()


def _price(value: Any) -> float | None:
    """Return a price; of tiers the first, which holds for requests of usual length."""
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("base")
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise CatalogueError(f"“{value}” is no price") from error


def _clause(clause: Any) -> list[Any]:
    """Return which names mean a model, in the words of `lookup.matches`; what is of no known kind means none."""
    for kind, value in as_dict(clause).items():
        match kind, value:
            case ("equals" | "contains", str()):
                return [kind, value]
            case ("starts_with" | "ends_with", str()):
                return [kind.removesuffix("_with"), value]
            case ("regex", str()) if _pattern(value):
                return [kind, value]
            case ("or" | "and", list()):
                inner = [_clause(one) for one in cast("list[Any]", value)]
                return ["any" if kind == "or" else "all", inner]
            case _:
                pass
    return []


def _pattern(text: str) -> bool:
    """Whether a pattern can be used: it is short, it compiles, and it repeats no repetition."""
    if len(text) > MAX_PATTERN or _REPEATED_TWICE.search(text):
        return False
    try:
        re.compile(text)
    except re.error:
        return False
    return True
