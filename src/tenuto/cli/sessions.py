"""`tenuto sessions`: what is on disk, and what can be done with it without a front-end."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tenuto.cli.parsing import complain, say

HELP = ("-h", "--help")
IMPORT = "import"


class Command(NamedTuple):
    """A word's `module:function`, and what it does. Only the module of the one that is asked for is imported."""

    target: str
    does: str


COMMANDS = {
    "list": Command("session_commands:run_list", "list the sessions on this machine, the last used first"),
    "show": Command("session_commands:run_show", "show one session"),
    "stats": Command("session_commands:run_stats", "totals by project and by model"),
    "export": Command("session_commands:run_export", "save one session as HTML, Markdown or JSON lines"),
    "compact": Command("session_compact:run_compact", "compact a session that is not open"),
    "delete": Command("session_commands:run_delete", "move sessions to the bin"),
    "restore": Command("session_commands:run_restore", "restore a session from the bin"),
    "repair": Command("session_commands:run_repair", "report damage in a log, rebuild the index and metadata"),
}


def run_sessions(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto sessions COMMAND …`; returns the exit code."""
    name, *rest = arguments or ("list",)
    if name in HELP:
        return _explain()
    if name == IMPORT:
        from tenuto.cli.importing import run_import

        return run_import(tuple(rest), home, environ)
    command = COMMANDS.get(name)
    if command is None:
        return complain(f"usage: tenuto sessions {' | '.join((*COMMANDS, IMPORT))}; each explains itself with --help")
    module, _, function = command.target.partition(":")
    run = getattr(importlib.import_module(f"tenuto.cli.{module}"), function)
    code: int = run(tuple(rest), home)
    return code


def _explain() -> int:
    say("usage: tenuto sessions [COMMAND ...]")
    say("")
    say("Manage the sessions on disk. Without a command: list.")
    say("")
    for name, command in COMMANDS.items():
        say(f"  {name:8}  {command.does}")
    say(f"  {IMPORT:8}  import sessions of other agents: the same as tenuto import")
    say("")
    say("Details: tenuto sessions COMMAND --help")
    return 0
