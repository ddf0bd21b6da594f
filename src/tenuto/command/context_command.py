"""/context: what fills the model's window."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.compaction.budget import Budget
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the meter's own numbers: the same that the footer and the trigger use (R-024)."""
    del argument
    live = runtime.live
    size, budget = live.measure(), live.budget()
    mark = "~" if size.estimated else ""
    window = f"{budget.window:,}" if budget.known else f"{budget.window:,} (assumed; the model's window is not known)"
    share = f" ({size.tokens * 100 // budget.window} %)" if budget.known else ""
    if budget.known and size.tokens > budget.window:
        share = f" (over the window: {size.tokens * 100 // budget.window} %)"
    rows = [
        ("used", f"{mark}{size.tokens:,}{share}"),
        ("  system prompt", f"~{size.system:,}"),
        ("  tools", f"~{size.tools:,}"),
        ("  conversation", f"~{max(0, size.tokens - size.fixed - size.queued):,}"),
        ("  queued", f"~{size.queued:,}"),
        ("window", f"{window}, from {live.facts.source}"),
        ("compacts over", f"{budget.trigger:,}"),
        ("output budget", f"{budget.output_budget:,}"),
        ("reserve", f"{budget.reserve:,}{_raised(budget)}"),
        ("kept word for word", f"{budget.keep_recent:,}"),
        ("summary at most", f"{budget.max_summary:,}"),
        ("automatic", "on" if live.settings.compaction.enabled else "off (compaction.enabled = false)"),
    ]
    return [Say("\n".join(f"{name:<19} {value}" for name, value in rows))]


def _raised(budget: Budget) -> str:
    if budget.reserve_raised_from is None:
        return ""
    return f" (the configured {budget.reserve_raised_from:,} is too small for this model)"
