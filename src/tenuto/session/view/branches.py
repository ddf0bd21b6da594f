"""The tree of a session as rows from top to bottom: runs keep their column, only side branches are indented. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import HistoryEvent

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
