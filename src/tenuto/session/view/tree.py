"""The tree of entries: history in file order, the leaf, and the path to it (DESIGN section 3).

The parent of an entry is the entry before it in the file, except right after a `branch`. So the tree is a list of
entries and a short list of the runs that branches cut it into.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

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
