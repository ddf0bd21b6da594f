"""Private files and directories: 0600 and 0700 whatever the umask (R-075)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_TEMPORARY = ".new"
_OTHERS_MAY_WRITE = 0o022
FOREIGN = "belongs to another user"


def make_directory(path: Path) -> None:
    """Create the directory and every missing parent with mode 0700. An existing one is left as it is.

    Raises `OSError`.
    """
    if path.is_dir():
        return
    make_directory(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    path.chmod(0o700)


def make_new_directory(path: Path) -> None:
    """Create a directory that must not be there yet, and its missing parents. Raises `OSError`."""
    make_directory(path.parent)
    path.mkdir(mode=0o700)
    path.chmod(0o700)


def open_private(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file with `flags` and make its mode `mode`; return the descriptor. Raises `OSError`."""
    descriptor = os.open(path, flags | _CLOEXEC | _BINARY, mode)
    with contextlib.suppress(OSError):  # a file system without modes is no reason to lose a session
        if os.fstat(descriptor).st_mode & 0o777 != mode:
            os.fchmod(descriptor, mode)
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, however many calls it takes. Raises `OSError`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_new(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create a file that must not exist yet. A half-written one is removed. Raises `OSError`."""
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(descriptor, data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` in the place of the file in one atomic step. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(3).hex()}{_TEMPORARY}")
    write_new(temporary, data, mode)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def is_temporary(path: Path) -> bool:
    """Say whether this is what `replace_file` leaves behind when its process is killed."""
    return path.name.startswith(".") and path.name.endswith(_TEMPORARY)


def remove_temporaries(directory: Path) -> None:
    """Remove what `replace_file` left in a directory when its process was killed; a disk that fails keeps it."""
    with contextlib.suppress(OSError):
        for path in list(directory.glob(f".*{_TEMPORARY}")):
            path.unlink()


@contextlib.contextmanager
def locked(directory: Path) -> Generator[None]:
    """Keep other processes that ask for the same out of a directory meanwhile. Raises `OSError`."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def doubt_file(file: Path) -> str:
    """Return why somebody else may have written a file or directory, empty where only we and root can.

    Raises `OSError`.
    """
    own = getattr(os, "geteuid", None)
    if own is None:
        return ""
    facts = file.stat()
    if facts.st_uid not in (own(), 0):
        return FOREIGN
    return "can be written by others" if facts.st_mode & _OTHERS_MAY_WRITE else ""


def doubt_home(home: Path) -> str:
    """Return a line on a home of Tenuto's in which others of this machine can write, empty where only the user can.

    Logs, keys and decisions lie in it: whoever else can write there speaks for the user (S23).
    """
    try:
        doubt = doubt_file(home)
    except OSError:
        return ""
    if doubt == FOREIGN:
        return f"{home} belongs to another user, who can read and change your sessions, settings and approvals there"
    return f"{home} can be written by other users of this machine; chmod 700 {home} keeps it yours" if doubt else ""
