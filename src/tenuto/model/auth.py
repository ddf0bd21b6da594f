"""Keys that a user stored: `$TENUTO_HOME/auth.json`, mode 0600. The environment comes first."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tenuto.model.store import read_json

FILE = "auth.json"


def read_keys(home: Path) -> dict[str, str]:
    """Return the stored keys by provider. A file that others may read is closed to them."""
    path = home / FILE
    with contextlib.suppress(OSError):
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    return read_json(path, dict[str, str]) or {}
