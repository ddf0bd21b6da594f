"""How hard a model can be asked to think: one table of which models have which levels. Pure.

What a provider's list says goes before the table. A model that neither knows is sent what the user asks for: its
server decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from tenuto.model.endpoint import ProviderKind
from tenuto.text.matching import did_you_mean

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
"""All words for an effort, the weakest first."""
Way = Literal["adaptive", "effort", "budget", "reasoning"]
"""How a model is asked: thinking as it likes and an effort; the effort alone; tokens for thinking; OpenAI's field."""


class Levels(msgspec.Struct, frozen=True):
    """The models whose names begin with `pattern`: how they are asked, and for what. No levels: they cannot be."""

    pattern: str
    way: Way
    levels: tuple[str, ...]


_LOW_TO_HIGH = ("low", "medium", "high")
_LOW_TO_MAX = ("low", "medium", "high", "xhigh", "max")
CLAUDE = (
    Levels(r"claude-(?:fable|mythos)", "adaptive", _LOW_TO_MAX),
    Levels(r"claude-(?:opus|sonnet)-5[-.]5", "adaptive", _LOW_TO_MAX),
    Levels(r"claude-[a-z]+-(?:[5-9]|\d\d)(?!\d)", "adaptive", ("none", *_LOW_TO_MAX)),
    Levels(r"claude-[a-z]+-4[-.][7-9]", "adaptive", ("none", *_LOW_TO_MAX)),
    Levels(r"claude-[a-z]+-4[-.]6", "adaptive", ("none", "low", "medium", "high", "max")),
    Levels(r"claude-opus-4[-.]5", "effort", _LOW_TO_HIGH),
    Levels(r"claude-[a-z]+-4|claude-3[-.]7", "budget", ("none", *_LOW_TO_HIGH)),
    Levels(r"claude-(?:[23]|instant)", "effort", ()),
)
"""Since Opus 5.5 and Sonnet 5.5 thinking cannot be turned off; Haiku 5.5 can."""
GPT = (
    Levels(r"(?:chat)?gpt-?[\d.]+(?:o|-mini|-nano)?-(?:chat|image|realtime|audio|transcribe|tts)", "reasoning", ()),
    Levels(r"(?:chat)?gpt-?[34]", "reasoning", ()),
    Levels(r"gpt-5-pro", "reasoning", ("high",)),
    Levels(r"gpt-5\.[2-5]-pro", "reasoning", ("medium", "high", "xhigh")),
    Levels(r"gpt-5(?:\.1)?-codex(?!-max)|codex|o[134](?![a-z\d])|gpt-oss", "reasoning", _LOW_TO_HIGH),
    Levels(r"gpt-5\.[1-5]-codex", "reasoning", (*_LOW_TO_HIGH, "xhigh")),
    Levels(r"gpt-5(?![.\d])", "reasoning", ("minimal", *_LOW_TO_HIGH)),
    Levels(r"gpt-5\.1(?!\d)", "reasoning", ("none", *_LOW_TO_HIGH)),
    Levels(r"gpt-5\.[2-5](?!\d)", "reasoning", ("none", *_LOW_TO_HIGH, "xhigh")),
    Levels(r"gpt-5\.\d|gpt-6(?![.\d])", "reasoning", ("none", *_LOW_TO_MAX)),
    Levels(r"gpt-(?:[6-9]|\d\d)", "reasoning", _LOW_TO_MAX),
)
"""`ultra` is no level of the API: Codex makes several agents at `max` of it. A list that names it is believed."""
GEMINI = (
    Levels(r"gemini-3-pro", "reasoning", ("low", "high")),
    Levels(r"gemini-(?:[3-9]|\d\d)[\d.-]*-pro", "reasoning", _LOW_TO_HIGH),
    Levels(r"gemini-(?:[3-9]|\d\d)", "reasoning", ("minimal", *_LOW_TO_HIGH)),
    Levels(r"gemini-2[.-]5-pro", "reasoning", _LOW_TO_HIGH),
    Levels(r"gemini-2[.-]5", "reasoning", ("none", *_LOW_TO_HIGH)),
    Levels(r"gemini-[12]|gemma", "reasoning", ()),
)
BUDGETS = {"low": 4_096, "medium": 12_288, "high": 32_000}
"""Tokens for thinking, by level, for models that are told how many."""
MIN_BUDGET = 1_024


def find_levels(name: str, kind: ProviderKind) -> Levels | None:
    """Return the table's row for a model at a protocol, `None` where it has none.

    A gateway for all makers' models (their names have a slash) that speaks Chat Completions has levels of its own.
    """
    match kind:
        case "anthropic":
            rows = CLAUDE
        case "openai":
            rows = GPT
        case "openai-chat":
            rows = () if "/" in name else GPT
        case "gemini":
            rows = GEMINI
    short = name.lower().rpartition("/")[2]
    return next((row for row in rows if re.match(row.pattern, short)), None)


def thinking_budget(effort: str, max_tokens: int) -> int:
    """Return the tokens for thinking of an answer of at most `max_tokens`; half of it stays for what is said.

    0: no thinking is asked for, or there is no room for it.
    """
    budget = min(BUDGETS.get(effort, 0), max_tokens // 2)
    return budget if budget >= MIN_BUDGET else 0


def in_order(levels: Sequence[object]) -> tuple[str, ...]:
    """Return the words for an effort among some values, the weakest first."""
    return tuple(effort for effort in EFFORTS if effort in levels)


TAGS = frozenset(
    {"batch", "beta", "exacto", "extended", "fast", "flex", "floor", "free", "latest", "nitro", "online", "thinking"}
)
"""What gateways and Ollama put behind a colon, whatever the model."""


def odd_suffix(name: str) -> str:
    """Return what stands behind the last colon of a name if nothing tells that it belongs to it, else an empty text.

    Sizes and versions (`:8b`, `:0`) belong to a name, and so does everything in that of a tuned model (`ft:…`).
    """
    _, colon, suffix = name.rpartition(":")
    is_usual = not colon or suffix[:1].isdigit() or suffix.lower() in TAGS or name.startswith("ft:")
    return "" if is_usual else suffix


def explain_suffix(model_id: str, levels: Sequence[str]) -> str:
    """Return why a model with an odd suffix is not used, and what may have been meant."""
    model, _, suffix = model_id.rpartition(":")
    known = levels or EFFORTS
    meant = did_you_mean(suffix, known, f"{model}:{{}}")
    has = f"its efforts are {', '.join(levels)}" if levels else f"efforts are {', '.join(EFFORTS)}"
    return f"“{suffix}” behind {model} is no effort and no part of a model's name that a list has; {has}{meant}"


def explain_effort(model_id: str, effort: str, levels: Sequence[str]) -> str:
    """Return that a model has no such level, and which it has."""
    if not levels:
        return f"{model_id} has no levels of effort, so none can be “{effort}”"
    return f"{model_id} has no effort “{effort}”; it has {', '.join(levels)}"
