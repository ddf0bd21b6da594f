"""Which lines a fork takes along, byte for byte."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tenuto.protocol.entry import DequeuedEntry, QueuedEntry
from tenuto.protocol.message import HistoryEvent, UserMessage
from tenuto.session.log import Record, read_log
from tenuto.session.record import encode
from tenuto.session.tree import Tree


def copied_records(log: Path, tree: Tree, end: int) -> list[Record]:
    """Return the records of the path that ends at the seq `end`, as they stand in the file.

    What waits for a disk that failed is encoded anew. Queued texts that were not sent on this path are left out.
    """
    positions = tree.path_positions(end)
    settled = _settled([tree.entries[position] for position in positions])
    raw_lines = _read_raw(log, tree, set(positions))
    return [
        Record(entry, raw_lines[position] if position in raw_lines else encode(entry)[1].rstrip(b"\n"))
        for position in positions
        if not isinstance(entry := tree.entries[position], QueuedEntry) or entry.seq in settled
    ]


def _settled(path: list[HistoryEvent]) -> set[int]:
    """Return the seqs of the queued texts that were sent or taken back on the path."""
    sent = {entry.from_queued for entry in path if isinstance(entry, UserMessage)}
    return sent | {entry.target for entry in path if isinstance(entry, DequeuedEntry)}


def _read_raw(log: Path, tree: Tree, wanted: set[int]) -> dict[int, bytes]:
    """Return the lines by position; the file has the entries in the order of the tree."""
    lines: dict[int, bytes] = {}
    with contextlib.suppress(OSError), log.open("rb") as file:
        for position, record in enumerate(read_log(file, [])):
            if position in wanted and tree.entries[position].seq == record.entry.seq:
                lines[position] = record.raw
    return lines
