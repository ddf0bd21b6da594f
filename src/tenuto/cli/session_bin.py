"""`tenuto sessions delete` and `restore`: to the bin and back. Nothing else ever removes a session."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tenuto.cli.parsing import FAILED, Parser, complain, find_directory, parse, say
from tenuto.cli.session_list import as_line
from tenuto.session.catalog import summarise_session
from tenuto.session.errors import SessionError
from tenuto.session.log import LOG_NAME
from tenuto.session.rejoining import Way, rejoin
from tenuto.session.trash import bin_directory, list_bin, move_to_bin, take_from_bin


def run_delete(words: tuple[str, ...], home: Path) -> int:
    """Move sessions to the bin, after listing them; returns the exit code."""
    parser = Parser(
        prog="tenuto sessions delete",
        description=f"Move sessions to the bin ({bin_directory(home)}), from where “restore” brings them back. "
        "They are listed first. To free the disk, remove their folders there yourself.",
    )
    parser.add_argument("ids", nargs="+", metavar="ID", help="a session, or the beginning of its id")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    found = [find_directory(home, name) for name in parsed.ids]
    directories = [one for one in found if isinstance(one, Path)]
    if len(directories) < len(found):
        return next(one for one in found if isinstance(one, int))
    for directory in directories:
        say(_describe(directory))
    if not parsed.yes and not _agreed(f"Move {len(directories)} to the bin?"):
        return complain("nothing was moved; --yes does it without asking", FAILED)
    return _move(directories, home)


def _move(directories: Sequence[Path], home: Path) -> int:
    code = 0
    for directory in dict.fromkeys(directories):
        try:
            target = move_to_bin(home, directory)
        except SessionError as error:
            code = complain(str(error), FAILED)
        else:
            say(f"Moved {directory.name} to {target}; tenuto sessions restore {directory.name[:8]} restores it")
    return code


def run_restore(words: tuple[str, ...], home: Path) -> int:
    """Take a session out of the bin, or list what is in it; returns the exit code."""
    parser = Parser(
        prog="tenuto sessions restore",
        description="Restore a session from the bin, or from the copy of one that could not be saved in its "
        "place; without ID, list the bin.",
    )
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="a deleted session, or the path of a copy")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    if parsed.id.endswith(f"/{LOG_NAME}"):
        return _rejoin(home, Path(parsed.id))
    deleted = list_bin(home)
    if not parsed.id:
        for directory in deleted:
            say(_describe(directory))
        return 0
    found = [directory for directory in deleted if directory.name.startswith(parsed.id)]
    if len(found) != 1:
        what = f"{parsed.id} fits {len(found)} sessions" if found else f"there is no session {parsed.id} in the bin"
        return complain(f"{what}; tenuto sessions restore lists them")
    try:
        target = take_from_bin(home, found[0])
    except SessionError as error:
        return complain(str(error), FAILED)
    say(f"{target.name} is back")
    return 0


_WAYS: dict[Way, str] = {
    "made": "is back",
    "joined": "has the lines of the copy now, behind its own",
    "there": "has all lines of the copy already",
    "apart": "is made of the copy: the session was continued meanwhile, and stays as it is",
}


def _rejoin(home: Path, copy: Path) -> int:
    try:
        done = rejoin(home, copy)
    except SessionError as error:
        return complain(str(error), FAILED)
    except OSError as error:
        return complain(f"{copy} cannot be brought back: {error.strerror or error}", FAILED)
    say(f"{done.directory.name} {_WAYS[done.way]}")
    return 0


def _describe(directory: Path) -> str:
    summary = summarise_session(directory)
    return as_line(summary) if summary is not None else f"{directory.name}  (nothing said)"


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except (EOFError, KeyboardInterrupt):
        return False
