"""The tree of entries: history in file order, the leaf, and the path to it (DESIGN section 3).

The parent of an entry is the entry before it in the file, except right after a `branch`. So the tree is a list of
entries and a short list of the runs that branches cut it into. As rows from top to bottom, a run keeps its column.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import ToolCallPart
from tenuto.session.log.history import ROOT, History
from tenuto.session.view.path import EntryPath, newest_of_kind


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
