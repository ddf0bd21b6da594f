"""The append-only file: reading it whatever is wrong with it, and writing to it whatever the disk does.

Lines are split on byte 0x0A only (R-065). The file is never rewritten. Damaged lines are skipped and reported, and
good entries that stand in them are kept (R-063, R-064).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.private_files import make_directory, open_private, write_all
from tenuto.protocol.entry import HeaderEntry, UnknownEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.log.record import DamagedLine, decode, known_types
from tenuto.text.late import late

DEEPEST = 8
"""How many whole objects may stand around one that is looked at; entries stand in none, or in a torn one."""
_NAMES = rb'"(?:type|seq|ts)":'
_START = late(rb"\{" + _NAMES)
_PASSED = late(
    rb'(?:[^"{}\[\]]++'  # numbers, commas, NUL bytes
    rb'|"(?:[^"\\{]++|\\(?!\{'
    + _NAMES
    + rb")[\x00-\xff]|\{(?!"
    + _NAMES
    + rb'))*+"'  # a string with no beginning in it
    rb")*+"
)


class Span(msgspec.Struct, frozen=True):
    """A stretch of bytes from `start` up to `end` whose brackets match, and those that stand in it."""

    start: int
    end: int
    inner: tuple[Span, ...] = ()


class _Open(msgspec.Struct):
    """A bracket that is open; `start` is where it stands if an entry may begin there, else -1.

    `inner` takes what is whole inside; with `shared` it is the list of the bracket around it.
    """

    closing: int
    start: int
    inner: list[Span]
    shared: bool


def find_spans(line: bytes) -> Iterator[Span]:
    """Yield the outermost stretches that may be entries, in order. The work grows with the length of the line alone."""
    open_brackets: list[_Open] = []
    found = _START.search(line)
    position = found.start() if found else len(line)
    while position < len(line):
        byte = line[position]
        if byte in b"{[":
            start = position if _START.match(line, position) else -1
            shared = start < 0 and bool(open_brackets)
            inner = open_brackets[-1].inner if shared else []
            open_brackets.append(_Open(b"}]"[b"{[".index(byte)], start, inner, shared))
        elif byte in b"}]":
            if open_brackets and open_brackets[-1].closing != byte:
                yield from _let_go(open_brackets)
            elif open_brackets:
                closed = open_brackets.pop()
                inner = closed.inner if closed.start < 0 else [Span(closed.start, position + 1, tuple(closed.inner))]
                if not open_brackets:
                    yield from inner
                elif not closed.shared:
                    open_brackets[-1].inner += inner
        else:  # a string that is torn
            yield from _let_go(open_brackets)
            found = _START.search(line, position)
            position = found.start() if found else len(line)
            continue
        position = _end_of_passed(line, position + 1)
    yield from _let_go(open_brackets)


def _end_of_passed(line: bytes, position: int) -> int:
    """Return where the next bracket stands, or the quote of a torn string."""
    found = _PASSED.match(line, position)
    return found.end() if found else position


def _let_go(open_brackets: list[_Open]) -> Iterator[Span]:
    """Yield what is whole inside brackets that will never be closed."""
    for one in open_brackets:
        if not one.shared:
            yield from one.inner
    open_brackets.clear()


LOG_NAME = "events.jsonl"
Durability = Literal["none", "points", "wait"]
"""When entries are forced to the disk itself: never, at the points where loss would hurt but beside the work, or before
the work goes on."""
UNKNOWN_END = -1
_COPY_BYTES = 1 << 20


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could not be read as it stands. `line` counts from 1, `size` is in bytes."""

    line: int
    size: int
    reason: str

    def __str__(self) -> str:
        """Return the damage as a user reads it."""
        return f"line {self.line} ({self.size} bytes): {self.reason}"


def sum_up(count: int, first: str) -> str:
    """Return what is damaged in a log as one line: the first damage, and how many lines there are."""
    return first if count <= 1 else f"{count} lines, the first of them {first}"


class Record(msgspec.Struct, frozen=True):
    """One entry and the bytes that it was read from, without the newline."""

    entry: HistoryEvent
    raw: bytes


class Place(msgspec.Struct, frozen=True):
    """Where a line begins: its offset in bytes, how many lines are before it, and the highest seq in those."""

    offset: int = 0
    line: int = 0
    highest: int = 0


BEGIN = Place()


class LogLine(msgspec.Struct, frozen=True):
    """One line of the log: its offset and size in bytes (with newline), the entries in it, what is wrong with it."""

    offset: int
    size: int
    records: tuple[Record, ...] = ()
    damage: Damage | None = None


def read_log(lines: Iterable[bytes], damages: list[Damage]) -> Iterator[Record]:
    """Yield every entry of the lines (a binary file's), in file order, and report what is damaged in `damages`.

    Memory is bounded by the longest line. Raises only what reading the lines raises.
    """
    for line in scan_log(lines):
        if line.damage is not None:
            damages.append(line.damage)
        yield from line.records


def scan_log(lines: Iterable[bytes], place: Place = BEGIN) -> Iterator[LogLine]:
    """Yield the lines, which begin at `place`, with the entries that stand in them. Raises what reading them raises."""
    offset, number, highest = place.offset, place.line, place.highest
    for data in lines:
        number += 1
        line = _read_line(data, offset, number, highest)
        for record in line.records:
            highest = max(highest, record.entry.seq)
        yield line
        offset += len(data)


def _read_line(data: bytes, offset: int, number: int, highest: int) -> LogLine:
    size, text_size = len(data), len(data.rstrip(b"\n"))
    try:
        entry = decode(data)
    except DamagedLine as problem:
        if data.isspace():
            return LogLine(offset, size)
        reason = str(problem) if data.endswith(b"\n") else "cut off"
        damage = Damage(line=number, size=text_size, reason=reason)
        return LogLine(offset, size, tuple(_salvage(data, highest)), damage)
    damage = None
    if isinstance(entry, UnknownEntry) and entry.kind in known_types():
        damage = Damage(line=number, size=text_size, reason=f"not a readable {entry.kind} entry")
    elif 0 < entry.seq <= highest:
        damage = Damage(line=number, size=text_size, reason=f"seq {entry.seq} is out of order")
    return LogLine(offset, size, (Record(entry, data.rstrip(b"\r\n")),), damage)


def _salvage(line: bytes, highest: int) -> Iterator[Record]:
    """Yield the whole entries that stand in a damaged line: glued together, or behind a fragment or NUL bytes.

    An object inside a torn entry looks much the same; only one with a higher `seq` than all before is an entry. Each
    byte is parsed at most `DEEPEST` times.
    """
    waiting = [(span, 1) for span in find_spans(line)][::-1]
    while waiting:
        span, depth = waiting.pop()
        raw = line[span.start : span.end]
        try:
            entry = decode(raw)
        except DamagedLine:
            if depth < DEEPEST:
                waiting += [(inner, depth + 1) for inner in reversed(span.inner)]
            continue
        if entry.seq > highest or isinstance(entry, HeaderEntry):
            highest = max(highest, entry.seq)
            yield Record(entry, raw)


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
        self._is_new = False
        self._written = 0
        self._synced = 0
        self._end = 0
        self._sync_problem: list[str] = []

    @property
    def size(self) -> int:
        """Bytes of the file, 0 when it is not there."""
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    @property
    def is_known(self) -> bool:
        """Whether everything is written and every line stands at the offset that `write` returned for it."""
        return self._end != UNKNOWN_END and not self._pending

    @property
    def is_untouched(self) -> bool:
        """Whether the file, if it is there, has no bytes but those that were in it when it was opened and our own."""
        if self._descriptor < 0:
            return not self.path.exists()
        try:
            held, there = os.fstat(self._descriptor), self.path.stat()
        except OSError:
            return False
        return os.path.samestat(held, there) and there.st_size == self._written

    def create(self) -> None:
        """Create the file. Where that fails, lines wait as if a write had failed."""
        self._try(self._open_new)

    def resume(self) -> None:
        """Open an existing file; a last line that was cut off is closed by the next write (R-063)."""
        self._end = UNKNOWN_END
        self._try(self._open_existing)
        if self._descriptor >= 0:
            self._end = self._written

    def write(self, line: bytes) -> int:
        """Append one line in one call to the system; never raises, see `problem`.

        Returns the offset at which the line stands, or will stand; `UNKNOWN_END` where that cannot be said.
        """
        end = self._end
        if self._is_torn:
            self._pending += b"\n"
            self._is_torn = False
            end += 1
        self._pending += line
        self.waiting += 1
        if self._end != UNKNOWN_END:
            self._end = end + len(line)
        self.flush()
        return UNKNOWN_END if self._end == UNKNOWN_END else end

    def flush(self) -> bool:
        """Try to write what waits; return whether everything is written now."""
        if self._pending:
            self._try(self._write_pending)
        return not self._pending

    def sync(self) -> None:
        """Ask for what is written to reach the disk itself; the one place that decides what durability costs.

        A killed process loses nothing that was written, only a power cut can; so the wait (1 to 20 ms on real disks)
        happens beside the work, unless the durability is "wait": then it is over when this returns.
        """
        is_due = self._descriptor >= 0 and not self._pending and self._synced != self._written
        if self._durability == "none" or not is_due:
            return
        self._synced = self._written
        folder = self.path.parent if self._is_new else None
        self._is_new = False
        if self._durability == "wait" or not self._sync_beside(folder):
            self._try(lambda: _sync(self._descriptor, folder))
            if self.problem:
                self._synced = 0

    def _sync_beside(self, folder: Path | None) -> bool:
        """Have a thread do it; `False` where the system gives no descriptor or no thread: then it is waited for."""
        import threading

        try:
            duplicate = os.dup(self._descriptor)
        except OSError:
            return False
        work = (duplicate, folder, self._sync_problem)
        try:
            threading.Thread(target=_sync_and_close, args=work, daemon=True).start()
        except RuntimeError:  # no more threads
            os.close(duplicate)
            return False
        return True

    def copy_to(self, path: Path) -> None:
        """Write what the file has and what waits into a new private file. Raises `OSError`."""
        target = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            if self._descriptor >= 0:
                _copy(self._descriptor, target)
            elif self.path.exists():
                with self.path.open("rb") as file:
                    _copy(file.fileno(), target)
            write_all(target, bytes(self._pending))
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(target)

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
        self._written, self._synced, self._is_new = 0, 0, True
        self._created()

    def _open_existing(self) -> None:
        self._descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND)
        size = os.fstat(self._descriptor).st_size
        self._is_torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        self._written = self._synced = size

    def _write_pending(self) -> None:
        if self._descriptor < 0:
            self._open_late()
        else:
            self._check_file()
        while self._pending:
            # After a short write only the rest is sent, so that not even the line in hand is damaged.
            count = os.write(self._descriptor, self._pending)
            self._written += count
            del self._pending[:count]
        self.waiting = 0

    def _check_file(self) -> None:
        """Bring back a file that was deleted or moved; believe no offset of one that somebody else changed."""
        status = os.fstat(self._descriptor)
        try:
            is_in_place = os.path.samestat(status, self.path.stat())
        except FileNotFoundError:
            is_in_place = False
        if not is_in_place:
            self._restore()
        elif status.st_size != self._written:
            self._end = UNKNOWN_END
            self._written = status.st_size

    def _open_late(self) -> None:
        """Open what could not be opened at first; the lines that wait do not know yet what stands before them."""
        if not self.path.exists():
            self._open_new()
            return
        self._open_existing()
        self._end = UNKNOWN_END
        if self._is_torn:
            self._pending[:0] = b"\n"
            self._is_torn = False

    def _restore(self) -> None:
        """Bring back a log that was deleted or moved under us: its bytes are there as long as we hold the file.

        Raises `OSError`, also where another file is in its place: that is somebody's, and is left alone.
        """
        old = self._descriptor
        try:
            self._open_new()
        except FileExistsError as error:
            raise OSError(errno.EEXIST, "another file is in the place of the log") from error
        try:
            self._written = _copy(old, self._descriptor)
        except OSError:
            os.close(self._descriptor)
            self._descriptor = old
            self._written = os.fstat(old).st_size
            self.path.unlink(missing_ok=True)
            raise
        os.close(old)


def _copy(source: int, target: int) -> int:
    """Write all that a file has to the end of another; return how many bytes that was. Raises `OSError`."""
    position = 0
    while block := os.pread(source, _COPY_BYTES, position):
        write_all(target, block)
        position += len(block)
    return position


def _sync(descriptor: int, folder: Path | None) -> None:
    """Force a file to the disk, and for a new one the name that it has in its folder. Raises `OSError`."""
    os.fsync(descriptor)
    if folder is not None:
        with contextlib.suppress(OSError):  # not every system lets a folder be synced
            holder = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(holder)
            finally:
                os.close(holder)


def _sync_and_close(descriptor: int, folder: Path | None, problems: list[str]) -> None:
    try:
        _sync(descriptor, folder)
    except OSError as error:
        problems.append(error.strerror or str(error))
    finally:
        os.close(descriptor)
