"""The path from the root to the leaf as a sequence whose older part is read when somebody looks at it (DESIGN 3).

The functions at the end work on any sequence of entries. On an `EntryPath` they cost what they find, not what there is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, cast, overload

from tenuto.protocol.message import HistoryEvent
from tenuto.session.log.history import ANY, History, kind_bits

EntryT = TypeVar("EntryT", bound=HistoryEvent)


class PathPart(NamedTuple):
    """What a path has in one block: the seqs from `first` to `last` are in it, and it has `size` bytes."""

    first: int
    last: int
    size: int
    entries: list[HistoryEvent]


class EntryPath(Sequence[HistoryEvent]):
    """Entries at some positions of a history, in file order, and maybe one more that is not in it.

    Reading may raise `SessionUnreadable`, because it may have to read the log.
    """

    def __init__(self, history: History, ranges: Iterable[range], extra: tuple[HistoryEvent, ...] = ()) -> None:
        """Hold the entries at the positions of `ranges`, ascending and apart, then `extra`."""
        self._history = history
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._before: list[int] = []
        self._length = 0
        self._extra = extra
        for run in ranges:
            self._add(run.start, run.stop)

    def _add(self, start: int, stop: int) -> None:
        if start < stop:
            self._starts.append(start)
            self._stops.append(stop)
            self._before.append(self._length)
            self._length += stop - start

    def grow(self, position: int) -> None:
        """Add the entry at the end of the history, which is at `position`."""
        if self._stops and self._stops[-1] == position:
            self._stops[-1] += 1
            self._length += 1
        else:
            self._add(position, position + 1)

    # --- the sequence ---

    def __len__(self) -> int:
        return self._length + len(self._extra)

    @overload
    def __getitem__(self, index: int) -> HistoryEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[HistoryEvent]: ...
    def __getitem__(self, index: int | slice) -> HistoryEvent | list[HistoryEvent]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return [self[at] for at in range(start, stop, step)]
            return list(self._forwards(start, stop))
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        return self._extra[at - self._length] if at >= self._length else self._history[self._position(at)]

    def __iter__(self) -> Iterator[HistoryEvent]:
        return self._forwards(0, len(self))

    def __reversed__(self) -> Iterator[HistoryEvent]:
        return self.newest_of(ANY)

    def __eq__(self, other: object) -> bool:
        """Compare entry by entry with any sequence."""
        if not isinstance(other, Sequence) or len(self) != len(cast("Sequence[object]", other)):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(one == another for one, another in zip(self, cast("Sequence[object]", other), strict=False))

    __hash__ = None  # type: ignore[assignment] - it grows

    def _position(self, index: int) -> int:
        run = bisect_right(self._before, index) - 1
        return self._starts[run] + index - self._before[run]

    def _forwards(self, start: int, stop: int) -> Iterator[HistoryEvent]:
        for run in range(max(0, bisect_right(self._before, start) - 1), len(self._starts)):
            begin, offset = self._before[run], self._starts[run] - self._before[run]
            if begin >= stop:
                return
            yield from self._history.entries(max(start, begin) + offset, min(stop + offset, self._stops[run]))
        yield from self._extra[max(0, start - self._length) : max(0, stop - self._length)]

    # --- what costs less than a look at everything ---

    def of(self, bits: int) -> Iterator[HistoryEvent]:
        """Yield, in order, entries among which are all of the kinds `bits`."""
        for start, stop in zip(self._starts[:], self._stops[:], strict=True):
            yield from self._history.entries(start, stop, bits)
        yield from self._extra

    def newest_of(self, bits: int) -> Iterator[HistoryEvent]:
        """Yield the same, the newest first."""
        yield from reversed(self._extra)
        for start, stop in zip(self._starts[::-1], self._stops[::-1], strict=True):
            yield from self._history.entries_backwards(start, stop, bits)

    def find(self, seq: int) -> HistoryEvent | None:
        """Return the first entry of the path with this seq."""
        position = self._history.find(seq)
        if position is not None and self._has(position):
            return self._history[position]
        return next((entry for entry in self._extra if entry.seq == seq), None)

    def _has(self, position: int) -> bool:
        run = bisect_right(self._starts, position) - 1
        return run >= 0 and position < self._stops[run]

    def since(self, seq: int) -> Iterator[HistoryEvent]:
        """Yield the entries with a seq of at least `seq`."""
        first = self._history.block_start(self._history.block_of(seq))
        for start, stop in zip(self._starts[:], self._stops[:], strict=True):
            for entry in self._history.entries(max(start, first), stop):
                if entry.seq >= seq:
                    yield entry
        yield from (entry for entry in self._extra if entry.seq >= seq)

    def hold(self, seq: int) -> None:
        """Keep in memory what `since(seq)` yields, so that the entries stay the same objects."""
        history = self._history
        first = history.block_start(history.block_of(seq))
        for start, stop in zip(self._starts, self._stops, strict=True):
            begin = max(start, first)
            if begin < stop:
                for number in range(history.block_at(begin), history.block_at(stop - 1) + 1):
                    history.hold(number)

    def shared_with(self, other: EntryPath) -> int:
        """Return the seq of the last entry that this path and another of the same history begin with, 0 without one."""
        shared = 0
        for (start, stop), (another, end) in zip(self.runs(), other.runs(), strict=False):
            if start != another:
                break
            shared = min(stop, end)
            if stop != end:
                break
        return self._history[shared - 1].seq if shared else 0

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the first position of each run of the path and the one after its last."""
        return zip(self._starts, self._stops, strict=True)

    def up_to(self, seq: int) -> EntryPath:
        """Return the beginning of the path that ends with the last entry whose seq is at most `seq`."""
        end = self._history.last_up_to(seq) + 1
        ranges = (range(start, min(stop, end)) for start, stop in zip(self._starts, self._stops, strict=True))
        return EntryPath(self._history, ranges)

    def between(self, first: int, last: int) -> EntryPath:
        """Return a part of the path that has all entries with a seq from `first` to `last`, and maybe some others."""
        begin = self._history.block_start(self._history.block_of(first))
        end = self._history.last_up_to(last) + 1
        pairs = zip(self._starts, self._stops, strict=True)
        return EntryPath(self._history, (range(max(start, begin), min(stop, end)) for start, stop in pairs))

    def parts(self, first: int, last: int, may_have: Callable[[bytes], bool], *, newest: bool) -> Iterator[PathPart]:
        """Yield the blocks with a seq from `first` to `last`, the newest first or in order, each with its entries.

        A block whose bytes do not pass `may_have` has none, and they are not decoded.
        """
        history = self._history
        low, high = history.block_of(first), history.block_of(last)
        runs = list(self.runs())
        for start, stop in reversed(runs) if newest else runs:
            numbers = range(max(low, history.block_at(start)), min(high, history.block_at(stop - 1)) + 1)
            for number in reversed(numbers) if newest else numbers:
                begin, end = history.block_start(number), history.block_start(number + 1)
                entries: list[HistoryEvent] = []
                if history.block_passes(number, may_have):
                    entries = list(history.entries(max(start, begin), min(stop, end)))
                entries = entries[::-1] if newest else entries
                yield PathPart(*history.block_bounds(number), history.block_size(number), entries)

    def with_entry(self, entry: HistoryEvent) -> EntryPath:
        """Return the path as it would be with one more entry."""
        ranges = (range(start, stop) for start, stop in zip(self._starts, self._stops, strict=True))
        return EntryPath(self._history, ranges, (*self._extra, entry))


def of_kind(path: Sequence[HistoryEvent], *kinds: type[EntryT]) -> Iterator[EntryT]:
    """Yield the entries of these kinds, in order."""
    entries = path.of(kind_bits(kinds)) if isinstance(path, EntryPath) else iter(path)
    return (entry for entry in entries if isinstance(entry, kinds))


def newest_of_kind(path: Sequence[HistoryEvent], *kinds: type[EntryT]) -> Iterator[EntryT]:
    """Yield the entries of these kinds, the newest first."""
    entries = path.newest_of(kind_bits(kinds)) if isinstance(path, EntryPath) else reversed(path)
    return (entry for entry in entries if isinstance(entry, kinds))


def since(path: Sequence[HistoryEvent], seq: int) -> Iterator[HistoryEvent]:
    """Yield the entries with a seq of at least `seq`, in order."""
    if isinstance(path, EntryPath):
        return path.since(seq)
    return (entry for entry in path if entry.seq >= seq)


def find_on(path: Sequence[HistoryEvent], seq: int) -> HistoryEvent | None:
    """Return the first entry of the path with this seq."""
    if isinstance(path, EntryPath):
        return path.find(seq)
    return next((entry for entry in path if entry.seq == seq), None)


def between(path: Sequence[HistoryEvent], first: int, last: int) -> Sequence[HistoryEvent]:
    """Return a part of the path that has all entries with a seq from `first` to `last`."""
    return path.between(first, last) if isinstance(path, EntryPath) else path
