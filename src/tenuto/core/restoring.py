"""Files as they were, for a session that is open: the last turn's edits, or everything since an entry."""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.core.errors import TaskFailedError
from tenuto.core.files_back import describe, last_turn_with_changes, plan_ways_back, take_back, turn_entries
from tenuto.core.live import READ_ONLY, LiveSession
from tenuto.protocol.entry import RESTORED_KIND
from tenuto.protocol.message import FilesEntry, HistoryEvent


def undo_turn(live: LiveSession) -> str:
    """Take back what the newest turn with edits did to files; return what was done. Raises `TaskFailedError`."""
    if live.session.is_read_only:
        raise TaskFailedError(READ_ONLY)
    path = live.session.path()
    turn = last_turn_with_changes(path)
    if not turn:
        raise TaskFailedError("nothing to undo: no file edits are left (changes made by commands are not tracked)")
    return _restore(live, turn_entries(path, turn), turn, is_turn=True)


def restore_files(live: LiveSession, seq: int) -> str:
    """Take the files back to what they were at entry `seq`; return what was done, empty where nothing was changed.

    The whole log counts, other branches too: files have no branches.
    """
    return _restore(live, live.session.entries_after(seq), seq, is_turn=False)


def _restore(live: LiveSession, entries: Iterable[HistoryEvent], target: int, *, is_turn: bool) -> str:
    session = live.session
    restored = take_back(plan_ways_back(entries), session.store.load_bytes, session.store.save_bytes)
    uses = tuple(one.use for one in restored if one.use is not None)
    if uses or is_turn:
        session.append(FilesEntry(target=target, files=uses, turn=is_turn))
    text = describe(restored, session.cwd)
    if text:
        live.notify(text, kind=RESTORED_KIND, keep=True)
    return text
