"""All entries of a session by position; only those that are needed are in memory (DESIGN section 3, "Cost").

The end of the log and the blocks that the view is made from are held; other blocks are read when somebody asks for
them, and the last ones that were asked for stay for a while.
"""

from __future__ import annotations

import functools
import io
import os
import threading
import zlib
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from tenuto.private_files import open_private, replace_file, write_all
from tenuto.protocol.entry import BranchEntry, HeaderEntry, UnknownEntry
from tenuto.protocol.message import HistoryEvent, KnownEntry
from tenuto.session.errors import SessionUnreadable
from tenuto.session.log.log import UNKNOWN_END, Damage, LogLine, Place, Record, scan_log

BLOCK_ENTRIES = 256
BLOCK_BYTES = 1 << 19


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Facts of a run of lines. Offsets and sizes are bytes, positions count entries from the begin of the log.

    `lines` and `highest` are those before the block, `lines_after` and `top` those after it. `kinds` has a bit for each
    kind of entry in it (`kind_bits`), `branches` (position, position of the parent) for each branch entry, `odd`
    (seq, position) for each entry whose seq is not higher than all before it. `check` is the CRC-32 of its last bytes.
    """

    offset: int
    size: int
    position: int
    count: int
    lines: int
    lines_after: int
    highest: int
    top: int
    kinds: int
    check: int = 0
    branches: tuple[tuple[int, int], ...] = ()
    headers: tuple[int, ...] = ()
    odd: tuple[tuple[int, int], ...] = ()
    damages: tuple[Damage, ...] = ()

    @property
    def end(self) -> int:
        """The offset after its last line."""
        return self.offset + self.size

    @property
    def position_after(self) -> int:
        """The position after its last entry."""
        return self.position + self.count

    @property
    def place(self) -> Place:
        """Where its first line begins."""
        return Place(self.offset, self.lines, self.highest)


class OpenBlock:
    """The block at the end of the log, which is still being filled; its entries are in memory."""

    def __init__(self, place: Place, position: int) -> None:
        """Begin at `place` with the entry at `position`."""
        self.place = place
        self.position = position
        self.entries: list[HistoryEvent] = []
        self.lines_after = place.line
        self.top = place.highest
        self.kinds = 0
        self.branches: list[tuple[int, int]] = []
        self.headers: list[int] = []
        self.odd: list[tuple[int, int]] = []
        self.damages: list[Damage] = []

    def is_full(self, offset: int) -> bool:
        """Say whether a line at `offset` belongs into the next block."""
        return len(self.entries) >= BLOCK_ENTRIES or offset - self.place.offset >= BLOCK_BYTES

    def add_line(self, line: LogLine) -> None:
        """Take note of a line; its entries are added one by one."""
        self.lines_after += 1
        if line.damage is not None:
            self.damages.append(line.damage)

    def add(self, entry: HistoryEvent, parent: int) -> None:
        """Take in an entry; `parent` is the position of a branch's parent."""
        position = self.position + len(self.entries)
        self.entries.append(entry)
        self.kinds |= kind_bits((type(entry),))
        if isinstance(entry, BranchEntry):
            self.branches.append((position, parent))
        elif isinstance(entry, HeaderEntry):
            self.headers.append(position)
        if entry.seq > self.top:
            self.top = entry.seq
        elif entry.seq:
            self.odd.append((entry.seq, position))

    def finish(self, end: int) -> Block:
        """Return what is known of the block, which ends at the offset `end`."""
        return Block(
            offset=self.place.offset,
            size=end - self.place.offset,
            position=self.position,
            count=len(self.entries),
            lines=self.place.line,
            lines_after=self.lines_after,
            highest=self.place.highest,
            top=self.top,
            kinds=self.kinds,
            branches=tuple(self.branches),
            headers=tuple(self.headers),
            odd=tuple(self.odd),
            damages=tuple(self.damages),
        )


@functools.cache
def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds of entries, in the order of their bits."""
    kinds: tuple[type[msgspec.Struct], ...] = (*KnownEntry.__args__, UnknownEntry)
    return tuple(str(kind.__struct_config__.tag) for kind in kinds)


@functools.cache
def kind_bits(kinds: tuple[type[HistoryEvent], ...]) -> int:
    """Return the bits that stand for these kinds of entries."""
    bits = 0
    for kind in kinds:
        bits |= 1 << kind_names().index(str(kind.__struct_config__.tag))
    return bits


def are_joined(blocks: Iterable[Block]) -> bool:
    """Say whether the blocks follow upon each other without a gap, from the begin of the log on."""
    offset = position = lines = highest = 0
    for block in blocks:
        if (block.offset, block.position, block.lines, block.highest) != (offset, position, lines, highest):
            return False
        if block.size <= 0 or block.count < 0:
            return False
        offset, position, lines, highest = block.end, block.position_after, block.lines_after, block.top
    return True


ROOT = -1
"""The position before the first entry."""
ANY = -1
"""The bits of every kind."""
RECENT_BYTES = 2 << 20
"""Bytes of the log whose entries stay in memory after somebody looked at them."""


class LoadCount(msgspec.Struct):
    """How much was read again after the session was open: blocks and bytes."""

    blocks: int = 0
    bytes: int = 0


class History:
    """Entries in file order, the header among them. Grows by `add_line` and `append`; may be read from any thread."""

    def __init__(self, log: Path, blocks: list[Block]) -> None:
        """Begin with the blocks of the log that are known already."""
        self.log = log
        self.blocks = blocks
        self.loads = LoadCount()
        self.branches: list[tuple[int, int]] = [pair for block in blocks for pair in block.branches]
        self.headers: list[int] = [position for block in blocks for position in block.headers]
        self._odd: list[tuple[int, int]] = [pair for block in blocks for pair in block.odd]
        self._held: dict[int, list[HistoryEvent]] = {}
        self._recent: OrderedDict[int, list[HistoryEvent]] = OrderedDict()
        self._recent_bytes = 0
        self._lock = threading.RLock()
        self._is_placed = True
        self._changed: dict[int, Damage] = {}
        last = blocks[-1] if blocks else None
        place = Place(last.end, last.lines_after, last.top) if last else Place()
        self._open = OpenBlock(place, last.position_after if last else 0)

    # --- what there is ---

    def __len__(self) -> int:
        return self._open.position + len(self._open.entries)

    @property
    def highest(self) -> int:
        """The highest seq so far."""
        return self._open.top

    @property
    def place(self) -> Place:
        """Where the last, unfinished block begins."""
        return self._open.place

    @property
    def is_placed(self) -> bool:
        """Whether every entry is known to stand in the file where it was put."""
        return self._is_placed and not self._changed

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What could not be read as it stands, in file order; then what changed under us."""
        found = [damage for block in self.blocks for damage in block.damages]
        return (*found, *self._open.damages, *self._changed.values())

    # --- growing ---

    def add_line(self, line: LogLine) -> None:
        """Take in a line of the file that was just read. Its block is let go when it is full."""
        if self._open.is_full(line.offset):
            self._finish_block(line.offset, held=False)
        self._open.add_line(line)
        for record in line.records:
            self._add(record.entry)

    def append(self, entry: HistoryEvent, offset: int) -> bool:
        """Take in an entry that was just written at `offset`; return whether a block became full by it."""
        finished = False
        self._is_placed = self._is_placed and offset != UNKNOWN_END
        if self._is_placed and self._open.is_full(offset):
            self._finish_block(offset, held=True)
            finished = True
        self._open.lines_after += 1
        self._add(entry)
        return finished

    def _add(self, entry: HistoryEvent) -> None:
        position = len(self)
        parent = self._parent(entry, position) if isinstance(entry, BranchEntry) else ROOT
        known = len(self._open.odd)
        self._open.add(entry, parent)
        if isinstance(entry, BranchEntry):
            self.branches.append((position, parent))
        elif isinstance(entry, HeaderEntry):
            self.headers.append(position)
        self._odd.extend(self._open.odd[known:])

    def _parent(self, branch: BranchEntry, position: int) -> int:
        """Return where a branch leads; one that names something later than itself stays where it is."""
        found = self.find(branch.parent)
        if found is not None:
            return found
        return position if branch.parent >= branch.seq else self.last_up_to(branch.parent)

    def _finish_block(self, end: int, *, held: bool) -> None:
        with self._lock:
            block, number = self._open.finish(end), len(self.blocks)
            self.blocks.append(block)
            if held:
                self._held[number] = self._open.entries
            else:
                self._keep_recent(number, self._open.entries)
            self._open = OpenBlock(Place(end, block.lines_after, block.top), block.position_after)

    # --- reading ---

    def __getitem__(self, position: int) -> HistoryEvent:
        with self._lock:
            number = self.block_at(position)
            return self.block_entries(number)[position - self.block_start(number)]

    def __iter__(self) -> Iterator[HistoryEvent]:
        return self.entries(0, len(self))

    def entries(self, start: int, stop: int, bits: int = ANY) -> Iterator[HistoryEvent]:
        """Yield the entries from one position up to another; blocks that have none of the kinds `bits` are left out."""
        number = self.block_at(start)
        while start < stop:
            with self._lock:
                while not self.block_kinds(number) & bits and self._block_end(number) < stop:
                    number += 1
                first, end = self.block_start(number), min(stop, self._block_end(number))
                wanted = self.block_kinds(number) & bits
                found = self.block_entries(number)[max(start, first) - first : end - first] if wanted else ()
            yield from found
            start, number = end, number + 1

    def entries_backwards(self, start: int, stop: int, bits: int = ANY) -> Iterator[HistoryEvent]:
        """Yield the same entries, the last one first."""
        number = self.block_at(stop - 1)
        while start < stop:
            with self._lock:
                while not self.block_kinds(number) & bits and self.block_start(number) > start:
                    number -= 1
                first, end = self.block_start(number), min(stop, self._block_end(number))
                begin = max(start, first)
                wanted = self.block_kinds(number) & bits
                found = self.block_entries(number)[begin - first : end - first] if wanted else ()
            yield from reversed(found)
            stop, number = begin, number - 1

    def besides(self, *kinds: type[HistoryEvent]) -> Iterator[HistoryEvent]:
        """Yield the entries that are of none of the kinds, in order."""
        return (entry for entry in self.entries(0, len(self), ~kind_bits(kinds)) if not isinstance(entry, kinds))

    def _block_end(self, number: int) -> int:
        return self.blocks[number].position_after if number < len(self.blocks) else len(self)

    def block_at(self, position: int) -> int:
        """Return the number of the block with this position; the unfinished one is the last."""
        if position >= self._open.position:
            return len(self.blocks)
        return bisect_right(self.blocks, position, key=lambda block: block.position) - 1

    def block_start(self, number: int) -> int:
        """Return the position of a block's first entry; behind the last block, the number of all entries."""
        if number > len(self.blocks):
            return len(self)
        return self.blocks[number].position if number < len(self.blocks) else self._open.position

    def block_bounds(self, number: int) -> tuple[int, int]:
        """Return the lowest and the highest seq that belong to a block."""
        top = self.blocks[number].top if number < len(self.blocks) else self._open.top
        return self._highest_before(number) + 1, top

    def block_size(self, number: int) -> int:
        """Return the bytes of a block in the log; the unfinished one is not counted."""
        return self.blocks[number].size if number < len(self.blocks) else 0

    def block_passes(self, number: int, test: Callable[[bytes], bool]) -> bool:
        """Say whether the lines of a block pass a test; the unfinished one always does. Raises `SessionUnreadable`."""
        if number >= len(self.blocks):
            return True
        return test(self._read(self.blocks[number].offset, self.blocks[number].size))

    def block_kinds(self, number: int) -> int:
        """Return the bits of the kinds of entries in a block."""
        return self.blocks[number].kinds if number < len(self.blocks) else self._open.kinds

    def block_entries(self, number: int) -> list[HistoryEvent]:
        """Return the entries of a block, from the disk if they are not in memory. Raises `SessionUnreadable`."""
        if number >= len(self.blocks):
            return self._open.entries
        held = self._held.get(number)
        if held is not None:
            return held
        with self._lock:
            entries = self._recent.get(number)
            if entries is None:
                entries = self._load(number)
                self._keep_recent(number, entries)
            else:
                self._recent.move_to_end(number)
            return entries

    def block_records(self, number: int) -> Iterator[Record]:
        """Yield the entries of a block with their lines, as they stand in the file. Raises `SessionUnreadable`."""
        is_open = number >= len(self.blocks)
        place = self._open.place if is_open else self.blocks[number].place
        data = self._read(place.offset, -1 if is_open else self.blocks[number].size)
        for line in scan_log(io.BytesIO(data), place):
            yield from line.records

    def _load(self, number: int) -> list[HistoryEvent]:
        block = self.blocks[number]
        data = self._read(block.offset, block.size)
        self.loads.blocks += 1
        self.loads.bytes += len(data)
        lines = scan_log(io.BytesIO(data), block.place)
        entries = [record.entry for line in lines for record in line.records]
        if len(entries) == block.count:
            return entries
        return self._mend(number, entries)

    def _mend(self, number: int, entries: list[HistoryEvent]) -> list[HistoryEvent]:
        """Put entries that stand for nothing in the place of those that are gone: the file changed under us."""
        block = self.blocks[number]
        reason = f"{block.count} entries were written here, {len(entries)} can be read"
        self._changed[number] = Damage(line=block.lines + 1, size=block.size, reason=reason)
        missing = block.count - len(entries)
        return [*entries[: block.count], *(UnknownEntry(kind="lost", seq=block.top) for _ in range(missing))]

    def _read(self, offset: int, size: int) -> bytes:
        try:
            with self.log.open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise SessionUnreadable(self.log.parent, error.strerror or os.strerror(error.errno or 0)) from error

    def _keep_recent(self, number: int, entries: list[HistoryEvent]) -> None:
        self._recent[number] = entries
        self._recent_bytes += self.blocks[number].size
        while self._recent_bytes > RECENT_BYTES and len(self._recent) > 1:
            oldest, _ = self._recent.popitem(last=False)
            self._recent_bytes -= self.blocks[oldest].size

    # --- what stays in memory ---

    def hold(self, number: int) -> None:
        """Keep the entries of a block in memory, and the very same objects. Raises `SessionUnreadable`."""
        if number < len(self.blocks) and number not in self._held:
            self._held[number] = self.block_entries(number)

    def release(self, seq: int) -> None:
        """Let go of the blocks that have no entry with a seq of at least `seq`; they are read again when needed."""
        for number in [number for number in self._held if self.blocks[number].top < seq]:
            del self._held[number]

    # --- finding ---

    def find(self, seq: int) -> int | None:
        """Return the position of the first entry with this seq."""
        if not 0 < seq <= self.highest:
            return None
        number = self.block_of(seq)
        start, top = self.block_start(number), self._highest_before(number)
        for index, entry in enumerate(self.block_entries(number)):
            if entry.seq > top:
                if entry.seq == seq:
                    return start + index
                top = entry.seq
        return next((position for odd, position in self._odd if odd == seq), None)

    def position_at(self, seq: int) -> int:
        """Return the position of `seq`, or of the last entry in the file with a lower one; `ROOT` where none is."""
        found = self.find(seq)
        return self.last_up_to(seq) if found is None else found

    def last_up_to(self, seq: int) -> int:
        """Return the position of the last entry in the file whose seq is at most `seq`; `ROOT` where none is."""
        in_order = self._last_in_order(min(seq, self.highest))
        return max([in_order, *(position for odd, position in self._odd if odd <= seq)])

    def block_of(self, seq: int) -> int:
        """Return the number of the first block with an entry whose seq is at least `seq`; the last if none has."""
        return bisect_left(self.blocks, seq, key=lambda block: block.top)

    def _last_in_order(self, seq: int) -> int:
        while seq > 0:
            number = self.block_of(seq)
            start, top = self.block_start(number), self._highest_before(number)
            found = ROOT
            for index, entry in enumerate(self.block_entries(number)):
                if top < entry.seq <= seq:
                    found = start + index
                top = max(top, entry.seq)
            if found != ROOT:
                return found
            seq = self._highest_before(number)
        return ROOT

    def _highest_before(self, number: int) -> int:
        return self.blocks[number].highest if number < len(self.blocks) else self._open.place.highest


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
        """Go on behind what is in the file; without a sum the file is made again."""
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
            self._known = 0  # what it has now is not known: the next time it is made again

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
