"""/exit: leave; the session stays."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Leave
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Leave the program."""
    del runtime, argument
    return [Leave()]
