"""Taking files back to what they were (DESIGN section 3, tree): which of them, to what, and whether it is safe.

Before a tool changes a file its bytes are kept beside the log, by hash, and the change names the hash. So what files
were at any entry can be told from the log alone, over compactions and restarts, and without the user's git. What
commands (`bash`) changed is not known and stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.core.errors import TaskFailedError
from tenuto.core.state.live import READ_ONLY, SessionServices
from tenuto.protocol.entry import RESTORED_KIND
from tenuto.protocol.message import FilesEntry, FileUse, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.session.view.tree import newest_of_kind, since
from tenuto.text.figures import plural

Outcome = Literal["restored", "removed", "same", "changed since", "not kept", "failed"]
_CHANGING = frozenset({"write", "edit", "delete"})


class FileRestore(msgspec.Struct, frozen=True, kw_only=True):
    """What one file was. `content` is the hash of its bytes (empty with `absent`: there was no file).

    `expected` is the hash of what the agent left; another content is somebody else's work and is not touched. `mode`
    are the permission bits of a file that was deleted (0: unknown).
    """

    path: str
    content: str
    absent: bool
    expected: str
    mode: int = 0


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What came of taking one file back; `use` is for the log, `None` where nothing was changed."""

    path: str
    outcome: Outcome
    use: FileUse | None = None
    reason: str = ""


def plan_restores(entries: Iterable[HistoryEvent]) -> list[FileRestore]:
    """Return what every file was before the first of these entries, by their order in the log."""
    first: dict[str, FileUse] = {}
    last: dict[str, FileUse] = {}
    for entry in entries:
        if not isinstance(entry, ToolResultMessage | FilesEntry):
            continue
        for use in entry.files:
            if use.op in _CHANGING:
                first.setdefault(use.path, use)
                last[use.path] = use
    return [
        FileRestore(path=path, content=use.before, absent=use.created, expected=last[path].sha256, mode=last[path].mode)
        for path, use in first.items()
    ]


def count_restores(entries: Iterable[HistoryEvent], seqs: Iterable[int]) -> dict[int, int]:
    """Return for each seq how many files are another one now, by the log, than they were at that entry.

    `entries` is the whole log behind the lowest of them: files have no branches.
    """
    uses = [
        (entry.seq, use)
        for entry in entries
        if isinstance(entry, ToolResultMessage | FilesEntry)
        for use in entry.files
        if use.op in _CHANGING
    ]
    now = {use.path: use.sha256 for _, use in uses}
    then: dict[str, str] = {}
    counts: dict[int, int] = {}
    for seq in sorted(set(seqs), reverse=True):
        while uses and uses[-1][0] > seq:
            use = uses.pop()[1]
            then[use.path] = use.before
        counts[seq] = sum(before != now[path] for path, before in then.items())
    return counts


def last_turn_with_changes(path: Sequence[HistoryEvent]) -> int:
    """Return the seq of the user's message that began the newest turn whose edits stand, 0 when there is none.

    A turn that was taken back already is passed over.
    """
    has_changes = False
    undone: set[int] = set()
    for entry in newest_of_kind(path, UserMessage, FilesEntry, ToolResultMessage):
        if isinstance(entry, FilesEntry):
            if entry.turn:
                undone.add(entry.target)
        elif isinstance(entry, ToolResultMessage):
            has_changes = has_changes or any(use.op in _CHANGING for use in entry.files)
        elif has_changes and entry.seq not in undone:
            return entry.seq
        else:
            has_changes = False
    return 0


def turn_entries(path: Sequence[HistoryEvent], turn: int) -> list[HistoryEvent]:
    """Return the entries of the turn that the message with seq `turn` began."""
    found: list[HistoryEvent] = []
    for entry in since(path, turn + 1):
        if isinstance(entry, UserMessage):
            break
        found.append(entry)
    return found


def restore_planned(
    ways: Iterable[FileRestore], load: Callable[[str], bytes], keep: Callable[[bytes], str]
) -> list[Restored]:
    """Write the files as they were; `load` and `keep` read and keep bytes by hash. Never raises for a single file."""
    return [_restore_one(way, load, keep) for way in ways]


def _restore_one(way: FileRestore, load: Callable[[str], bytes], keep: Callable[[bytes], str]) -> Restored:
    path = Path(way.path)
    try:
        present = path.read_bytes() if path.exists() else None
        found = hashlib.sha256(present).hexdigest() if present is not None else ""
        if (present is None and way.absent) or (way.content and found == way.content):
            return Restored(path=way.path, outcome="same")
        if found != way.expected:
            return Restored(path=way.path, outcome="changed since")
        if way.absent:
            before = keep(present) if present is not None else ""
            path.unlink()
            return Restored(path=way.path, outcome="removed", use=FileUse(path=way.path, op="delete", before=before))
        if not way.content:
            return Restored(path=way.path, outcome="not kept")
        data = load(way.content)
        before = keep(present) if present is not None else ""
        _write(path, data)
        if present is None and way.mode:
            path.chmod(way.mode)
    except OSError as error:
        return Restored(path=way.path, outcome="failed", reason=error.strerror or str(error))
    use = FileUse(path=way.path, op="write", sha256=way.content, before=before, created=present is None)
    return Restored(path=way.path, outcome="restored", use=use)


def _write(path: Path, data: bytes) -> None:
    from tenuto.tool.edits.files import replace_file
    from tenuto.tool.run.context import ToolError

    try:
        replace_file(path, data)
    except ToolError as error:
        raise OSError(str(error)) from error


def describe(restored: Iterable[Restored], cwd: Path) -> str:
    """Return what was done, a line for each kind of outcome."""
    lines: list[str] = []
    words: dict[Outcome, str] = {
        "restored": "Restored {}",
        "removed": "Removed {} that did not exist before",
        "same": "Already restored: {}",
        "changed since": "Left alone {}, changed by somebody else since",
        "not kept": "Left alone {}, whose earlier content is not known (too large, or from an older session)",
        "failed": "Could not write {}",
    }
    found = list(restored)
    for outcome, text in words.items():
        paths = [
            _short(one.path, cwd) + (f" ({one.reason})" if one.reason else "")
            for one in found
            if one.outcome == outcome
        ]
        if paths:
            did = text.format(plural(len(paths), "file"))
            lines.append(f"{did}: {', '.join(paths[:12])}{' …' if len(paths) > 12 else ''}")
    return "\n".join(lines)


def _short(path: str, cwd: Path) -> str:
    try:
        return str(Path(path).relative_to(cwd))
    except ValueError:
        return path


def undo_turn(services: SessionServices) -> str:
    """Take back what the newest turn with edits did to files; return what was done. Raises `TaskFailedError`."""
    if services.session.is_read_only:
        raise TaskFailedError(READ_ONLY)
    path = services.session.path()
    turn = last_turn_with_changes(path)
    if not turn:
        raise TaskFailedError("nothing to undo: no file edits are left (changes made by commands are not tracked)")
    return _restore(services, turn_entries(path, turn), turn, is_turn=True)


def restore_files(services: SessionServices, seq: int) -> str:
    """Take the files back to what they were at entry `seq`; return what was done, empty where nothing was changed.

    The whole log counts, other branches too: files have no branches.
    """
    return _restore(services, services.session.entries_after(seq), seq, is_turn=False)


def _restore(services: SessionServices, entries: Iterable[HistoryEvent], target: int, *, is_turn: bool) -> str:
    session = services.session
    restored = restore_planned(plan_restores(entries), session.store.load_bytes, session.store.save_bytes)
    uses = tuple(one.use for one in restored if one.use is not None)
    if uses or is_turn:
        session.append(FilesEntry(target=target, files=uses, turn=is_turn))
    text = describe(restored, session.cwd)
    if text:
        services.notify(text, kind=RESTORED_KIND, keep=True)
    return text
