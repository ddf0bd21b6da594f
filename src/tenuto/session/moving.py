"""A session whose project was renamed or moved goes on in the new directory (R-072)."""

from __future__ import annotations

from pathlib import Path

from tenuto.protocol.entry import MovedEntry
from tenuto.session.errors import SessionError
from tenuto.session.files import make_directory
from tenuto.session.place import folder_identity, project_directory
from tenuto.session.session import Session


def relocate(home: Path, directory: Path, cwd: Path) -> Path:
    """Write down that the session works in `cwd`, put its folder among that project's, and return where it lies.

    Raises `SessionError` when it cannot be opened for writing. A folder that cannot be moved stays; it is found there.
    """
    session = Session.open(directory)
    try:
        session.append(MovedEntry(cwd=str(cwd.absolute()), folder=folder_identity(cwd)))
        problem = session.unsaved
    finally:
        session.close()
    if problem is not None:
        raise SessionError(f"session {directory.name} cannot be moved: {problem.reason}")
    target = project_directory(home, cwd) / directory.name
    if target == directory or target.exists():
        return directory
    try:
        make_directory(target.parent)
        directory.rename(target)
    except OSError:
        return directory
    return target
