"""Leaving a part of the conversation for notes on it: what is left, what the notes are made from (DESIGN 6). Pure.

Two paths share everything up to their deepest common ancestor; what only the old one has is what is left. Of that, the
newest entries that fit the summariser's window are read, and the summaries that lie in the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenuto.compaction.data.files import FileOperations, collect_files, with_file_lists
from tenuto.compaction.measure.budget import MIN_FREE
from tenuto.compaction.plan.entries import Visible, visible_entry
from tenuto.compaction.summary.digest import digest_entries
from tenuto.compaction.summary.serialize import serialize
from tenuto.compaction.summary.view import SessionData
from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.message import CompactionDetails, CompactionEntry, HistoryEvent
from tenuto.protocol.usage import Usage
from tenuto.session.view.tree import EntryPath, since
from tenuto.text.estimate import estimate_text

OUTPUT = 2_048
"""Tokens that the notes on a branch may have."""
_LISTS = 512
"""Tokens that the file lists may take."""


class LeftBranch(msgspec.Struct, frozen=True, kw_only=True):
    """What is left, and what notes on it are made from. Tokens are plain estimates.

    `from_seq` is the leaf that is left. `read` is what the
    summariser is shown, oldest first: the newest entries, and before them the summaries of what did not fit.
    """

    from_seq: int
    left: tuple[HistoryEvent, ...]
    read: tuple[Visible, ...]
    tokens: int
    files: FileOperations


def common_ancestor(first: Sequence[HistoryEvent], second: Sequence[HistoryEvent]) -> int:
    """Return the seq of the last entry that both paths begin with, 0 when they share nothing."""
    if isinstance(first, EntryPath) and isinstance(second, EntryPath):
        return first.shared_with(second)
    shared = 0
    for mine, other in zip(first, second, strict=False):
        if mine.seq != other.seq:
            break
        shared = mine.seq
    return shared


def leave_branch(
    old_path: Sequence[HistoryEvent], new_path: Sequence[HistoryEvent], room: int, directory: str = ""
) -> LeftBranch:
    """Return what is left when the leaf moves from the end of `old_path` to the end of `new_path`.

    `room` is what the summariser can be shown, in estimated tokens. Files are listed relative to `directory`.
    """
    left = tuple(since(old_path, common_ancestor(old_path, new_path) + 1))
    read, tokens = _take_newest(left, room)
    return LeftBranch(
        from_seq=old_path[-1].seq if old_path else 0,
        left=left,
        read=read,
        tokens=tokens,
        files=collect_branch_files(left, directory),
    )


def _take_newest(left: Sequence[HistoryEvent], room: int) -> tuple[tuple[Visible, ...], int]:
    """Return the newest entries within `room`, then the newest summary of what did not fit; at least one entry."""
    taken: list[Visible] = []
    used = 0
    for place in range(len(left) - 1, -1, -1):
        entry = visible_entry(left[place])
        if entry is None:
            continue
        tokens = estimate_text(serialize((entry,)))
        if taken and used + tokens > room:
            summary = _summary_of_rest(left[: place + 1])
            return tuple(reversed([*taken, *summary])), used
        taken.append(entry)
        used += tokens
    return tuple(reversed(taken)), used


def _summary_of_rest(rest: Sequence[HistoryEvent]) -> list[Visible]:
    """Return the newest summary among entries that are not shown; it stands for most of them."""
    for entry in reversed(rest):
        if isinstance(entry, BranchSummaryEntry):
            return [entry]
        if isinstance(entry, CompactionEntry) and entry.summary:
            return [BranchSummaryEntry(seq=entry.seq, summary=entry.summary, from_seq=entry.first_kept_index)]
    return []


def collect_branch_files(left: Sequence[HistoryEvent], directory: str = "") -> FileOperations:
    """Return the files of what is left, with those that its summaries name."""
    previous: CompactionDetails | None = None
    for entry in left:
        if isinstance(entry, CompactionEntry) and entry.details is not None:
            earlier = previous or CompactionDetails()
            previous = CompactionDetails(
                read_files=(*earlier.read_files, *entry.details.read_files),
                modified_files=(*earlier.modified_files, *entry.details.modified_files),
            )
    return collect_files(left, (), previous, {}, directory)


def room_for(window: int, calibration: float, reserve: int) -> int:
    """Return the estimated tokens of conversation that a summariser with this window can be shown.

    `reserve` is the tokens of the window that stay free; at most a quarter of it does.
    """
    free = min(reserve, window // 4) + length_for(window)
    return max(MIN_FREE, int((window - free) / calibration))


def length_for(window: int) -> int:
    """Return how long the notes may be in a window of so many tokens."""
    return min(OUTPUT, window // 8)


def digest_branch(branch: LeftBranch, session_data: SessionData, length: int) -> str:
    """Return notes that need no model, under the usual headings."""
    return digest_entries(branch.read, session_data, "", length)


def branch_entry(branch: LeftBranch, notes: str, usage: Usage | None = None) -> BranchSummaryEntry:
    """Return the entry that stands for what is left; the notes end with its file lists."""
    details = branch.files.details()
    lists = {"read_files": list(details.read_files), "modified_files": list(details.modified_files)}
    return BranchSummaryEntry(
        summary=with_file_lists(notes, branch.files, _LISTS),
        from_seq=branch.from_seq,
        details={name: paths for name, paths in lists.items() if paths},
        usage=usage,
    )
