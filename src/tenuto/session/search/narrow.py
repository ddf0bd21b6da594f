"""The entries of a path that may have what is looked for: those that the index names, and all that it does not know."""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Self

from tenuto.protocol.message import HistoryEvent
from tenuto.session.log.history import History
from tenuto.session.log.log import scan_log
from tenuto.session.search.index import SearchDamagedError, SearchIndex, open_search
from tenuto.session.view.tree import EntryPath


class Narrowed:
    """Entries of a path that may have all of some texts, in file order or the newest first. Use it in one thread."""

    def __init__(self, history: History, parts: list[tuple[int, int]], index: SearchIndex, runs: list[int]) -> None:
        self._history = history
        self._parts = parts
        self._index = index
        self._runs = runs
        self._log = history.log.open("rb")
        self.decoded = 0
        """Entries that were read because the index named them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._index.close()
        self._log.close()

    def __iter__(self) -> Iterator[HistoryEvent]:
        known = self._index.position
        for start, stop in self._parts:
            for number in self._between(start, min(stop, known)):
                yield from self._entries(number, start, stop)
            yield from self._history.entries(max(start, known), stop)

    def __reversed__(self) -> Iterator[HistoryEvent]:
        known = self._index.position
        for start, stop in reversed(self._parts):
            yield from self._history.entries_backwards(max(start, known), stop)
            for number in reversed(self._between(start, min(stop, known))):
                yield from reversed(self._entries(number, start, stop))

    def _between(self, start: int, stop: int) -> Sequence[int]:
        """Return the runs that were named and have a position from `start` up to `stop`."""
        if start >= stop:
            return ()
        first = bisect_left(self._runs, self._index.run_at(start))
        return self._runs[first : bisect_right(self._runs, self._index.run_at(stop - 1))]

    def _entries(self, number: int, start: int, stop: int) -> list[HistoryEvent]:
        """Return the entries of a run that lie on a part of the path."""
        run = self._index.run(number)
        first, end = max(start, run.position), min(stop, run.position + run.count)
        self._log.seek(run.place.offset)
        lines = scan_log(io.BytesIO(self._log.read(run.size)), run.place)
        entries = [record.entry for line in lines for record in line.records]
        if len(entries) != run.count:  # the file changed under us
            return list(self._history.entries(first, end))
        self.decoded += len(entries)
        return entries[first - run.position : end - run.position]


def narrow(entries: Sequence[HistoryEvent], needs: Sequence[str]) -> Narrowed | None:
    """Return the entries that may have all of the texts `needs`; `None` where nothing is known: look at all of them."""
    history = entries.history if needs and isinstance(entries, EntryPath) else None
    index = open_search(history) if history is not None else None
    if history is None or index is None or not isinstance(entries, EntryPath):
        return None
    import sqlite3

    try:
        runs = index.runs_with(needs)
        if runs is not None:
            return Narrowed(history, list(entries.runs()), index, runs)
    except (sqlite3.Error, OSError, SearchDamagedError):
        pass
    index.close()
    return None
