"""Which lines a fork takes along, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tenuto.private_files import make_directory, open_private, write_all
from tenuto.protocol.entry import DequeuedEntry, HeaderEntry, QueuedEntry, UnknownEntry
from tenuto.protocol.message import HistoryEvent, UserMessage
from tenuto.session.errors import SessionUnreadable
from tenuto.session.log.history import History
from tenuto.session.log.record import encode
from tenuto.session.view.path import EntryPath, of_kind
from tenuto.session.view.tree import Tree

_BATCH_BYTES = 1 << 20


def write_fork(log: Path, header: HeaderEntry, tree: Tree, end: int) -> None:
    """Write the log of a fork: its header and the lines of the path that ends at the seq `end`, as they stand.

    Queued texts that were not sent on this path are left out. Raises `OSError`, and `SessionUnreadable` when the lines
    cannot be read; then there is no log.
    """
    make_directory(log.parent)
    descriptor = open_private(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        batch = bytearray(encode(header)[1])
        for line in _copied_lines(tree, end):
            batch += line + b"\n"
            if len(batch) > _BATCH_BYTES:
                write_all(descriptor, bytes(batch))
                batch.clear()
        write_all(descriptor, bytes(batch))
    except (OSError, SessionUnreadable):
        log.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _copied_lines(tree: Tree, end: int) -> Iterator[bytes]:
    ranges = tree.path_ranges(end)
    settled = _settled(EntryPath(tree.history, ranges))
    for run in ranges:
        for entry, line in _lines(tree.history, run):
            if not isinstance(entry, QueuedEntry) or entry.seq in settled:
                yield line


def _settled(path: EntryPath) -> set[int]:
    """Return the seqs of the queued texts that were sent or taken back on the path."""
    return {
        entry.from_queued if isinstance(entry, UserMessage) else entry.target
        for entry in of_kind(path, UserMessage, DequeuedEntry)
    }


def _lines(history: History, run: range) -> Iterator[tuple[HistoryEvent, bytes]]:
    """Yield entries and their lines; what waits for a disk that failed is encoded anew."""
    position = run.start
    while position < run.stop:
        number = history.block_at(position)
        first = history.block_start(number)
        entries = history.block_entries(number)
        records = list(history.block_records(number))
        for index in range(position - first, min(run.stop - first, len(entries))):
            entry = entries[index]
            record = records[index] if index < len(records) else None
            same = record is not None and record.entry.seq == entry.seq
            yield entry, record.raw if record is not None and same else _encode(entry)
        position = first + len(entries)


def _encode(entry: HistoryEvent) -> bytes:
    return entry.raw if isinstance(entry, UnknownEntry) else encode(entry)[1].rstrip(b"\n")
