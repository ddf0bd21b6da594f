"""The entries of a path that may have what is looked for: those that the index names, and all that it does not know."""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from tenuto.protocol.message import HistoryEvent
from tenuto.session.log.history import History
from tenuto.session.log.log import scan_log
from tenuto.session.search.index import Run, SearchDamagedError, SearchIndex, open_search
from tenuto.session.search.needs import has_letters, letters_of
from tenuto.session.view.tree import EntryPath


class Narrowed:
    """Entries of a path that may have all of some texts, in file order or the newest first. Use it in one thread."""

    def __init__(
        self,
        history: History,
        parts: list[tuple[int, int]],
        index: SearchIndex,
        runs: Sequence[int],
        needs: Iterable[str],
    ) -> None:
        self._history = history
        self._parts = parts
        self._index = index
        self._runs = runs
        self._letters = letters_of(needs)
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
        """Return the entries of a run that lie on a part of the path and may have what is looked for."""
        run = self._index.run(number)
        first, end = max(start, run.position), min(stop, run.position + run.count)
        self._log.seek(run.place.offset)
        data = self._log.read(run.size)
        wanted = self._worth_decoding(run, data)
        lines = scan_log(io.BytesIO(data) if wanted is None else wanted.values(), run.place)
        records = [line.records for line in lines]
        if wanted is None:
            entries = [record.entry for found in records for record in found]
            places: Sequence[int] = range(run.count)
        else:
            entries = [found[0].entry for found in records if len(found) == 1]
            places = [*wanted]
        if len(entries) != len(places):  # the file changed under us
            return list(self._history.entries(first, end))
        self.decoded += len(entries)
        return [entry for place, entry in zip(places, entries, strict=True) if first <= run.position + place < end]

    def _worth_decoding(self, run: Run, data: bytes) -> dict[int, bytes] | None:
        """Return the lines that have all the letters, or may have them, by number; `None` where only decoding tells."""
        if run.aside is None or not self._letters:
            return None
        lowered = data.lower().split(b"\n")[:-1]
        if len(lowered) != run.count:
            return None
        wanted = [
            number for number, line in enumerate(lowered) if number in run.aside or has_letters(line, self._letters)
        ]
        if not wanted:
            return {}
        lines = data.split(b"\n")
        return {number: lines[number] + b"\n" for number in wanted}


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
            return Narrowed(history, list(entries.runs()), index, runs, needs)
    except (sqlite3.Error, OSError, SearchDamagedError):
        pass
    index.close()
    return None
