"""/help: what one can type."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.command.registry import COMMANDS
from tenuto.core.runtime import Runtime

HEAD_CELLS = 24
"""A longer command stands before its description without a column of its own."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all commands, or the one that is named."""
    del runtime
    shown = [entry for entry in COMMANDS if argument.lstrip("/") in ("", entry.name, *entry.aliases)]
    if not shown:
        return [Say(f"There is no command /{argument.lstrip('/')}; /help lists them", "warning")]
    rows = [(f"/{entry.name} {entry.argument_hint}".strip(), entry) for entry in shown]
    width = min(HEAD_CELLS, max(len(head) for head, _ in rows))
    lines = [f"{head:<{width}}  {entry.description}{_alias_note(entry.aliases)}" for head, entry in rows]
    if not argument:
        lines += [
            "",
            "@path names a file, !command runs a command here, !!command keeps its output from the model.",
            "What is sent while something runs is queued. /keys lists the keys, ? shows them.",
        ]
    return [Say("\n".join(lines))]


def _alias_note(aliases: tuple[str, ...]) -> str:
    return f" (also {', '.join('/' + alias for alias in aliases)})" if aliases else ""
