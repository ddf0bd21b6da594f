"""`tenuto sessions repair`: what a log has, read anew, and what of it is damaged. The log itself is never rewritten."""

from __future__ import annotations

from pathlib import Path

from tenuto.cli.parsing import FAILED, Parser, complain, find_directory, parse, say
from tenuto.session.errors import SessionError
from tenuto.session.index import INDEX_NAME
from tenuto.session.meta import META_NAME
from tenuto.session.session import Session
from tenuto.text.figures import plural


def run_repair(words: tuple[str, ...], home: Path) -> int:
    """Make a session's metadata and index anew and say what is damaged in its log; returns the exit code."""
    parser = Parser(
        prog="tenuto sessions repair",
        description="Read a log again: rebuild the index and metadata, close what a crash left open, report damage.",
    )
    parser.add_argument("session", help="its id, or how the id begins")
    parser.add_argument(
        "--take-over", action="store_true", help="although a process on another host has it, which is gone for certain"
    )
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    directory = find_directory(home, parsed.session)
    if isinstance(directory, int):
        return directory
    try:
        return _repair(directory, take_over=parsed.take_over)
    except (SessionError, OSError) as error:
        return complain(str(error), FAILED)


def _repair(directory: Path, *, take_over: bool) -> int:
    first = Session.open(
        directory, take_over=take_over
    )  # takes the lock: nobody else writes while what they keep up is taken away
    first.flush_held_usage()
    first.close()
    for name in (META_NAME, INDEX_NAME):
        (directory / name).unlink(missing_ok=True)
    session = Session.open(directory)
    count = sum(1 for _ in session.entries())
    session.close()
    if session.unsaved is not None:
        return complain(f"what was repaired could not be saved: {session.unsaved.reason}", FAILED)
    for damage in session.damage:
        say(str(damage))
    bad = plural(len(session.damage), "damaged line")
    found = f"{bad}; what is good in them is kept" if session.damage else "whole"
    say(f"session {session.id}: {plural(count, 'entry')}, {found}")
    return 0
