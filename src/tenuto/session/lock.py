"""The advisory lock that keeps a session at one writer (R-066).

The system lets go of it when its owner dies, so a dead owner is taken over without asking.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

import msgspec

from tenuto.session.errors import Owner, SessionLocked
from tenuto.session.files import open_private, write_all

LOCK_NAME = "lock"
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_OWNER_BYTES = 4096


class SessionLock:
    """Held from `acquire` to `release`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = -1

    def acquire(self) -> None:
        """Take the lock and write down who has it.

        Raises `SessionLocked` when another process (or another session object) has it. Where the file system knows
        no locks, or cannot be written to, the session goes on without one: saving it will say what is wrong.
        """
        try:
            descriptor = open_private(self._directory / LOCK_NAME, os.O_RDWR | os.O_CREAT)
        except OSError:
            return
        try:
            _lock(descriptor)
        except OSError as error:
            if error.errno in _TAKEN:
                owner = _read_owner(descriptor)
                os.close(descriptor)
                raise SessionLocked(self._directory, owner) from None
        self._descriptor = descriptor
        _write_owner(descriptor)

    def renew(self) -> None:
        """Take the lock of a folder that was made anew under us; nobody else can have the log that lies in it."""
        self.release()
        with contextlib.suppress(SessionLocked):
            self.acquire()

    def release(self) -> None:
        """Let go of the lock. The file stays, since another process may be waiting on it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _OWNER_BYTES, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_owner(descriptor: int) -> None:
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, msgspec.json.encode(Owner(pid=os.getpid(), host=host)))
    except OSError:
        return  # a full disk: the lock itself holds


def _read_owner(descriptor: int) -> Owner:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return msgspec.json.decode(os.read(descriptor, _OWNER_BYTES), type=Owner)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Owner()
