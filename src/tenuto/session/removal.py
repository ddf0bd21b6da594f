"""Taking away the folder of a session that this process made: file by file and by name, never as a tree.

What is not known by its name was put there by somebody else, and what lies under `outputs` or `blobs` is work: either
keeps the whole folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tenuto.session.files import is_temporary
from tenuto.session.index import INDEX_NAME
from tenuto.session.lock import LOCK_NAME
from tenuto.session.log import LOG_NAME
from tenuto.session.meta import META_NAME
from tenuto.session.store import BLOBS, OUTPUTS, PROCESSES, RUNNING

_FILES = frozenset({LOG_NAME, META_NAME, INDEX_NAME, LOCK_NAME})
_FOLDERS = frozenset({OUTPUTS, BLOBS, RUNNING, PROCESSES})


def remove_folder(directory: Path, copied: Iterable[str] = ()) -> bool:
    """Remove a session's folder if nothing but a session's own files is in it; return whether it is gone.

    `copied` names the blobs that another session has as well. Raises `OSError`; then, too, what is left is whole files.
    """
    files: list[Path] = []
    folders: list[Path] = []
    ours = {directory / BLOBS / name for name in copied}
    for path in directory.iterdir():
        if path.name in _FOLDERS and path.is_dir() and not path.is_symlink():
            inside = set(path.iterdir())
            if not inside <= ours:
                return False
            files += inside
            folders.append(path)
        elif (path.name in _FILES or is_temporary(path)) and path.is_file():
            files.append(path)
        else:
            return False
    for path in sorted(files, key=lambda path: path.name == LOG_NAME):  # the log last: without it the rest is nothing
        path.unlink()
    for path in (*folders, directory):
        path.rmdir()
    return True
