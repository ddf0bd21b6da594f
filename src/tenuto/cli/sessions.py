"""`tenuto sessions`: what is on disk, and what can be done with it without a front-end."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from tenuto.cli.parsing import complain

COMMANDS = {
    "list": "session_list:run_list",
    "show": "session_show:run_show",
    "stats": "session_stats:run_stats",
    "export": "session_export:run_export",
    "compact": "session_compact:run_compact",
    "delete": "session_bin:run_delete",
    "restore": "session_bin:run_restore",
    "repair": "session_repair:run_repair",
}
"""Each word's module and function; only the one that is asked for is imported."""


def run_sessions(arguments: tuple[str, ...], home: Path) -> int:
    """Run `tenuto sessions WORD …`; returns the exit code."""
    name, *rest = arguments or ("list",)
    if name == "import":  # the same as `tenuto import`
        from tenuto.cli.importing import run_import

        return run_import(tuple(rest), home, os.environ)
    target = COMMANDS.get(name)
    if target is None:
        return complain(f"usage: tenuto sessions {' | '.join((*COMMANDS, 'import'))}; each explains itself with --help")
    module, _, function = target.partition(":")
    run = getattr(importlib.import_module(f"tenuto.cli.{module}"), function)
    code: int = run(tuple(rest), home)
    return code
