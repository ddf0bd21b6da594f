"""The advisory lock that keeps a session at one writer (R-066).

The system lets go of it when its owner dies, so a dead owner is taken over without asking. The file names the owner as
long as there is one: that is what counts where a file system keeps no locks, and for an owner on another host, whose
locks need not be seen here. On a file system of this machine they are seen: there a lock in hand proves that the owner
is gone, whatever the machine was called then (it was renamed, or is a container that was made again).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from tenuto.private_files import open_private, write_all
from tenuto.session.errors import Owner, SessionLocked
from tenuto.text.late import late
from tenuto.text.writable import clean_text, to_json

_LOCAL = frozenset(
    {"apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs"}
    | {"ufs", "xfs", "zfs"}
)
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = late(rb"\\([0-7]{3})")
_LISTED = late(rb".* on (.*) \(([^()]*)\)")
_PATIENCE = 5.0


def is_local(directory: Path) -> bool:
    """Say whether a directory is on a file system of this machine alone, as far as that can be known."""
    place = os.path.realpath(os.fsencode(directory))
    try:
        if sys.platform == "darwin":
            return "local" in _find(place, _mounts_of_darwin())
        return not _LOCAL.isdisjoint(_find(place, parse_mounts(_MOUNTS.read_bytes())))
    except OSError:
        return False


def _find(place: bytes, mounts: list[tuple[bytes, frozenset[str]]]) -> frozenset[str]:
    """Return what is known of the mount that holds a place: the deepest one, of several there the last."""
    best, found = -1, frozenset[str]()
    for point, facts in mounts:
        inside = place == point or place.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= best:
            best, found = len(point), facts
    return found


def parse_mounts(table: bytes) -> list[tuple[bytes, frozenset[str]]]:
    """Return mount points and kinds of file systems from the text of `/proc/self/mountinfo`."""
    mounts: list[tuple[bytes, frozenset[str]]] = []
    for line in table.split(b"\n"):
        before, separator, after = line.partition(b" - ")
        words = before.split(b" ")
        if separator and len(words) > 4:
            point = _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), words[4])
            mounts.append((point, frozenset([after.split(b" ")[0].decode("ascii", "replace")])))
    return mounts


def _mounts_of_darwin() -> list[tuple[bytes, frozenset[str]]]:
    import subprocess

    try:
        listed = subprocess.run(["/sbin/mount"], capture_output=True, check=False, timeout=_PATIENCE).stdout
    except subprocess.SubprocessError:
        return []
    return parse_listed_mounts(listed)


def parse_listed_mounts(text: bytes) -> list[tuple[bytes, frozenset[str]]]:
    """Return mount points and what stands in brackets behind them, from what `mount` prints on macOS."""
    found = [one for line in text.splitlines() if (one := _LISTED.fullmatch(line))]
    return [(one[1], frozenset(one[2].decode("ascii", "replace").split(", "))) for one in found]


LOCK_NAME = "lock"
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_OWNER_BYTES = 4096


class SessionLock:
    """Held from `acquire` to `release`."""

    _unkept: ClassVar[set[Path]] = set()
    """What this process has open where the system keeps no locks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = -1
        self.left_by: Owner | None = None
        """Who had the session on a machine of another name, and went without letting go."""

    def acquire(self, *, take_over: bool = False) -> None:
        """Take the lock and write down who has it.

        Raises `SessionLocked` when another process (or another session object) has it. An owner that is named and
        cannot be seen, because it is on another host, is believed to live unless a user said `take_over`. Where the
        file cannot be made the session goes on without a lock: saving it will say what is wrong.
        """
        try:
            descriptor = open_private(self._directory / LOCK_NAME, os.O_RDWR | os.O_CREAT)
        except OSError:
            return
        held = _lock(descriptor)
        owner = _read_owner(descriptor)
        if held == "elsewhere" or (not take_over and self._may_live(owner, is_locked=held == "here")):
            os.close(descriptor)
            raise SessionLocked(self._directory, owner, can_take_over=held != "elsewhere")
        if held == "nowhere":
            self._unkept.add(self._directory)
        self._descriptor = descriptor
        self.left_by = owner if owner.pid and owner.host != _host() else None
        _write_owner(descriptor)

    def _may_live(self, owner: Owner, *, is_locked: bool) -> bool:
        """Say whether the owner that the file names may still write; with the system's lock in hand none here does."""
        if not owner.pid:
            return False
        if owner.host != _host():
            return not (is_locked and is_local(self._directory))
        if is_locked:
            return False
        return self._directory in self._unkept if owner.pid == os.getpid() else _is_alive(owner.pid)

    def renew(self) -> None:
        """Take the lock of a folder that was made again under us; nobody else can have the log that lies in it."""
        self.release()
        with contextlib.suppress(SessionLocked):
            self.acquire()

    def release(self) -> None:
        """Let go of the lock. The file stays, since another process may be waiting on it."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)  # an owner that is named here has not let go
            os.close(self._descriptor)
            self._descriptor = -1
            self._unkept.discard(self._directory)


def lock_owner(directory: Path) -> SessionLocked | None:
    """Return why a session cannot be opened for writing now, `None` when it can."""
    if not (directory / LOCK_NAME).is_file():
        return None
    lock = SessionLock(directory)
    try:
        lock.acquire()
    except SessionLocked as locked:
        return locked
    lock.release()
    return None


def _lock(descriptor: int) -> Literal["here", "elsewhere", "nowhere"]:
    """Take the system's lock; say who has it now. Not every file system keeps locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _OWNER_BYTES, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return "elsewhere" if error.errno in _TAKEN else "nowhere"
    return "here"


def _host() -> str:
    return clean_text(os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", ""))


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # asking by a signal would end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _write_owner(descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, to_json(Owner(pid=os.getpid(), host=_host())))
    except OSError:
        return  # a full disk: the lock itself holds


def _read_owner(descriptor: int) -> Owner:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return msgspec.json.decode(os.read(descriptor, _OWNER_BYTES), type=Owner)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Owner()
