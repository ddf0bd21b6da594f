"""Completion of slash commands, from the same table that `/help` shows. Pure."""

from __future__ import annotations

from tenuto.command.registry import COMMANDS, Command, find_command
from tenuto.tui.complete.fuzzy import rank
from tenuto.tui.machine.state import CompletionItem


def complete_command(query: str) -> tuple[CompletionItem, ...]:
    """Return the commands that fit what stands after the slash, best first; all of them for nothing."""
    entries = [(name, command) for command in COMMANDS for name in (command.name, *command.aliases)]
    if not query:
        return tuple(_item(command.name, command) for command in COMMANDS)
    prefixed = [entry for entry in entries if entry[0].startswith(query.lower())]
    # What is typed out is what is meant: `/mode` is not the beginning of `/model`.
    prefixed.sort(key=lambda entry: entry[0] != query.lower())
    others = [entry for entry in entries if entry not in prefixed]
    ranked = prefixed + [others[place] for place in rank(query, [name for name, _ in others], limit=len(others))]
    best: dict[str, CompletionItem] = {}
    for name, command in ranked:
        best.setdefault(command.name, _item(name, command))
    return tuple(best.values())


def ghost_hint(text: str, cursor: int) -> str:
    """Return what a command that has been typed out may be followed by; empty for anything else."""
    if not text.startswith("/") or not text.endswith(" ") or cursor != len(text):
        return ""
    command = find_command(text[1:].rstrip(" "))
    return command.argument_hint if command is not None else ""


def _item(name: str, command: Command) -> CompletionItem:
    hint = command.argument_hint
    runs = not hint or hint.startswith("[")
    detail = f"{command.description} · {hint}" if hint else command.description
    return CompletionItem(insert=f"/{name} ", label=f"/{name}", detail=detail, runs=runs)
