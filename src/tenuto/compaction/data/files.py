"""Which files the summarised part read and changed: data, never the model's memory (DESIGN section 5, R-036)."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from posixpath import splitext

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
_GATHERED = re.compile(r"(?:[\w.@+~/-]*/)?[\w.@+~-]+")
"""Paths that may share a line with others of their folder: nothing in them can be taken for the notation."""
_PLAIN = re.compile(r"(?![\s\"…])[^{}<>\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+(?<!\s)")
"""Paths that can stand as they are on a line of their own; every other one stands as a JSON string."""
_BLOCKS = re.compile(r"\s*<(read-files|modified-files)>.*?(?:</\1>|\Z)", re.DOTALL)


class FileOperations(msgspec.Struct, frozen=True, kw_only=True):
    """Paths in the order of their last use, oldest first; a modified file is not among the read ones.

    `directory` is the working directory: paths in it are listed relative to it. Empty: all as they are.
    """

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    directory: str = ""

    def details(self) -> CompactionDetails:
        """Return the lists as they are stored: sorted."""
        return CompactionDetails(read_files=tuple(sorted(self.read)), modified_files=tuple(sorted(self.modified)))


def collect_files(
    summarised: Iterable[HistoryEvent],
    kept: Iterable[HistoryEvent],
    previous: CompactionDetails | None,
    tracker: Mapping[str, FileUse],
    directory: str = "",
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
    only_read = tuple(path for path in read if path not in modified)
    return FileOperations(read=only_read, modified=tuple(modified), directory=directory)


def _touched(entry: HistoryEvent) -> Iterable[tuple[str, bool]]:
    """Yield the paths that an entry touched, and whether it changed them."""
    if isinstance(entry, ToolResultMessage):
        for use in entry.files:
            yield use.path, use.op != "read"
        for shown in () if entry.files else entry.ui:  # a change that another program made has no use of ours
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
    """Return the tagged lists that end a summary: sorted, at most the newest 100 of each kind.

    A line is a path, or those of one folder: `src/shop/{cart,price}.py`. What is left out is counted. `limit` is in
    estimated tokens; to fit it the read ones go first, then the modified ones, the oldest first of each.
    """
    modified = _shown(files.modified, files.directory)
    read = _shown(files.read, files.directory)
    most_modified, most_read = min(len(modified), MAX_LISTED), min(len(read), MAX_LISTED)

    def listed(count: int) -> str:
        changed = min(count, most_modified)
        return "\n\n".join(
            block
            for tag, paths, shown in (("read-files", read, count - changed), ("modified-files", modified, changed))
            if (block := _block(tag, paths, shown))
        )

    most = most_modified + most_read
    whole = listed(most)
    if limit is None or estimate_text(whole) <= limit:
        return whole
    counts = range(min(MIN_LISTED, most), most)
    # The last count whose lists fit; the first one where none does.
    place = bisect_right(counts, limit, key=lambda count: estimate_text(listed(count)))
    return listed(counts[max(0, place - 1)]) if counts else whole


def _shown(paths: Iterable[str], directory: str) -> list[str]:
    """Return the paths as they are listed, in the same order: relative to `directory` where they are in it."""
    start = f"{directory.rstrip('/')}/" if directory else ""
    return list(dict.fromkeys(path.removeprefix(start) or path for path in paths))


def _block(tag: str, paths: Sequence[str], count: int) -> str:
    """Return the list with the newest `count` paths, and how many there are beside them; empty where there is none."""
    if not paths:
        return ""
    left_out = len(paths) - count
    lines = _gather(paths[left_out:])
    if left_out:
        lines.append(f"… {left_out:,} more; recall or the session's details have all")
    return "\n".join((f"<{tag}>", *lines, f"</{tag}>"))


def _gather(paths: Iterable[str]) -> list[str]:
    """Return the lines for some paths, sorted: those of one folder stand together where their names allow it."""
    folders: dict[str, list[str]] = {}
    lines: list[str] = []
    for path in sorted(paths):
        if _GATHERED.fullmatch(path):
            folder, slash, name = path.rpartition("/")
            folders.setdefault(folder + slash, []).append(name)
        else:
            lines.append(path if _PLAIN.fullmatch(path) else json.dumps(path).replace("<", "\\u003c"))
    lines += (folder + _join_names(names) for folder, names in folders.items())
    return sorted(lines)


def _join_names(names: Sequence[str]) -> str:
    """Return names as one: `cart.py`, `{cart,price}.py`, or `{cart.py,style.css}`."""
    if len(names) == 1:
        return names[0]
    ends = {splitext(name)[1] for name in names}
    end = ends.pop() if len(ends) == 1 else ""
    return f"{{{','.join(name.removesuffix(end) for name in names)}}}{end}"


def strip_file_lists(summary: str) -> str:
    """Return a summary without its file lists, so that the next round neither copies nor repeats them."""
    return _BLOCKS.sub("", summary).strip()


def with_file_lists(summary: str, files: FileOperations, limit: int | None = None) -> str:
    """Return a summary that ends with the present file lists, which may take `limit` estimated tokens."""
    lists = format_file_lists(files, limit)
    bare = strip_file_lists(summary)
    return f"{bare}\n\n{lists}" if lists else bare
