"""`tenuto doctor`: runs the checks and prints what they found.

Exit code 0, or 1 where there is a problem, 2 for bad usage. Nothing leaves the machine without `--online`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from tenuto.cli.doctor import brought, files, guards, models, programs, screen
from tenuto.cli.doctor.rows import Row, State, Streams, Surroundings, count_states, print_rows
from tenuto.cli.parsing import Parser, add_directory, parse_here, say_json
from tenuto.config.sources import read_sources, settings_of
from tenuto.core.models import open_models
from tenuto.exit_codes import FAILED, OK
from tenuto.guard.terminal import write_text
from tenuto.model.endpoints import Endpoints
from tenuto.tui.terminal.colours import has_colour
from tenuto.version import __version__

Check = Callable[[Surroundings], Awaitable[list[Row]]]

CHECKS: tuple[Check, ...] = (
    programs.check_python,
    screen.check_terminal,
    screen.check_colours,
    screen.check_abilities,
    screen.check_clipboard,
    screen.check_tmux,
    screen.check_letters,
    models.check_model,
    models.check_keys,
    models.check_servers,
    models.check_local_servers,
    models.check_catalogue,
    files.check_settings,
    guards.check_sandbox,
    guards.check_approvals,
    guards.check_trust,
    brought.check_brought,
    files.check_home,
    files.check_disk,
    files.check_sessions,
    programs.check_ripgrep,
    programs.check_git,
    programs.check_editor,
    programs.check_documents,
)
"""All checks, in the order of their rows. One more check is one more function here."""
COLUMNS, WIDEST = 80, 110
"""Columns of a text that goes nowhere in particular, and of one on a wide terminal."""
PAINT: dict[State, tuple[str, str]] = {
    "ok": ("\x1b[32m", "\x1b[0m"),
    "note": ("\x1b[33m", "\x1b[0m"),
    "problem": ("\x1b[31;1m", "\x1b[0m"),
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto doctor`."""
    parser = Parser(
        prog="tenuto doctor",
        description="Check what is here and what is not: terminal, keys, servers, model, settings, sandbox, files, "
        "programs. Exit code 1 where there is a problem. Only ports of this machine are asked, unless with --online.",
    )
    parser.add_argument("--online", action="store_true", help="ask each server that has a key for its models")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    add_directory(parser, "the directory to check for")
    return parser


def run_doctor(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto doctor`; returns the exit code."""
    asked = parse_here(build_parser(), arguments)
    if isinstance(asked, int):
        return asked
    parsed, cwd = asked
    streams = find_streams()
    rows = asyncio.run(examine(home, cwd, environ, streams, online=parsed.online))
    if parsed.json:
        say_json({"version": __version__, "rows": rows, "states": count_states(rows)})
    else:
        columns = min(streams.size[0], WIDEST) if streams.stdout and streams.size else COLUMNS
        painted = streams.stdout and has_colour(environ)
        write_text(print_rows(rows, columns, PAINT if painted else {}), painted=painted)
    return FAILED if count_states(rows)["problem"] else OK


def find_streams() -> Streams:
    """Return what this process has as its terminal."""
    is_terminal = [os.isatty(number) for number in range(3)]
    size = next((os.get_terminal_size(number) for number in range(3) if is_terminal[number]), None)
    known = (size.columns, size.lines) if size and all(size) else None
    return Streams(is_terminal[0], is_terminal[1], is_terminal[2], known, sys.stdout.encoding)


async def examine(
    home: Path, cwd: Path, environ: Mapping[str, str], streams: Streams, *, online: bool = False
) -> list[Row]:
    """Return the rows of all checks, in their order. A check that fails is a row."""
    sources = read_sources(home, cwd, environ)
    settings = settings_of(sources)
    registry = open_models(settings, home, environ)
    endpoints = Endpoints(settings, home, environ)
    place = Surroundings(home, cwd, environ, streams, sources, settings, endpoints, registry, online, time.time())
    try:
        return [row for check in CHECKS for row in await _run(check, place)]
    finally:
        await registry.close()


async def _run(check: Check, place: Surroundings) -> list[Row]:
    try:
        return await check(place)
    except Exception as error:  # noqa: BLE001 - whoever is ill is to be examined to the end
        name = getattr(check, "__name__", "").removeprefix("check_").replace("_", " ")
        return [Row(name, f"this check failed: {type(error).__name__}: {error}", "problem", "report it as a fault")]
