"""What providers say of their models, in the many words they have for it."""

from __future__ import annotations

from typing import Any

import msgspec

from tenuto.model import efforts
from tenuto.model.endpoint import ProviderKind
from tenuto.protocol.model import UNNAMED_OUTPUT, ModelFacts
from tenuto.text.json_access import as_count, as_dict, as_list, as_text


def complete(facts: ModelFacts, kind: ProviderKind) -> ModelFacts:
    """Return the facts with thinking and efforts as the name tells them; what the facts say already stays.

    The Anthropic wire asks for an output limit with each request, so one is assumed where nobody names it.
    """
    if kind == "anthropic" and facts.max_output_tokens is None:
        facts = msgspec.structs.replace(facts, max_output_tokens=UNNAMED_OUTPUT)
    row = efforts.find_levels(facts.name, kind)
    if row is None or not row.levels:
        return facts
    if facts.thinking or facts.efforts:
        # A list of levels has no word for "no thinking".
        off = ("none",) if "none" in row.levels and facts.efforts and kind == "anthropic" else ()
        return msgspec.structs.replace(facts, efforts=efforts.in_order((*off, *(facts.efforts or row.levels))))
    match row.way:
        case "adaptive" | "reasoning":
            return msgspec.structs.replace(facts, thinking=True, efforts=row.levels)
        case "effort":
            return msgspec.structs.replace(facts, efforts=row.levels)
        case "budget":
            return msgspec.structs.replace(facts, thinks_in_budget=True, efforts=row.levels)


WINDOW_KEYS = (
    "max_input_tokens",
    "loaded_context_length",
    "context_window",
    "context_length",
    "max_model_len",
    "max_context_length",
    "context_size",
    "n_ctx",
)
OUTPUT_KEYS = ("max_completion_tokens", "max_output_tokens", "max_output_length", "max_tokens")


def facts_from_list(provider: str, found: dict[str, Any]) -> list[ModelFacts]:
    """Return the models of a `/models` answer."""
    entries = as_list(found.get("data")) or as_list(found.get("models"))
    facts = [_facts(provider, as_dict(entry)) for entry in entries]
    return [item for item in facts if item is not None]


def _facts(provider: str, entry: dict[str, Any]) -> ModelFacts | None:
    name = as_text(entry.get("id")) or as_text(entry.get("name"))
    if not name or entry.get("lifecycle") == "retired" or entry.get("type") in {"embedding", "embeddings"}:
        return None
    places = (entry, as_dict(entry.get("top_provider")), as_dict(entry.get("meta")), as_dict(entry.get("limits")))
    window = _first_count(places, WINDOW_KEYS)
    output = _first_count(places, OUTPUT_KEYS)
    prices = as_dict(entry.get("pricing"))
    capabilities = as_dict(entry.get("capabilities"))
    parameters = as_list(entry.get("supported_parameters"))
    input_price = _per_million(prices.get("prompt"))
    output = output if output != window else None
    adaptive = as_dict(as_dict(as_dict(capabilities.get("thinking")).get("types")).get("adaptive"))
    return ModelFacts(
        provider=provider,
        name=name,
        context_window=window,
        max_output_tokens=output,
        images=_sees_images(entry, capabilities),
        thinking=bool(adaptive.get("supported")) or "reasoning" in parameters,
        efforts=_efforts(entry, capabilities),
        input_price=input_price,
        output_price=_per_million(prices.get("completion")),
        cache_read_price=_per_million(prices.get("input_cache_read")),
        cache_write_price=_per_million(prices.get("input_cache_write")),
        source="provider" if window else "default",
        output_source="provider" if output else "",
        price_source="provider" if input_price is not None else "",
    )


def _first_count(places: tuple[dict[str, Any], ...], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        for place in places:
            count = as_count(place.get(key))
            if count:
                return count
    return None


def _efforts(entry: dict[str, Any], capabilities: dict[str, Any]) -> tuple[str, ...]:
    """Return the levels that a list names: as a tree (Anthropic), or as a list of words or of objects (others)."""
    tree = as_dict(capabilities.get("effort"))
    if tree:
        return efforts.in_order([level for level, said in tree.items() if as_dict(said).get("supported")])
    reasoning = as_dict(entry.get("reasoning"))
    named = as_list(entry.get("supported_reasoning_levels")) or as_list(reasoning.get("supported_efforts"))
    return efforts.in_order([as_dict(level).get("effort") or level for level in named])


def _sees_images(entry: dict[str, Any], capabilities: dict[str, Any]) -> bool:
    """Whether images may be sent; yes unless the list says no."""
    stated = as_dict(capabilities.get("image_input")).get("supported")
    if isinstance(stated, bool):
        return stated
    modalities = as_list(as_dict(entry.get("architecture")).get("input_modalities"))
    return "image" in modalities if modalities else True


def _per_million(price: Any) -> float | None:
    """Return US dollars per million tokens from a price per token (OpenRouter); negative means "it depends"."""
    try:
        value = float(price)
    except (TypeError, ValueError):
        return None
    return round(value * 1_000_000, 6) if value >= 0 else None
