"""The room's own small files: JSON in `$TENUTO_HOME`, mode 0600, replaced as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from tenuto.private_files import make_directory, replace_file
from tenuto.text.writable import to_json

Value = TypeVar("Value")


def read_json(path: Path, kind: type[Value]) -> Value | None:
    """Return the file's content, `None` when it is missing, unreadable or something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def write_json(path: Path, value: object) -> None:
    """Replace the file in one step; mode 0600 under any umask, its folder 0700. Raises `OSError`."""
    make_directory(path.parent)
    replace_file(path, msgspec.json.format(to_json(value), indent=2) + b"\n")
