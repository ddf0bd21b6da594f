"""Which files the summarised part read and changed: data, never the model's memory (DESIGN section 5, R-036)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.message import (
    CompactionDetails,
    DeveloperMessage,
    DiffView,
    FileUse,
    HistoryEvent,
    ToolResultMessage,
)
from tenuto.text.estimate import estimate_text

MAX_LISTED = 100
"""Paths of each kind in the summary's text; `CompactionDetails` has all of them."""
MIN_LISTED = 3
_BLOCKS = re.compile(r"\s*<(read-files|modified-files)>.*?(?:</\1>|\Z)", re.DOTALL)


class FileOperations(msgspec.Struct, frozen=True, kw_only=True):
    """Paths in the order of their last use, oldest first; a modified file is not among the read ones."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def details(self) -> CompactionDetails:
        """Return the lists as they are stored: sorted."""
        return CompactionDetails(read_files=tuple(sorted(self.read)), modified_files=tuple(sorted(self.modified)))


def collect_files(
    summarised: Iterable[HistoryEvent],
    kept: Iterable[HistoryEvent],
    previous: CompactionDetails | None,
    tracker: Mapping[str, FileUse],
) -> FileOperations:
    """Return the files of `summarised`, on top of the lists of the `previous` compaction.

    Sources: what results say they touched, their diffs, branch summaries, and from the session's file `tracker` what
    neither the summarised nor the `kept` entries name.
    """
    read: dict[str, None] = {}
    modified: dict[str, None] = {}
    if previous is not None:
        read.update(dict.fromkeys(previous.read_files))
        modified.update(dict.fromkeys(previous.modified_files))
    in_tail = {path for entry in kept for path, _ in _touched(entry)}
    for path, use in tracker.items():
        if path not in in_tail:
            (read if use.op == "read" else modified).setdefault(path)
    for entry in summarised:
        for path, changed in _touched(entry):
            uses = modified if changed else read
            uses.pop(path, None)
            uses[path] = None
    return FileOperations(read=tuple(path for path in read if path not in modified), modified=tuple(modified))


def _touched(entry: HistoryEvent) -> Iterable[tuple[str, bool]]:
    """Yield the paths that an entry touched, and whether it changed them."""
    if isinstance(entry, ToolResultMessage):
        for use in entry.files:
            yield use.path, use.op != "read"
        for shown in entry.ui:
            if isinstance(shown, DiffView):
                yield shown.path, True
    elif isinstance(entry, DeveloperMessage):
        for use in entry.files:
            yield use.path, use.op != "read"
    elif isinstance(entry, BranchSummaryEntry):
        for path in entry.details.get("read_files", ()):
            yield path, False
        for path in entry.details.get("modified_files", ()):
            yield path, True


def format_file_lists(files: FileOperations, limit: int | None = None) -> str:
    """Return the tagged lists that end a summary: sorted, one path a line, at most the newest 100 of each kind.

    `limit` is in estimated tokens; the oldest paths go first until the lists fit it.
    """
    listed = MAX_LISTED
    text = _format(files, listed)
    while limit is not None and listed > MIN_LISTED and estimate_text(text) > limit:
        listed //= 2
        text = _format(files, listed)
    return text


def _format(files: FileOperations, listed: int) -> str:
    blocks: list[str] = []
    for tag, paths in (("read-files", files.read), ("modified-files", files.modified)):
        if paths:
            lines = "\n".join(sorted(paths[-listed:]))
            blocks.append(f"<{tag}>\n{lines}\n</{tag}>")
    return "\n\n".join(blocks)


def strip_file_lists(summary: str) -> str:
    """Return a summary without its file lists, so that the next round neither copies nor repeats them."""
    return _BLOCKS.sub("", summary).strip()


def with_file_lists(summary: str, files: FileOperations, limit: int | None = None) -> str:
    """Return a summary that ends with the present file lists, which may take `limit` estimated tokens."""
    lists = format_file_lists(files, limit)
    bare = strip_file_lists(summary)
    return f"{bare}\n\n{lists}" if lists else bare
