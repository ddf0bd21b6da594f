"""/theme: the colours of the screen. Which themes there are, the screen knows."""

from __future__ import annotations

from tenuto.command.outcome import ChangeTheme, CommandOutcome
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the theme that is named; without a name, let the user look at all."""
    del runtime
    return [ChangeTheme(argument.strip())]
