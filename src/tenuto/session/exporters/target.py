"""Where an export goes: its name, its format, and the private file that it becomes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from tenuto.private_files import open_private
from tenuto.session.errors import SessionError
from tenuto.session.exporters.source import format_day
from tenuto.session.view.state import SessionState

Format = Literal["html", "md", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SUFFIXES: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".markdown": "md",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_NAME_BYTES = 80
_BUFFER_BYTES = 1 << 18


class ExportRefused(SessionError):  # noqa: N818 (it is a user's request that does not fit)
    """An export was asked for that cannot be made as asked; the text says what to do instead."""


class ExportFailed(SessionError):  # noqa: N818
    """The file could not be written; the reason is the system's own."""


def default_name(state: SessionState, session_id: str, form: Format) -> str:
    """Return a file name from the title, or how the session began, and its day: `repair-the-roof-2026-01-31.html`."""
    words = "".join(letter if letter.isalnum() else " " for letter in state.title or state.first_text).split()
    name = "-".join(words).lower().encode("utf-8", "ignore")[:_NAME_BYTES].decode("utf-8", "ignore").strip("-")
    return (
        "-".join(part for part in (name or f"session-{session_id[:8]}", format_day(state.created)) if part) + f".{form}"
    )


def choose_format(wanted: str, given: str, cwd: Path) -> Format:
    """Return the format that was named, else the one of the file's name, else HTML. Raises `ExportRefused`."""
    for form in FORMATS:
        if form == wanted:
            return form
    if wanted:
        raise ExportRefused(f"“{wanted}” is not a format; there are {', '.join(FORMATS)}")
    suffix = Path(given).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix and not _find(given, cwd).is_dir():
        raise ExportRefused(f"{suffix} does not tell the format; end the name in .html, .md or .jsonl")
    return "html"


def choose_target(given: str, cwd: Path, name: str, session: Path) -> Path:
    """Return the file to write: `name` in `cwd`, or in the folder that was given, or the file that was given.

    Raises `ExportRefused` for a place inside the session's own folder: nothing may stand in the log's place.
    """
    target = _find(given, cwd)
    try:
        if target.is_dir() or given.endswith(("/", os.sep)):
            target /= name
        if not target.suffix:
            target = target.with_name(f"{target.name}{Path(name).suffix}")
        real = target.parent.resolve() / target.name
    except (ValueError, OSError) as error:
        raise ExportRefused(f"“{given}” cannot be the name of a file: {error}") from error
    if real.is_relative_to(session.resolve()):
        raise ExportRefused(f"{target} lies inside the session itself; name a file elsewhere")
    return target


def _find(given: str, cwd: Path) -> Path:
    try:
        return cwd / Path(given).expanduser()
    except RuntimeError as error:  # ~ of a user that is not there
        raise ExportRefused(f"“{given}” cannot be the name of a file: {error}") from error


def write_export(target: Path, chunks: Iterable[bytes], *, force: bool) -> int:
    """Write the chunks to a private file that is there as a whole or not at all; return its size in bytes.

    Raises `ExportRefused` when the file exists and `force` is not given, `ExportFailed` when it cannot be written.
    """
    if not force and os.path.lexists(target):
        raise _exists(target)
    temporary = target.with_name(f".tenuto-{os.urandom(6).hex()}")
    try:
        try:
            size = _write(temporary, chunks)
            _put(temporary, target, force=force)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
    except FileExistsError as error:
        raise _exists(target) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ExportFailed(f"cannot write {target}: {reason}") from error
    return size


def _exists(target: Path) -> ExportRefused:
    return ExportRefused(f"{target} exists already; add --force to replace it, or name another file")


def _write(path: Path, chunks: Iterable[bytes]) -> int:
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
        for chunk in chunks:
            file.write(chunk)
        return file.tell()


def _put(temporary: Path, target: Path, *, force: bool) -> None:
    """Give the finished file its name; without `force` never in the place of another one."""
    if not force:
        try:
            target.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(target):
                raise FileExistsError from None
        else:
            return
    temporary.replace(target)
