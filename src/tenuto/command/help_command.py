"""/help: what one can type."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.command.registry import COMMANDS
from tenuto.core.runtime import Runtime
from tenuto.text.nearest import did_you_mean

HEAD_CELLS = 24
"""Behind a longer command its description stands in the next row."""
WAYS = (
    ("@path", "names a file"),
    ("!command", "runs a command here, and the model sees its output"),
    ("!!command", "the same, kept from the model"),
    ("?, /keys", "the keys"),
)
"""What else can be typed."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all commands, or the one that is named."""
    del runtime
    shown = [entry for entry in COMMANDS if argument.lstrip("/") in ("", entry.name, *entry.aliases)]
    if not shown:
        word = argument.lstrip("/")
        hint = did_you_mean(word, [entry.name for entry in COMMANDS], "/{}") or "; /help lists them"
        return [Say(f"There is no command /{word}{hint}", "warning")]
    rows = [(f"/{entry.name} {entry.argument_hint}".strip(), entry) for entry in shown]
    width = min(HEAD_CELLS, max(len(head) for head, _ in rows))
    lines = [_row(head, f"{entry.description}{_alias_note(entry.aliases)}", width) for head, entry in rows]
    if not argument:
        lines += ["", *(_row(head, text, width) for head, text in WAYS)]
        lines += ["", "What is sent while something runs is queued."]
    return [Say("\n".join(lines))]


def _row(head: str, text: str, width: int) -> str:
    """Return what can be typed and what it does, that in a column of its own."""
    return f"{head:<{width}}  {text}" if len(head) <= width else f"{head}\n{'':{width}}  {text}"


def _alias_note(aliases: tuple[str, ...]) -> str:
    return f" (also {', '.join('/' + alias for alias in aliases)})" if aliases else ""
