"""/context: what fills the model's window."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, ShowContext
from tenuto.core.context import report_context
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the meter's own numbers, by part: the same that the footer and the trigger use (R-024)."""
    del argument
    return [ShowContext(report_context(runtime.live))]
