"""The tree of entries: history in file order, the leaf, and the path to it (DESIGN section 3).

The parent of an entry is the entry before it in the file, except right after a `branch`. So the tree is a list of
entries and a short list of the runs that branches cut it into. As rows from top to bottom, a run keeps its column.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, cast, overload

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import ToolCallPart
from tenuto.session.log.history import ANY, ROOT, History, kind_bits

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

    @property
    def history(self) -> History | None:
        """The history that all of the entries are in, `None` where one is not."""
        return None if self._extra else self._history

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


class Tree:
    """The shape of a history. `path` runs from the root to the leaf, without the header and `branch` entries."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._run_starts = [0, *(position + 1 for position, _ in history.branches)]
        self._run_parents = [ROOT, *(parent for _, parent in history.branches)]
        self.path = EntryPath(history, self._ranges_to_leaf())

    @property
    def leaf(self) -> int:
        """The seq of the entry after which the next one continues, 0 at the root."""
        return self.path[-1].seq if len(self.path) else 0

    @property
    def everything(self) -> EntryPath:
        """The entries of all branches in file order, without headers."""
        return EntryPath(self.history, self._without(self.history.headers, [range(len(self.history))]))

    def follow(self, entry: HistoryEvent) -> None:
        """Take note of the entry that the history just gained; a `branch` moves the leaf and makes `path` a new one."""
        if isinstance(entry, BranchEntry):
            position, parent = self.history.branches[-1]
            self._run_starts.append(position + 1)
            self._run_parents.append(parent)
            self.path = EntryPath(self.history, self._ranges_to_leaf())
        elif not isinstance(entry, HeaderEntry):
            self.path.grow(len(self.history) - 1)

    def find(self, seq: int) -> HistoryEvent | None:
        """Return the first entry with this seq."""
        position = self.history.find(seq)
        return None if position is None else self.history[position]

    def entries_after(self, seq: int) -> Iterator[HistoryEvent]:
        """Yield the entries with a higher seq, in file order."""
        return self.everything.since(seq + 1)

    def path_ranges(self, seq: int) -> list[range]:
        """Return the positions of the path that ends at `seq`, ascending."""
        return self._ranges_to(self.history.position_at(seq))

    def path_to(self, seq: int) -> EntryPath:
        """Return the path that ends at `seq`."""
        return EntryPath(self.history, self.path_ranges(seq))

    def end_of_step(self, seq: int) -> int:
        """Return `seq`, or the seq of the last result of its step if it lies inside one."""
        position = self.history.position_at(seq)
        missing = _open_calls(self.path_to(seq))
        end = seq
        if not missing:
            return end
        for entry in self.history.entries(position + 1, self._run_end(position)):
            if not missing or isinstance(entry, AssistantMessage):
                break
            if isinstance(entry, ToolResultMessage) and entry.call_id in missing:
                missing.remove(entry.call_id)
                end = entry.seq
        return end

    def open_calls(self) -> list[ToolCallPart]:
        """Return the calls of the path's last answer that have no result."""
        missing = _open_calls(self.path)
        answer = next(newest_of_kind(self.path, AssistantMessage), None) if missing else None
        calls = answer.tool_calls if answer else ()
        # Of calls that share an id the first ones have the results.
        found: list[ToolCallPart] = []
        for call in reversed(calls):
            if call.id in missing:
                missing.remove(call.id)
                found.append(call)
        return found[::-1]

    def _ranges_to_leaf(self) -> list[range]:
        end = len(self.history)
        return self._ranges_to(self._run_parents[-1] if self._run_starts[-1] == end else end - 1)

    def _ranges_to(self, position: int) -> list[range]:
        runs: list[range] = []
        while position != ROOT:
            run = bisect_right(self._run_starts, position) - 1
            is_branch = run + 1 < len(self._run_starts) and self._run_starts[run + 1] == position + 1
            runs.append(range(self._run_starts[run], position if is_branch else position + 1))
            position = self._run_parents[run]
        return self._without(self.history.headers, runs[::-1])

    def _without(self, positions: Iterable[int], ranges: list[range]) -> list[range]:
        for position in positions:
            ranges = [part for run in ranges for part in _cut(run, position)]
        return ranges

    def _run_end(self, position: int) -> int:
        run = bisect_right(self._run_starts, position)
        return self._run_starts[run] if run < len(self._run_starts) else len(self.history)


def _cut(run: range, position: int) -> tuple[range, ...]:
    if position not in run:
        return (run,)
    return range(run.start, position), range(position + 1, run.stop)


def _open_calls(path: EntryPath) -> list[str]:
    """Return the ids of the calls of the path's last answer that have no result on it."""
    results: list[str] = []
    for entry in newest_of_kind(path, AssistantMessage, ToolResultMessage):
        if isinstance(entry, ToolResultMessage):
            results.append(entry.call_id)
            continue
        missing = [call.id for call in entry.tool_calls]
        for call_id in results:
            if call_id in missing:
                missing.remove(call_id)
        return missing
    return []


_ROOT = -1


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the tree. `depth` counts the branch points at which its way leaves the one that goes on.

    `ways` are the seqs of the entries that it goes on with, oldest first.
    """

    entry: HistoryEvent
    depth: int
    ways: tuple[int, ...] = ()


def read_rows(
    entries: Sequence[HistoryEvent], on_path: Collection[int], is_shown: Callable[[HistoryEvent], bool]
) -> list[TreeRow]:
    """Return the shown entries in the order of a tree.

    `entries` is a stretch of the log with its `branch` entries; what continues something before it begins a tree of its
    own. `on_path` has the seqs of the active path, which is never indented; elsewhere the newest way goes on.
    """
    children = _children(entries, is_shown)
    rows: list[TreeRow] = []
    waiting = _in_order(children[_ROOT], entries, on_path, 0)
    while waiting:
        position, depth = waiting.pop()
        following = children.get(position, [])
        ways = tuple(entries[child].seq for child in following)
        rows.append(TreeRow(entry=entries[position], depth=depth, ways=ways))
        waiting += _in_order(following, entries, on_path, depth)
    return rows


def _children(entries: Sequence[HistoryEvent], is_shown: Callable[[HistoryEvent], bool]) -> dict[int, list[int]]:
    """Return for each shown position those that it goes on with; hidden entries are passed through."""
    positions: dict[int, int] = {}
    nearest: list[int] = []
    """For each position the nearest shown one on the way to the root, itself included."""
    children: dict[int, list[int]] = {_ROOT: []}
    parent = _ROOT
    for position, entry in enumerate(entries):
        positions.setdefault(entry.seq, position)
        above = nearest[parent] if parent != _ROOT else _ROOT
        if isinstance(entry, HeaderEntry) or not is_shown(entry):
            nearest.append(above)
        else:
            children.setdefault(above, []).append(position)
            nearest.append(position)
        parent = position
        if isinstance(entry, BranchEntry):
            parent = _find(entries, positions, entry.parent, position)
    return children


def _find(entries: Sequence[HistoryEvent], positions: dict[int, int], seq: int, before: int) -> int:
    """Return the position of `seq`, or of the nearest entry before it where its line was damaged."""
    if seq > 0 and seq in positions:
        return positions[seq]
    return next((at for at in range(before - 1, -1, -1) if 0 < entries[at].seq < seq), _ROOT)


def _in_order(
    places: Sequence[int], entries: Sequence[HistoryEvent], on_path: Collection[int], depth: int
) -> list[tuple[int, int]]:
    """Return ways on, to be taken from the end: the side branches first, the oldest of them on top, then the main one.

    The main one keeps its column.
    """
    if not places:
        return []
    main = next((at for at in places if entries[at].seq in on_path), places[-1])
    return [(main, depth), *((at, depth + 1) for at in reversed(places) if at != main)]
