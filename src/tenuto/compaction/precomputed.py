"""A summary that was written ahead of time, and when it still holds (R-060). Pure.

It covers a frozen beginning of the path. What came later is kept word for word behind it, so it holds as long as that
beginning is still there and nothing changed the view or the pins since.
"""

from __future__ import annotations

import msgspec

from tenuto.compaction.validate import Standing
from tenuto.protocol.entry import BranchEntry, PinEntry, UndoEntry, UnpinEntry, ViewEditEntry
from tenuto.protocol.message import CompactionEntry

_CHANGES = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, PinEntry, UnpinEntry)


class PreparedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`summary` stands for everything before the entry `first_kept_index`, as of the leaf `covered`; both are seqs."""

    summary: str
    first_kept_index: int
    covered: int
    model_id: str


def still_holds(prepared: PreparedSummary, standing: Standing) -> bool:
    """Say whether the history begins with exactly what was covered, for the same model."""
    if prepared.model_id != standing.model_id:
        return False
    for entry in reversed(standing.path):
        if entry.seq <= prepared.covered:
            return entry.seq == prepared.covered
        if isinstance(entry, _CHANGES):
            return False
    return False
