"""`tenuto sessions`: what is on disk."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tenuto.session.catalog import list_sessions


def run_sessions(arguments: tuple[str, ...], home: Path) -> int:
    """Run `sessions list`, `sessions export` or `sessions compact`; returns the exit code."""
    if arguments[:1] == ("export",):
        from tenuto.cli.session_export import run_export

        return run_export(arguments[1:], home)
    if arguments[:1] == ("compact",):
        from tenuto.cli.session_compact import run_compact

        return run_compact(arguments[1:], home)
    if arguments not in ((), ("list",)):
        print("tenuto: usage: tenuto sessions list | export ID | compact ID", file=sys.stderr)  # noqa: T201
        return 2
    for summary in list_sessions(home):
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.updated))
        text = summary.title or summary.first_text or "(nothing said)"
        print(f"{summary.id}  {day}  {summary.cwd}  {text}")  # noqa: T201
    return 0
