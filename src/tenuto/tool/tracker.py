"""What the model has seen of each file: a hash of the content, never a time stamp (R-090)."""

from __future__ import annotations

import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Mapping

from tenuto.protocol.message import FileUse

_KEPT_BYTES = 8_000_000
"""Compressed bytes of seen contents that are kept to show what changed."""
_KEPT_FILE_BYTES = 1_000_000


class FileTracker:
    """The newest use of each file by real path. `seen` adds to what the session knew when it was opened."""

    def __init__(self, known: Mapping[str, FileUse]) -> None:
        self._known = known
        self._own: dict[str, FileUse] = {}
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._kept = 0

    def digest(self, path: str) -> str:
        """Return the hex SHA-256 of the content that the model last saw; empty when it saw none."""
        use = self._own.get(path) or self._known.get(path)
        return use.sha256 if use is not None else ""

    def record(self, use: FileUse, data: bytes | None = None) -> FileUse:
        """Note a use, and the content if it is at hand, so that a later change can be shown. Returns the use."""
        self._own[use.path] = use
        self._forget(use.path)
        if data is not None and len(data) <= _KEPT_FILE_BYTES:
            packed = zlib.compress(data, 1)
            self._contents[use.path] = packed
            self._kept += len(packed)
            while self._kept > _KEPT_BYTES:
                self._forget(next(iter(self._contents)))
        return use

    def content(self, path: str) -> bytes | None:
        """Return the bytes that the model last saw of a file, if they are still kept."""
        packed = self._contents.get(path)
        return None if packed is None else zlib.decompress(packed)

    def _forget(self, path: str) -> None:
        packed = self._contents.pop(path, None)
        if packed is not None:
            self._kept -= len(packed)


def digest_of(data: bytes) -> str:
    """Return the hex SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()
