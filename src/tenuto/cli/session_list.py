"""`tenuto sessions list`: one line a session, the last used first."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from tenuto.cli.parsing import Parser, complain, parse, say, say_json
from tenuto.cli.start import working_directory
from tenuto.session.catalog import SessionSummary, list_sessions


def run_list(words: tuple[str, ...], home: Path) -> int:
    """List the sessions that have all of the words; returns the exit code."""
    parser = Parser(prog="tenuto sessions list", description="The sessions on this machine, the last used first.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only sessions with all of these, in title or texts")
    parser.add_argument("--here", action="store_true", help="only those of the present directory")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    here = working_directory("") if parsed.here else None
    if isinstance(here, str):
        return complain(here)
    found = list_sessions(home, here)
    for summary in found:
        if matches(summary, parsed.words):
            if parsed.json:
                say_json(as_data(summary))
            else:
                say(as_line(summary))
    return 0


def matches(summary: SessionSummary, words: list[str]) -> bool:
    """Say whether a session has all of the words, whatever their case."""
    text = " ".join((summary.id, summary.cwd, summary.title, summary.first_text, summary.last_text)).lower()
    return all(word.lower() in text for word in words)


def as_line(summary: SessionSummary) -> str:
    """Return a session as one line."""
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.updated))
    text = summary.title or summary.first_text or "(nothing said)"
    return f"{summary.id}  {day}  {summary.cwd}  {summary.error or text}"


def as_data(summary: SessionSummary) -> dict[str, object]:
    """Return a session as plain data."""
    return {**msgspec.structs.asdict(summary), "directory": str(summary.directory)}
