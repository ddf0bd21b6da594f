"""A session whose project was renamed or moved goes on in the new directory (R-072)."""

from __future__ import annotations

from pathlib import Path

from tenuto.protocol.entry import MovedEntry
from tenuto.session.files import make_directory
from tenuto.session.offline_append import note
from tenuto.session.paths import folder_identity, project_directory
from tenuto.text.writable import path_text


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
