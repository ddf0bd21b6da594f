"""The folder that a session is played in: its own, in the temporary directory, and held by whoever uses it.

What a kill has left there is held by nobody; that is how the next run knows it, and takes it away.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

from tenuto.private_files import make_new_directory, write_new

PREFIX = "tenuto-eval-"
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
    make_new_directory(folder)
    try:
        with held(folder):
            write_new(folder / _MARK, b"")  # from now on it can be taken for abandoned: not before it is held
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def held(folder: Path) -> Generator[None]:
    """Hold a folder, beside others that do: who made it may end earlier. Raises `OSError`."""
    descriptor = os.open(folder, _OPENED)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned() -> None:
    """Remove the user's folders that nobody holds any more; what cannot be removed stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, _OPENED)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid() and (folder / _MARK).exists():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
