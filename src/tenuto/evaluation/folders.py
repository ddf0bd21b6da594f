"""The folder that a session is played in: its own, in the temporary directory, and held by whoever uses it.

What a kill has left there is held by nobody; that is how the next run knows it, and takes it away.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

from tenuto.private_files import make_new_directory, write_new

PREFIX = "tenuto-eval-"
_NAME = re.compile(rf"{PREFIX}\d{{9}}")
_MARK = "held"
"""The file that says that a folder was held once."""
_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def new_token() -> str:
    """Return nine digits that no other session has: the model is sent them in a path, and counts any nine alike."""
    return f"{SystemRandom().randrange(10**9):09}"


def folder_of(token: str) -> Path:
    """Return the folder on this machine that the session with a token is played in."""
    return Path(tempfile.gettempdir(), f"{PREFIX}{token}")


@contextmanager
def played_in(token: str) -> Generator[Path]:
    """Make the folder of a session, hold it meanwhile, and remove it. Raises `OSError`."""
    folder = folder_of(token)
    descriptor = _make_held(folder)
    try:
        write_new(folder / _MARK, b"")
        yield folder
    finally:
        os.close(descriptor)
        remove_folder(folder)


@contextmanager
def held(folder: Path) -> Generator[None]:
    """Hold a folder, beside others that do: who made it may end earlier. Raises `OSError`."""
    descriptor = _hold(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove a folder; of one that cannot be removed yet the next run knows that it is abandoned."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        if folder.is_dir():
            (folder / _MARK).touch()


def remove_abandoned() -> None:
    """Remove the user's folders that nobody holds any more; what cannot be removed stays.

    One without the mark was not made here, or its maker was killed before it wrote it: it goes only if it is empty.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, _OPENED)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid != os.geteuid() or not _is_at(folder, descriptor):
                    continue
                if (folder / _MARK).exists():
                    remove_folder(folder)
                elif _NAME.fullmatch(folder.name):
                    folder.rmdir()
            finally:
                os.close(descriptor)


def _make_held(folder: Path) -> int:
    """Make a folder and hold it: once more where `remove_abandoned` of another run came between the two."""
    while True:
        with suppress(FileNotFoundError):
            make_new_directory(folder)
            descriptor = _hold(folder)
            if _is_at(folder, descriptor):
                return descriptor
            os.close(descriptor)


def _hold(folder: Path) -> int:
    descriptor = os.open(folder, _OPENED)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(folder: Path, descriptor: int) -> bool:
    """Say whether what is open is still what stands there: it may have been removed before it was locked."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
