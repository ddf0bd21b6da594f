"""The ways of making a view smaller, and what for, in words for a user."""

from __future__ import annotations

RUNG_WORDS = {
    "hide": "old results hidden",
    "remote": "by the provider",
    "same_prefix": "summarised in place",
    "serialised": "summarised from a transcript",
    "truncate": "large results shortened",
    "images": "images left out",
    "prepared": "summarised ahead of time",
    "digest": "condensed without a model",
    "branch": "notes on a part that was left",
}

REASON_WORDS = {
    "threshold": "the context was nearly full",
    "overflow": "the context was over full",
    "manual": "manual",
    "model_switch": "for the other model",
    "idle": "ahead of time",
    "branch": "for a part that was left",
}
"""By the reason of a compaction (`protocol/operation.py`), when it is over."""
RUNNING_REASON_WORDS = {
    **REASON_WORDS,
    "threshold": "the context is nearly full",
    "overflow": "the request was too long",
}
"""The same while it runs."""


def describe_rung(rung: str, extension: str = "") -> str:
    """Return what made a compaction, in words; a strategy of somebody else keeps its name."""
    if rung == "extension":
        return f"summary by the extension {extension}".rstrip()
    return RUNG_WORDS.get(rung.replace(" ", "_"), rung)
