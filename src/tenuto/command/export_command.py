"""/export: this session as a file for other eyes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.sanitize import sanitize_line
from tenuto.session.errors import SessionError
from tenuto.session.exporters.export import Export, Wish
from tenuto.session.exporters.target import FORMATS
from tenuto.session.files import make_directory
from tenuto.text.figures import format_bytes

EXPORTS = "exports"
"""The folder in Tenuto's home for what was given no place: in a working directory it would soon be committed."""
_FLAGS = ("--force", "--active-path")


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Write the session as it is now; the conversation may go on meanwhile. The file is never replaced unasked."""
    wish = parse_wish(argument)
    session = runtime.live.session
    export, cwd = Export.of_session(session), session.cwd
    try:
        if not wish.output:
            wish = msgspec.structs.replace(wish, output=_own_folder(runtime.home))
        done = await asyncio.to_thread(export.write, wish, cwd)
    except SessionError as error:
        raise UsageError(sanitize_line(str(error))) from error
    return [Say(f"Exported to {sanitize_line(str(done.path))} ({format_bytes(done.size)}).")]


def _own_folder(home: Path) -> str:
    """Return the folder for exports, made if it is not there. Raises `UsageError`."""
    folder = home.absolute() / EXPORTS
    try:
        make_directory(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot make {folder}: {reason}; name a file: /export PATH") from error
    return f"{folder}{os.sep}"


def parse_wish(argument: str) -> Wish:
    """Read `[--force] [--active-path] [html|md|jsonl] [PATH]`; the path is the rest as it stands, spaces included.

    Raises `UsageError` for a flag that there is none of.
    """
    flags: set[str] = set()
    form = ""
    rest = argument.strip()
    while rest:
        word, _, behind = rest.partition(" ")
        if word in _FLAGS:
            flags.add(word)
        elif word in FORMATS and not form:
            form = word
        elif word.startswith("--"):
            raise UsageError(f"/export knows no {word}; there are {' and '.join(_FLAGS)}")
        else:
            break
        rest = behind.lstrip()
    for flag in _FLAGS:
        if rest.endswith(f" {flag}"):
            flags.add(flag)
            rest = rest.removesuffix(flag).rstrip()
    quoted = len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "\"'"
    return Wish(
        output=rest[1:-1] if quoted else rest,
        format=form,
        force="--force" in flags,
        active_path="--active-path" in flags,
    )
