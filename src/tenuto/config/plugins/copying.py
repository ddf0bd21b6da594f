"""Copying a folder of somebody else's: regular files only, bounded, and nothing from outside of it."""

from __future__ import annotations

import os
from pathlib import Path

from tenuto.config.plugins.installed import MAX_BYTES, MAX_FILES
from tenuto.config.plugins.manifest import PluginError
from tenuto.config.project import RefusedFileError, is_below, read_regular
from tenuto.private_files import make_new_directory, write_new

_NOT_COPIED = frozenset({".git", "__pycache__", "node_modules", ".venv"})
_DEEPEST = 30


def copy_folder(source: Path, target: Path, inside: Path) -> None:
    """Make `target` a copy of `source`. A link becomes what it leads to, which has to lie in `inside`.

    Raises `PluginError` for what cannot be taken, and `OSError` where it cannot be written.
    """
    _Copy(inside).folder(source, target, 0)


class _Copy:
    def __init__(self, inside: Path) -> None:
        self._inside = Path(os.path.realpath(inside))
        self._base = self._inside
        self._files = 0
        self._room = MAX_BYTES

    def folder(self, source: Path, target: Path, depth: int) -> None:
        """Copy one folder and what is below it."""
        if depth == 0:
            self._base = source
        if depth > _DEEPEST:
            raise PluginError(f"{self._shown(source)} is more than {_DEEPEST} folders deep, or leads round in a circle")
        real = os.path.realpath(source)
        if real != str(self._inside) and not is_below(real, (self._inside,)):
            raise PluginError(f"{self._shown(source)} leads out of the folder")
        make_new_directory(target)
        with os.scandir(source) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name in _NOT_COPIED:
                continue
            if entry.is_dir():
                self.folder(Path(entry.path), target / entry.name, depth + 1)
            else:
                self._file(Path(entry.path), target / entry.name)

    def _file(self, source: Path, target: Path) -> None:
        self._files += 1
        if self._files > MAX_FILES:
            raise PluginError(f"it has more than {MAX_FILES:,} files")
        try:
            data = read_regular(source, (self._inside,), limit=max(1, self._room))
        except RefusedFileError as error:
            if self._room < MAX_BYTES // 100 or "bytes" in str(error):
                raise PluginError(f"it has more than {MAX_BYTES:,} bytes") from None
            raise PluginError(f"{self._shown(source)}: {error}") from None
        except FileNotFoundError:
            raise PluginError(f"{self._shown(source)} leads to nothing") from None
        self._room -= len(data)
        write_new(target, data, 0o700 if os.access(source, os.X_OK) else 0o600)

    def _shown(self, path: Path) -> str:
        return os.path.relpath(path, self._base)
