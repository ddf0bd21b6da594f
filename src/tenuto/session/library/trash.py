"""Where deleted sessions lie: nothing is removed from disk by us, only moved aside, and it can come back (DESIGN 3)."""

from __future__ import annotations

import os
from pathlib import Path

from tenuto.session.errors import SessionError
from tenuto.session.files import make_directory
from tenuto.session.log.lock import SessionLock
from tenuto.session.log.log import LOG_NAME
from tenuto.session.paths import SESSIONS

BIN = "bin"


class SessionNotMoved(SessionError):  # noqa: N818 - named as the user is told
    """A session could not be moved to the bin or back."""


def bin_directory(home: Path) -> Path:
    """Return the folder of deleted sessions."""
    return home / BIN


def list_bin(home: Path) -> list[Path]:
    """Return the folders of deleted sessions, the last deleted first."""
    found = [path.parent for path in bin_directory(home).glob(f"*/*/{LOG_NAME}")]
    return sorted(found, key=_moved_at, reverse=True)


def move_to_bin(home: Path, directory: Path) -> Path:
    """Move a session aside and return where it lies now.

    Raises `SessionLocked` when it is open, `SessionNotMoved` when the disk refuses.
    """
    return _move(directory, bin_directory(home) / directory.parent.name / directory.name)


def take_from_bin(home: Path, directory: Path) -> Path:
    """Move a deleted session back to where it was and return that. Raises `SessionNotMoved`."""
    return _move(directory, home / SESSIONS / directory.parent.name / directory.name)


def _move(source: Path, target: Path) -> Path:
    if target.exists():
        raise SessionNotMoved(f"{target} exists already; move it away first")
    lock = SessionLock(source)
    lock.acquire()
    try:
        make_directory(target.parent)
        os.utime(source)  # the time at which it was moved
        source.rename(target)
    except OSError as error:
        raise SessionNotMoved(f"{source} cannot be moved: {error.strerror or error}") from error
    finally:
        lock.release()
    return target


def _moved_at(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except OSError:
        return 0.0
