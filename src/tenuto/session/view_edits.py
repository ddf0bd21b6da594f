"""Compactions that only edit the view, in the form in which all compactions are shown."""

from __future__ import annotations

from typing import get_args

from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import CompactionReason

_WHAT_WAS_DONE = {"hide": "results are hidden", "images": "messages are without some of their images"}
_REASONS: dict[str, CompactionReason] = {reason: reason for reason in get_args(CompactionReason)}


def compaction_of_edits(entry: ViewEditEntry) -> CompactionEntry:
    """Return a compaction that only edits the view in the form in which all are shown; it is no entry of the log."""
    what = _WHAT_WAS_DONE.get(entry.rung, "results are shortened")
    seqs = ", ".join(str(edit.target) for edit in entry.edits[:20]) + (" …" if len(entry.edits) > 20 else "")
    return CompactionEntry(
        seq=entry.seq,
        ts=entry.ts,
        summary=f"{len(entry.edits)} {what} in the model's view; the history has them whole: {seqs}.",
        edits=entry.edits,
        tokens_before=entry.tokens_before,
        tokens_after=entry.tokens_after,
        rough=entry.rough,
        trigger=entry.trigger,
        reason=_REASONS.get(entry.reason, "manual"),
        rung=entry.rung,
        duration=entry.duration,
    )
