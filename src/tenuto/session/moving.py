"""A session whose project was renamed or moved goes on in the new directory (R-072)."""

from __future__ import annotations

from pathlib import Path

from tenuto.private_files import make_directory
from tenuto.protocol.entry import MovedEntry, TitleEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.errors import SessionError
from tenuto.session.paths import folder_identity, project_directory
from tenuto.session.session import Session
from tenuto.text.writable import path_text


def note(directory: Path, entry: HistoryEvent) -> None:
    """Append `entry` to the log of a session, by way of opening it.

    Raises `SessionLocked` when it is open, `SessionError` when it cannot be read or the disk does not take it.
    """
    session = Session.open(directory)
    try:
        session.append(entry)
        problem = session.unsaved
    finally:
        session.close()
    if problem is not None:
        raise SessionError(f"session {directory.name} cannot be written to: {problem.reason}")


def retitle(directory: Path, title: str) -> None:
    """Name a session. Raises as `note` does."""
    note(directory, TitleEntry(title=title))


def relocate(home: Path, directory: Path, cwd: Path) -> Path:
    """Write down that the session works in `cwd`, put its folder among that project's, and return where it lies.

    Raises `SessionError` when it cannot be written to. A folder that cannot be moved stays; it is found there.
    """
    note(directory, MovedEntry(cwd=path_text(cwd.absolute()), folder=folder_identity(cwd)))
    target = project_directory(home, cwd) / directory.name
    if target == directory or target.exists():
        return directory
    try:
        make_directory(target.parent)
        directory.rename(target)
    except OSError:
        return directory
    return target
