"""The tree of entries: history in file order, the leaf, and the path to it (DESIGN section 3).

The parent of an entry is the entry before it in the file, except right after a `branch`. So the tree is a list of
entries and a short list of the runs that branches cut it into.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import ToolCallPart

_ROOT = -1


class Tree:
    """All entries of a session. `path` runs from the root to the leaf, without the header and `branch` entries."""

    def __init__(self) -> None:
        self.entries: list[HistoryEvent] = []
        self.path: list[HistoryEvent] = []
        self.highest_seq = 0
        self._positions: dict[int, int] = {}
        self._run_starts = [0]
        self._run_parents = [_ROOT]

    @property
    def leaf(self) -> int:
        """The seq of the entry after which the next one continues, 0 at the root."""
        return self.path[-1].seq if self.path else 0

    def add(self, entry: HistoryEvent) -> None:
        """Append an entry; a `branch` moves the leaf, which makes `path` a new list."""
        position = len(self.entries)
        self.entries.append(entry)
        self.highest_seq = max(self.highest_seq, entry.seq)
        self._positions.setdefault(entry.seq, position)  # a reference to a duplicate seq means the first
        if isinstance(entry, BranchEntry):
            parent = self._position_before(entry.parent)
            self._run_starts.append(position + 1)
            self._run_parents.append(parent)
            self.path = [self.entries[at] for at in self._positions_to(parent)]
        elif not isinstance(entry, HeaderEntry):
            self.path.append(entry)

    def find(self, seq: int) -> HistoryEvent | None:
        """Return the first entry with this seq."""
        position = self._positions.get(seq)
        return None if position is None else self.entries[position]

    def entries_after(self, seq: int) -> Iterator[HistoryEvent]:
        """Yield the entries with a higher seq, in file order."""
        start = self._positions.get(seq, -1) + 1
        return (entry for entry in self.entries[start:] if entry.seq > seq)

    def path_positions(self, seq: int) -> list[int]:
        """Return the positions in `entries` of the path that ends at `seq`."""
        return self._positions_to(self._position_before(seq))

    def path_to(self, seq: int) -> list[HistoryEvent]:
        """Return the path that ends at `seq`."""
        return [self.entries[at] for at in self.path_positions(seq)]

    def end_of_step(self, seq: int) -> int:
        """Return `seq`, or the seq of the last result of its step if it lies inside one."""
        position = self._position_before(seq)
        path = [self.entries[at] for at in self._positions_to(position)]
        missing = _open_calls(path)
        end = seq
        for entry in self.entries[position + 1 : self._run_end(position)]:
            if not missing or isinstance(entry, AssistantMessage):
                break
            if isinstance(entry, ToolResultMessage) and entry.call_id in missing:
                missing.remove(entry.call_id)
                end = entry.seq
        return end

    def open_calls(self) -> list[ToolCallPart]:
        """Return the calls of the path's last answer that have no result."""
        missing = _open_calls(self.path)
        calls: list[ToolCallPart] = []
        for entry in reversed(self.path):
            if isinstance(entry, AssistantMessage):
                calls = [part for part in entry.parts if isinstance(part, ToolCallPart)]
                break
        # Of calls that share an id the first ones have the results.
        found: list[ToolCallPart] = []
        for call in reversed(calls):
            if call.id in missing:
                missing.remove(call.id)
                found.append(call)
        return found[::-1]

    def _position_before(self, seq: int) -> int:
        """Return the position of `seq`, or of the nearest entry before it when its line was damaged."""
        if seq in self._positions and seq > 0:
            return self._positions[seq]
        for position in range(len(self.entries) - 1, -1, -1):
            if 0 < self.entries[position].seq < seq:
                return position
        return _ROOT

    def _positions_to(self, position: int) -> list[int]:
        runs: list[range] = []
        while position != _ROOT:
            run = bisect_right(self._run_starts, position) - 1
            runs.append(range(self._run_starts[run], position + 1))
            position = self._run_parents[run]
        return [
            at for run in reversed(runs) for at in run if not isinstance(self.entries[at], (BranchEntry, HeaderEntry))
        ]

    def _run_end(self, position: int) -> int:
        run = bisect_right(self._run_starts, position)
        return self._run_starts[run] if run < len(self._run_starts) else len(self.entries)


def _open_calls(path: list[HistoryEvent]) -> list[str]:
    """Return the ids of the calls of the path's last answer that have no result on it."""
    results: list[str] = []
    for entry in reversed(path):
        if isinstance(entry, ToolResultMessage):
            results.append(entry.call_id)
        elif isinstance(entry, AssistantMessage):
            missing = [part.id for part in entry.parts if isinstance(part, ToolCallPart)]
            for call_id in results:
                if call_id in missing:
                    missing.remove(call_id)
            return missing
    return []
