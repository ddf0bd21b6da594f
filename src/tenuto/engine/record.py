"""What is finished, on the disk: one line each, in a file that only grows. A later run goes on behind it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tenuto.private_files import open_private, write_all
from tenuto.text.writable import to_json

LineT = TypeVar("LineT", bound=msgspec.Struct)
KeyT = TypeVar("KeyT")


class RecordTakenError(Exception):
    """Another process writes the file; the message names it."""


class Record(Generic[KeyT, LineT]):
    """Lines on disk; `latest` has the last one of each key, `faults` a text on each line that cannot be read.

    One process at a time has the file. A line that a crash left half written is taken away.
    """

    def __init__(self, path: Path, line: type[LineT], key: Callable[[LineT], KeyT]) -> None:
        """Open the file, or make it. Raises `RecordTakenError` and `OSError`."""
        is_new = not path.exists()
        self.path = path
        self._key = key
        self._descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise RecordTakenError(f"another tenuto writes {path}") from None
        if is_new:
            _sync_folder(path.parent)
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.ftruncate(self._descriptor, len(whole))
        self.latest, faults = read_lines(whole, line, key)
        self.faults = [f"{path.name}, {fault}; what it was about runs again" for fault in faults]

    def append(self, line: LineT) -> None:
        """Write one line, and be sure that it is on the disk. Raises `OSError`; then nothing of the line stays."""
        size = os.fstat(self._descriptor).st_size
        try:
            write_all(self._descriptor, to_json(line) + b"\n")
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise
        self.latest[self._key(line)] = line

    def close(self) -> None:
        """Let another process have the file."""
        os.close(self._descriptor)


def read_lines(data: bytes, line: type[LineT], key: Callable[[LineT], KeyT]) -> tuple[dict[KeyT, LineT], list[str]]:
    """Return the last of whole lines for each key, and what is wrong with those that cannot be read. Pure."""
    latest: dict[KeyT, LineT] = {}
    faults: list[str] = []
    for number, text in enumerate(data.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            read = msgspec.json.decode(text, type=line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            faults.append(f"line {number}: {error}")
        else:
            latest[key(read)] = read
    return latest, faults


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
