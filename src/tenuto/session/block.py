"""Blocks: runs of whole lines of the log, the unit in which older entries are found, read and let go (DESIGN 3).

What a block says of its entries is enough to know the tree, to find a seq, and to pass over blocks that lack a kind.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry, UnknownEntry
from tenuto.protocol.message import HistoryEvent, KnownEntry
from tenuto.session.log import Damage, LogLine, Place

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
