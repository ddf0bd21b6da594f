"""Pasted text that is really files: terminals paste the path of what is dropped on them. Pure."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif")
MAX_CHARACTERS = 8_000
MAX_IMAGES = 20
_WINDOWS = re.compile(r"([A-Za-z]):[\\/]")


def dropped_images(text: str) -> list[Path]:
    """Return the images that a pasted text names; empty when it is anything else than whole paths of images.

    Paths are absolute, or begin with `~/` or `file://`; quoted, escaped, or as they are, one or several.
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARACTERS or not text.lower().rstrip("'\"").endswith(SUFFIXES):
        return []
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    paths = [path for line in lines for path in _paths_of(line)]
    good = paths and len(paths) <= MAX_IMAGES and all(path.lower().endswith(SUFFIXES) for path in paths)
    found = [_local(path) for path in paths] if good else []
    return [path for path in found if path is not None] if None not in found else []


def _paths_of(line: str) -> list[str]:
    """Return the words of a line; a line that is one path with bare spaces is one word."""
    if _WINDOWS.match(line):
        return [line]
    bare = "\\" not in line and "'" not in line and '"' not in line
    whole = line.startswith(("/", "~/")) and not any(f"{suffix} " in line.lower() for suffix in SUFFIXES)
    if bare and whole:
        return [line]
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _local(path: str) -> Path | None:
    """Return the path on this machine, `None` for what is none."""
    if path.startswith("file://"):
        parts = urlsplit(path)
        return Path(unquote(parts.path)) if parts.netloc in ("", "localhost") else None
    if drive := _WINDOWS.match(path):
        return Path(f"/mnt/{drive[1].lower()}", *re.split(r"[\\/]", path[3:]))
    if path.startswith("~/"):
        return Path(path).expanduser()
    return Path(path) if path.startswith("/") else None
