"""`tenuto sessions export`: a session as a file, without a front-end."""

from __future__ import annotations

import argparse
from pathlib import Path

from tenuto.cli.output import write_bytes
from tenuto.cli.parsing import FAILED, Parser, complain, parse
from tenuto.cli.start import working_directory
from tenuto.guard.terminal import sanitize_line, write_text
from tenuto.session.errors import SessionAmbiguous, SessionError
from tenuto.session.exporters.export import Export, Wish
from tenuto.session.exporters.target import FORMATS, ExportRefused, choose_format
from tenuto.session.library.catalog import find_session
from tenuto.text.figures import format_bytes

_STANDARD_OUTPUT = "-"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto sessions export`."""
    parser = Parser(
        prog="tenuto sessions export",
        description="Write a session to a file that only you can read. Nothing in it is loaded from anywhere, and "
        "nothing of the conversation can run in it.",
    )
    parser.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    parser.add_argument("--format", choices=FORMATS, default="", help="else by the file's name, else html")
    parser.add_argument("--output", default="", metavar="PATH", help="a file, a folder, or “-” for standard output")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--active-path", action="store_true", help="with jsonl: without the branches that were left")
    return parser


def run_export(arguments: tuple[str, ...], home: Path) -> int:
    """Export one session; returns the exit code."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    wish = Wish(
        output=parsed.output,
        format=parsed.format,
        force=parsed.force,
        active_path=parsed.active_path,
    )
    try:
        export = _find(parsed.id, home)
        if wish.output == _STANDARD_OUTPUT:
            return _print(export, wish)
        here = working_directory("")
        if isinstance(here, str):
            return complain(here)
        done = export.write(wish, here)
    except (ExportRefused, SessionAmbiguous) as error:
        return complain(str(error))
    except SessionError as error:
        return complain(str(error), FAILED)
    write_text(f"{sanitize_line(str(done.path))} ({format_bytes(done.size)})")
    return 0


def _find(name: str, home: Path) -> Export:
    directory = find_session(home, name)
    if directory is None:
        raise ExportRefused(f"there is no session {name}; tenuto sessions list shows them")
    return Export.of_directory(directory)


def _print(export: Export, wish: Wish) -> int:
    form = choose_format(wish.format, "", Path())
    write_bytes(export.chunks(form, wish))
    return 0
