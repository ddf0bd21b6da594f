"""Where sessions lie and what they are called."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path

SESSIONS = "sessions"
_SLUG_LENGTH = 60


def project_directory(home: Path, cwd: Path) -> Path:
    """Return the folder of a project's sessions: a readable slug and 8 hex digits of its real path."""
    real = os.path.realpath(cwd)
    slug = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in real).strip("-")
    digest = zlib.crc32(os.fsencode(real))
    return home / SESSIONS / f"{slug[-_SLUG_LENGTH:].strip('-') or 'root'}-{digest:08x}"


def temporary_directory() -> Path:
    """Make and return a fresh folder for a session that is not to stay. Raises `OSError`."""
    import tempfile

    return Path(tempfile.mkdtemp(prefix="tenuto-"))


def folder_identity(cwd: Path) -> str:
    """Return what stays the same when a directory is renamed: device and inode. Empty where it is not there."""
    try:
        facts = cwd.stat()
    except OSError:
        return ""
    return f"{facts.st_dev:x}:{facts.st_ino:x}"


def new_session_id(now: float) -> str:
    """Return a fresh id: eight random hex digits, enough to name it by, then date and time (UTC)."""
    return f"{os.urandom(4).hex()}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}"
