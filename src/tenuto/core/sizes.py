"""The sizes of a request's parts in words, for messages that name what is too big (R-005, R-006)."""

from __future__ import annotations

from tenuto.core.live import LiveSession
from tenuto.core.prompt import instructions_in
from tenuto.protocol.message import SystemMessage
from tenuto.text.estimate import estimate_text


def describe_sizes(live: LiveSession, *, refused: bool = False) -> str:
    """Return one line: what is used of the window, and by what. `refused`: so much is more than the model takes."""
    size, budget = live.measure(), live.budget()
    rest = max(0, size.tokens - size.fixed - size.queued)
    window = f"{budget.window:,}" if budget.known else f"an assumed {budget.window:,}"
    rules = round(_instructions(live) * size.calibration)
    system = f"{size.system:,} ({rules:,} of it instruction files)" if rules else f"{size.system:,}"
    used = f"{size.tokens:,} tokens were refused" if refused else f"{size.tokens:,} of {window} tokens"
    return f"{used}: system prompt {system}, tools {size.tools:,}, conversation {rest:,}, queued {size.queued:,}"


def _instructions(live: LiveSession) -> int:
    view = live.session.get_llm_history()
    return estimate_text(instructions_in(view[0].text)) if view and isinstance(view[0], SystemMessage) else 0
