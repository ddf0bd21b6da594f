"""What providers say of their models, in the many words they have for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model.endpoint import ProviderKind
from tenuto.model.json_access import as_count, as_dict, as_list, as_text
from tenuto.protocol.model import UNNAMED_OUTPUT, ModelFacts

EFFORT_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
ANTHROPIC_EFFORTS = ("low", "medium", "high", "xhigh", "max")
OPENAI_EFFORTS = ("minimal", "low", "medium", "high")
_CLAUDE = re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_OPENAI_REASONING = re.compile(r"^(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*(?:-chat|-image|-realtime|-audio))")


def complete(facts: ModelFacts, kind: ProviderKind) -> ModelFacts:
    """Return the facts with thinking and efforts if the name tells them and nothing else did.

    The Anthropic wire asks for an output limit with each request, so one is assumed where nobody names it.
    """
    if kind == "anthropic" and facts.max_output_tokens is None:
        facts = msgspec.structs.replace(facts, max_output_tokens=UNNAMED_OUTPUT)
    if facts.thinking or facts.efforts:
        return facts
    name = facts.name.rpartition("/")[2]
    if kind == "anthropic" and thinks_adaptively(name):
        return msgspec.structs.replace(facts, thinking=True, efforts=ANTHROPIC_EFFORTS)
    if kind == "openai" and _OPENAI_REASONING.match(name):
        return msgspec.structs.replace(facts, thinking=True, efforts=OPENAI_EFFORTS)
    return facts


def thinks_adaptively(name: str) -> bool:
    """Whether a Claude model takes `thinking: adaptive`: all from 4.6 on."""
    found = _CLAUDE.search(name)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 6)


def nearest_effort(asked: str, efforts: Sequence[str]) -> str:
    """Return the strongest effort that a model has and that is not above the asked one, else its weakest.

    Empty for a model without efforts, or when none is asked for.
    """
    if not asked or not efforts or asked not in EFFORT_ORDER:
        return ""
    order = [effort for effort in EFFORT_ORDER if effort in efforts]
    reachable = [effort for effort in order if EFFORT_ORDER.index(effort) <= EFFORT_ORDER.index(asked)]
    return (reachable or order or [""])[-1 if reachable else 0]


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
    efforts = _efforts(as_dict(capabilities.get("effort")))
    adaptive = as_dict(as_dict(as_dict(capabilities.get("thinking")).get("types")).get("adaptive"))
    return ModelFacts(
        provider=provider,
        name=name,
        context_window=window,
        max_output_tokens=output,
        images=_sees_images(entry, capabilities),
        thinking=bool(adaptive.get("supported")) or "reasoning" in parameters,
        efforts=efforts,
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


def _efforts(effort: dict[str, Any]) -> tuple[str, ...]:
    return tuple(level for level in EFFORT_ORDER if as_dict(effort.get(level)).get("supported"))


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
