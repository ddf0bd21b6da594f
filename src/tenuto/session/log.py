"""The append-only file: reading it whatever is wrong with it, and writing to it whatever the disk does.

Lines are split on byte 0x0A only (R-065). The file is never rewritten. Damaged lines are skipped and reported, and
good entries that stand in them are kept (R-063, R-064).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.protocol.entry import HeaderEntry, UnknownEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.files import make_directory, open_private, write_all
from tenuto.session.record import DamagedLine, decode, from_fields, known_types

LOG_NAME = "events.jsonl"
Durability = Literal["none", "points"]
_COPY_BYTES = 1 << 20
_STARTS = (b'{"type":', b'{"seq":', b'{"ts":')


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could not be read as it stands. `line` counts from 1, `size` is in bytes."""

    line: int
    size: int
    reason: str

    def __str__(self) -> str:
        """Return the damage as a person reads it."""
        return f"line {self.line} ({self.size} bytes): {self.reason}"


class Record(msgspec.Struct, frozen=True):
    """One entry and the bytes that it was read from, without the newline."""

    entry: HistoryEvent
    raw: bytes


def read_log(lines: Iterable[bytes], damages: list[Damage]) -> Iterator[Record]:
    """Yield every entry of the lines (a binary file's), in file order, and report what is damaged in `damages`.

    Memory is bounded by the longest line. Raises only what reading the lines raises.
    """
    highest = 0
    for number, line in enumerate(lines, 1):
        try:
            entry = decode(line)
        except DamagedLine as damage:
            if line.isspace():
                continue
            reason = str(damage) if line.endswith(b"\n") else "cut off"
            damages.append(Damage(line=number, size=len(line.rstrip(b"\n")), reason=reason))
            for record in _salvage(line, highest):
                highest = max(highest, record.entry.seq)
                yield record
            continue
        if isinstance(entry, UnknownEntry) and entry.kind in known_types():
            damages.append(Damage(line=number, size=len(line), reason=f"not a readable {entry.kind} entry"))
        elif 0 < entry.seq <= highest:
            damages.append(Damage(line=number, size=len(line), reason=f"seq {entry.seq} is out of order"))
        highest = max(highest, entry.seq)
        yield Record(entry, line.rstrip(b"\r\n"))


def _salvage(line: bytes, highest: int) -> Iterator[Record]:
    """Yield the whole entries that stand in a damaged line: glued together, or behind a fragment or NUL bytes.

    An object inside a torn entry looks much the same; only one with a higher `seq` than all before is an entry.
    """
    import json

    text = line.decode("latin-1")  # one character a byte, so that positions are byte offsets
    parse = json.JSONDecoder().raw_decode
    position = _next_start(line, 0)
    while position >= 0:
        following = position + 1
        try:
            _, end = parse(text, position)
            raw = line[position:end]
            entry = from_fields(json.loads(raw.decode("utf-8", "surrogatepass")), raw)
            if entry.seq > highest or isinstance(entry, HeaderEntry):
                highest = max(highest, entry.seq)
                following = end
                yield Record(entry, raw)
        except (ValueError, RecursionError):
            pass
        position = _next_start(line, following)


def _next_start(line: bytes, position: int) -> int:
    """Return where the next object that may be an entry begins, -1 if there is none."""
    found = [at for start in _STARTS if (at := line.find(start, position)) >= 0]
    return min(found, default=-1)


class LogWriter:
    """The one writer of a log. What the disk refuses waits in memory and is tried again with the next line.

    `problem` says why lines wait ("" when everything is written); `waiting` is how many lines do.
    """

    def __init__(self, path: Path, durability: Durability, created: Callable[[], None]) -> None:
        """Write to `path`; `created` is called whenever the file had to be made."""
        self.path = path
        self.problem = ""
        self.waiting = 0
        self._durability: Durability = durability
        self._pending = bytearray()
        self._created = created
        self._descriptor = -1
        self._is_torn = False
        self._sync_problem: list[str] = []

    @property
    def size(self) -> int:
        """Bytes of the file, 0 when it is not there."""
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def create(self) -> None:
        """Create the file. Where that fails, lines wait as if a write had failed."""
        self._try(self._open_new)

    def resume(self) -> None:
        """Open an existing file; a last line that was cut off is closed by the next write (R-063)."""
        self._try(self._open_existing)

    def write(self, line: bytes) -> None:
        """Append one line in one call to the system; never raises, see `problem`."""
        if self._is_torn:
            self._pending += b"\n"
            self._is_torn = False
        self._pending += line
        self.waiting += 1
        self.flush()

    def flush(self) -> bool:
        """Try to write what waits; return whether everything is written now."""
        if self._pending:
            self._try(self._write_pending)
        return not self._pending

    def sync(self) -> None:
        """Ask for what is written to reach the disk itself; the one place that decides what durability costs.

        A killed process loses nothing that was written, only a power cut can; so the wait (1 to 20 ms on real disks)
        happens beside the work, not in it.
        """
        if self._durability == "none" or self._descriptor < 0:
            return
        import threading

        duplicate = os.dup(self._descriptor)
        threading.Thread(target=_sync_and_close, args=(duplicate, self._sync_problem), daemon=True).start()

    def close(self) -> None:
        """Try once more to write what waits, then let go of the file."""
        self.flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
            self.problem = self._sync_problem.pop() if self._sync_problem else ""
        except OSError as error:
            self.problem = error.strerror or str(error)

    def _open_new(self) -> None:
        make_directory(self.path.parent)
        self._descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        self._created()

    def _open_existing(self) -> None:
        self._descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND)
        size = os.fstat(self._descriptor).st_size
        self._is_torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def _write_pending(self) -> None:
        if self._descriptor < 0:
            self._open_late()
        elif os.fstat(self._descriptor).st_nlink == 0:
            self._restore()
        while self._pending:
            # After a short write only the rest is sent, so that not even the line in hand is damaged.
            del self._pending[: os.write(self._descriptor, self._pending)]
        self.waiting = 0

    def _open_late(self) -> None:
        """Open what could not be opened at first; the lines that wait do not know yet what stands before them."""
        if not self.path.exists():
            self._open_new()
            return
        self._open_existing()
        if self._is_torn:
            self._pending[:0] = b"\n"
            self._is_torn = False

    def _restore(self) -> None:
        """Bring back a log that was deleted under us: its bytes are still there as long as we hold the file."""
        old = self._descriptor
        self._open_new()
        try:
            position = 0
            while block := os.pread(old, _COPY_BYTES, position):
                write_all(self._descriptor, block)
                position += len(block)
        except OSError:
            os.close(self._descriptor)
            self._descriptor = old
            self.path.unlink(missing_ok=True)
            raise
        os.close(old)


def _sync_and_close(descriptor: int, problems: list[str]) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        problems.append(error.strerror or str(error))
    finally:
        os.close(descriptor)
