"""Options of commands that run many jobs: how many at once, where, and whether a table can be shown meanwhile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenuto.cli.arguments import MOST
from tenuto.cli.parsing import complain, read_number, read_one_of

if TYPE_CHECKING:
    from tenuto.engine.engine import Engine

ENGINES = ("processes", "ray")


def add_engine(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options; `what` is what runs, in the plural."""
    parser.add_argument(
        "--jobs", type=read_number(1, MOST), metavar="N", help=f"{what} at the same time; default and most: one a core"
    )
    parser.add_argument(
        "--engine",
        type=read_one_of(ENGINES),
        default="processes",
        metavar="{processes,ray}",
        help=f"where {what} run: on this machine, or on a Ray cluster",
    )


def make_engine(options: argparse.Namespace, environ: Mapping[str, str]) -> Engine:
    """Return where jobs run; says so where that is fewer at a time than was asked for. Raises `UsageError`."""
    if options.engine == "ray":
        from tenuto.engine.ray_engine import RayEngine

        engine = RayEngine(options.jobs)
    else:
        from tenuto.engine.engine import ProcessEngine

        engine = ProcessEngine(options.jobs, environ)
    if options.jobs and options.jobs > engine.jobs:
        complain(f"--jobs {options.jobs}: {engine.jobs} at the same time, one for each core")
    return engine


def can_move(environ: Mapping[str, str], *, to_errors: bool = False) -> bool:
    """Whether the output is a terminal on which a table can be painted over and over."""
    from tenuto.tui.first_paint.decide import IMMOVABLE, is_accessible

    is_terminal = sys.stderr.isatty() if to_errors else sys.stdout.isatty()
    return is_terminal and environ.get("TERM", "") not in IMMOVABLE and not is_accessible(environ)
