"""The index beside the log: what is known of its blocks, one a line, so that opening reads the end alone.

After the blocks that were written at one time comes the CRC-32 of the file so far. It can always be rebuilt: it is
believed up to the last such sum if that is right, and if the log has, where the last block ends, the bytes that it
ended with. Only the writer of a session writes it, by appending.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from tenuto.private_files import open_private, replace_file, write_all
from tenuto.session.log.history import Block, are_joined, kind_names

INDEX_NAME = "index.jsonl"
INDEX_VERSION = 1
CHECK_BYTES = 4096


class _Head(msgspec.Struct, frozen=True):
    """The first line: what the rest means."""

    version: int
    kinds: tuple[str, ...]


def log_check(file: BinaryIO, size: int) -> int:
    """Return the CRC-32 of the log's last bytes before `size`. Raises `OSError`."""
    start = max(0, size - CHECK_BYTES)
    file.seek(start)
    return zlib.crc32(file.read(size - start))


class StoredIndex(msgspec.Struct, frozen=True):
    """The blocks that the index knows of a log. With `sum`, that of the whole file, it can be appended to."""

    blocks: list[Block]
    sum: int | None = None


def read_index(directory: Path, log: BinaryIO) -> StoredIndex:
    """Return what the index knows of this log; no blocks where it cannot be used. Raises `OSError` of the log."""
    try:
        data = (directory / INDEX_NAME).read_bytes()
        stored = _decode(data)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return StoredIndex([])
    blocks = list(stored.blocks)
    length = log.seek(0, os.SEEK_END)
    while blocks and blocks[-1].end > length:
        blocks.pop()
    if not are_joined(blocks) or (blocks and log_check(log, blocks[-1].end) != blocks[-1].check):
        return StoredIndex([])
    return StoredIndex(blocks, stored.sum if len(blocks) == len(stored.blocks) else None)


def _decode(data: bytes) -> StoredIndex:
    """Return the blocks before the last sum. Raises `DecodeError`, `UnicodeDecodeError`."""
    end = data.rfind(b"\n") + 1
    start = data.rfind(b"\n", 0, end - 1) + 1
    while start and data[start : start + 1] == b"[":  # the sum of the last ones is missing
        end, start = start, data.rfind(b"\n", 0, start - 1) + 1
    head, _, body = data[:end].partition(b"\n")
    if msgspec.json.decode(head, type=_Head) != _head():
        return StoredIndex([])
    lines = msgspec.json.Decoder(Block | int).decode_lines(body)
    if not lines or lines[-1] != zlib.crc32(memoryview(data)[:start]):
        return StoredIndex([])
    blocks = [line for line in lines if isinstance(line, Block)]
    return StoredIndex(blocks, zlib.crc32(data) if end == len(data) else None)


def _head() -> _Head:
    return _Head(version=INDEX_VERSION, kinds=kind_names())


def remove_index(directory: Path) -> None:
    """Take away an index that does not fit its log. Raises `OSError`."""
    (directory / INDEX_NAME).unlink(missing_ok=True)


class IndexWriter:
    """Keeps the index up with a log that grows. A disk that fails only makes the next opening slower."""

    def __init__(self, directory: Path, stored: StoredIndex) -> None:
        """Go on behind what is in the file; without a sum the file is made anew."""
        self._path = directory / INDEX_NAME
        self._known = len(stored.blocks) if stored.sum is not None else 0
        self._sum = stored.sum or 0

    def save(self, blocks: Sequence[Block], log: Path) -> None:
        """Write the blocks that the index lacks; all of them must be in the log at `log`."""
        if self._known == len(blocks):
            return
        try:
            head = b"" if self._known else msgspec.json.encode(_head()) + b"\n"
            data = head + b"".join(msgspec.json.encode(block) + b"\n" for block in self._checked(blocks, log))
            before = zlib.crc32(data, self._sum if self._known else 0)
            data += b"%d\n" % before
            if self._known:
                self._append(data)
            else:
                replace_file(self._path, data)
            self._known, self._sum = len(blocks), zlib.crc32(b"%d\n" % before, before)
        except OSError:
            self._known = 0  # what it has now is not known: the next time it is made anew

    def _checked(self, blocks: Sequence[Block], log: Path) -> list[Block]:
        with log.open("rb") as file:
            return [
                block if block.check else msgspec.structs.replace(block, check=log_check(file, block.end))
                for block in blocks[self._known :]
            ]

    def _append(self, lines: bytes) -> None:
        descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(descriptor, lines)
        finally:
            os.close(descriptor)
