"""The sizes of a request's parts in words, for messages that name what is too big (R-005, R-006)."""

from __future__ import annotations

from tenuto.core.live import LiveSession


def describe_sizes(live: LiveSession) -> str:
    """Return one line: what is used of the window, and by what."""
    size, budget = live.measure(), live.budget()
    rest = max(0, size.tokens - size.fixed - size.queued)
    window = f"{budget.window:,}" if budget.known else f"an assumed {budget.window:,}"
    return (
        f"{size.tokens:,} of {window} tokens: system prompt {size.system:,}, tools {size.tools:,}, "
        f"conversation {rest:,}, queued {size.queued:,}"
    )
