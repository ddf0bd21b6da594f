"""Keeps index and metadata up with a log that grows, so that the next opening is fast, after a crash as well.

Both can be rebuilt from the log; a disk that takes neither only makes the next opening slower.
"""

from __future__ import annotations

from pathlib import Path

from tenuto.session.library.meta import Meta, write_meta
from tenuto.session.log.history import History
from tenuto.session.log.index import IndexWriter, StoredIndex, log_check, remove_index
from tenuto.session.log.log import LOG_NAME, LogWriter
from tenuto.session.view.state import SessionState

_META_BYTES = 4 << 20
"""How far the log may grow before the metadata is saved although nothing has settled: a task can run for days."""


class Keeping:
    """What one writer keeps beside its log. `folded` is the length of the log, in bytes, that `meta.json` covers."""

    def __init__(self, directory: Path, stored: StoredIndex, folded: int) -> None:
        self._directory = directory
        self._index = IndexWriter(directory, stored)
        self._folded = folded

    def save_index(self, log: LogWriter, history: History) -> bool:
        """Save what the index has gained; return whether the metadata has fallen far behind."""
        if not log.is_known or not history.is_placed:
            return False
        self._index.save(history.blocks, self._directory / LOG_NAME)
        return log.size - self._folded > _META_BYTES

    def save_meta(self, log: LogWriter, history: History, meta: Meta, state: SessionState) -> None:
        """Store `meta`, with `state` and its place in the log where that is known, once the log is on the disk."""
        log.flush()
        log.sync()
        path = self._directory / LOG_NAME
        try:
            if history.is_placed:
                meta.seq, meta.size, meta.state = history.highest, log.size, state
                with path.open("rb") as file:
                    meta.check = log_check(file, meta.size)
                self._index.save(history.blocks, path)
            else:
                remove_index(self._directory)
            if log.waiting == 0:
                write_meta(self._directory, meta)
                self._folded = meta.size
        except OSError:
            return
