"""What a model can do where no list says it: thinking and efforts, told from its name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from tenuto.model.endpoint import ProviderKind
from tenuto.protocol.model import ModelFacts

EFFORT_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
ANTHROPIC_EFFORTS = ("low", "medium", "high", "xhigh", "max")
OPENAI_EFFORTS = ("minimal", "low", "medium", "high")
_CLAUDE = re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_OPENAI_REASONING = re.compile(r"^(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*(?:-chat|-image|-realtime|-audio))")


def complete(facts: ModelFacts, kind: ProviderKind) -> ModelFacts:
    """Return the facts with thinking and efforts if the name tells them and nothing else did."""
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
