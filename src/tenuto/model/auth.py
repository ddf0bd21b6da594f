"""Keys that a person stored: `$TENUTO_HOME/auth.json`, mode 0600. The environment comes first."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tenuto.model.store import read_json, write_json

FILE = "auth.json"


def read_keys(home: Path) -> dict[str, str]:
    """Return the stored keys by provider. A file that others may read is closed to them."""
    path = home / FILE
    with contextlib.suppress(OSError):
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    return read_json(path, dict[str, str]) or {}


def save_key(home: Path, provider: str, key: str) -> None:
    """Store a provider's key; an empty one takes it away. Raises `OSError`."""
    keys = read_keys(home)
    if key:
        keys[provider] = key
    else:
        keys.pop(provider, None)
    write_json(home / FILE, keys)
