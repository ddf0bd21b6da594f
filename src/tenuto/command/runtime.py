"""A runtime that also understands slash commands: what every front-end holds."""

from __future__ import annotations

from tenuto.command.outcome import Choice, CommandOutcome
from tenuto.command.registry import run_command
from tenuto.core.runtime import Runtime


class CommandRuntime(Runtime):
    """The runtime with the commands, which `core/` itself may not know."""

    async def run_command(self, line: str) -> list[CommandOutcome]:
        """Run `/name argument`; what it asks of the front-end comes back as data."""
        return await run_command(self, line)

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        """Return what may stand behind `/name`, of which `typed` is there."""
        from tenuto.command.completing import argument_choices

        return await argument_choices(self, name, typed)
