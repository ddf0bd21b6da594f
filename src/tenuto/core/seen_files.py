"""What the model has seen of files on the way that it is on now: files have no branches, what is known of them has."""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.core.live import LiveSession
from tenuto.core.reminders import changed_files_message
from tenuto.protocol.message import DeveloperMessage, HistoryEvent, ToolResultMessage
from tenuto.session.path import newest_of_kind


def tell_files_of_other_ways(live: LiveSession, since: int) -> None:
    """Tell the model which files are not what it saw on this path, because something was done to them elsewhere.

    `since` is the seq of the last entry that this path has in common with the one that was left.
    """
    seen = dict.fromkeys(_used(live.session.entries_after(since)), "")
    missing = set(seen)
    for entry in newest_of_kind(live.session.path(), ToolResultMessage, DeveloperMessage) if missing else ():
        for use in entry.files:
            if use.path in missing and use.sha256:
                seen[use.path] = use.sha256
                missing.discard(use.path)
        if not missing:
            break
    changed = live.changed_files.settle(seen)
    if changed:
        live.session.append(changed_files_message(changed))


def _used(entries: Iterable[HistoryEvent]) -> Iterable[str]:
    for entry in entries:
        if isinstance(entry, ToolResultMessage | DeveloperMessage):
            yield from (use.path for use in entry.files)
