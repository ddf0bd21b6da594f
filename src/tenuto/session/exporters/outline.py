"""The shape of a session: the active path, and the pieces of history beside it (DESIGN section 3).

The same rule as in `session/view/tree.py`: the parent of an entry is the entry before it in the file, except right
after a `branch`. Here it is computed at once, for all pieces together, so that many branches cost no more than few.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.describe import Place, is_shown
from tenuto.session.exporters.items import find_undone

ROOT = -1


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that follow one another. `parent` is the piece that it leaves, `after` the position there (-1: root).

    `positions` are places in the file order, one for each entry.
    """

    entries: tuple[HistoryEvent, ...]
    positions: tuple[int, ...]
    parent: int = ROOT
    after: int = ROOT


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces in which something is to be seen. The first is the active path, the others are what was left."""

    pieces: tuple[Piece, ...]

    @property
    def path(self) -> tuple[HistoryEvent, ...]:
        """The entries from the root to the leaf, without header and branches."""
        return self.pieces[0].entries

    @property
    def undone(self) -> frozenset[int]:
        """The seqs of what was taken back on the path, or on the branch that it stands on."""
        return frozenset(seq for piece in self.pieces for seq in find_undone(piece.entries))

    @property
    def branches(self) -> tuple[Piece, ...]:
        """What is not on the active path."""
        return self.pieces[1:]


class _Runs:
    """The stretches that `branch` entries cut the file into, each with the position of its parent."""

    def __init__(self, entries: Sequence[HistoryEvent]) -> None:
        self.starts = [0]
        self.parents = [ROOT]
        positions: dict[int, int] = {}
        for position, entry in enumerate(entries):
            positions.setdefault(entry.seq, position)
            if isinstance(entry, BranchEntry):
                self.starts.append(position + 1)
                self.parents.append(_find_parent(entries, positions, entry.parent, position))
        self.ends = [*self.starts[1:], len(entries)]

    def at(self, position: int) -> int:
        """Return the run that a position lies in."""
        return bisect_right(self.starts, position) - 1


def _find_parent(entries: Sequence[HistoryEvent], positions: dict[int, int], seq: int, before: int) -> int:
    """Return the position of `seq`, or of the nearest entry before it when its line was damaged."""
    if seq > 0 and seq in positions:
        return positions[seq]
    for position in range(before, -1, -1):
        if 0 < entries[position].seq < seq:
            return position
    return ROOT


def read_outline(entries: Sequence[HistoryEvent]) -> Outline:
    """Return the active path and everything beside it. The cost is that of the entries, whatever the branches."""
    runs = _Runs(entries)
    taken = _active_ends(runs)
    stretches = [range(runs.starts[run], end) for run, end in sorted(taken.items())]
    owners = [0] * len(entries)
    pieces = [_piece(entries, [at for stretch in stretches for at in stretch])]
    for run, (start, end) in enumerate(zip(runs.starts, runs.ends, strict=True)):
        begin = taken.get(run, start)
        after = begin - 1 if run in taken else runs.parents[run]
        piece = _piece(entries, range(begin, end), owners[after] if after != ROOT else ROOT, after)
        if any(is_shown(entry, Place.EXPORT) for entry in piece.entries):
            owners[begin:end] = [len(pieces)] * (end - begin)
            pieces.append(piece)
        else:
            owners[begin:end] = [max(piece.parent, 0)] * (end - begin)
    return Outline(pieces=tuple(pieces))


def _active_ends(runs: _Runs) -> dict[int, int]:
    """Return where each run of the active path stops being on it."""
    run, end = len(runs.starts) - 1, runs.ends[-1]
    taken = {run: end}
    while runs.parents[run] != ROOT:
        end = runs.parents[run] + 1
        run = runs.at(end - 1)
        taken[run] = end
    return taken


def _piece(entries: Sequence[HistoryEvent], places: Sequence[int], parent: int = ROOT, after: int = ROOT) -> Piece:
    shown = [at for at in places if not isinstance(entries[at], (HeaderEntry, BranchEntry))]
    return Piece(entries=tuple(entries[at] for at in shown), positions=tuple(shown), parent=parent, after=after)
