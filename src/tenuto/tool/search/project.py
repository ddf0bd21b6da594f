"""`recall` with the scope "project": what was said in the other sessions of the project, each for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tenuto.session.agents import SHORT_ID
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.record import (
    NOTHING,
    ROOM,
    Found,
    Question,
    Record,
    describe_found,
    newest_in,
    read_record,
    recall,
)
from tenuto.tool.search.search import Stop


class Matches(msgspec.Struct, frozen=True):
    """What one session has on a question: its folder, its record, the newest matches first."""

    folder: Path
    record: Record
    found: list[Found]


def search_sessions(
    question: Question, folders: Iterable[Path], stop: Stop, *, branches: bool = False
) -> Iterator[Matches]:
    """Yield the sessions that have something, in the order of their folders, until `question.limit` matches are found.

    What cannot be read has nothing. Raises `ToolError`.
    """
    left = question.limit
    for folder in folders:
        if left <= 0 or stop.is_due():
            return
        record = read_record(folder, branches=branches)
        if record is None:
            continue
        found = newest_in(msgspec.structs.replace(question, limit=left), record, stop)
        if found:
            left -= len(found)
            yield Matches(folder, record, found)


def recall_project(question: Question, name: str, folders: Iterable[Path], stop: Stop, *, branches: bool) -> str:
    """Return what other sessions have on a question; with the `name` of one, what that has. Raises `ToolError`."""
    if name:
        named = [folder for folder in folders if folder.name.startswith(name)]
        record = read_record(named[0], branches=branches) if len(named) == 1 else None
        if record is None:
            raise ToolError(f"There is no session {shorten(name, 40)} of this project, or several begin so.")
        return recall(question, record.entries, record.outputs, stop)
    if not question.query.strip():
        raise ToolError("Say what to look for, or which session: seq SESSION/120-140.")
    blocks: list[str] = []
    sessions = count = 0
    room = ROOM
    for matches in search_sessions(question, folders, stop, branches=branches):
        rows = [describe_found(found) for found in matches.found]
        kept = [row for at, row in enumerate(rows) if sum(map(len, rows[: at + 1])) <= room or not (at or blocks)]
        if kept:
            blocks.append("\n".join((f"In session {matches.folder.name[:SHORT_ID]}:", *kept)))
            sessions, count = sessions + 1, count + len(kept)
        room -= sum(map(len, kept))
        if len(kept) < len(rows):
            break
    late = " The search ran out of time; a simpler question sees more." if stop.is_due() else ""
    if not blocks:
        return f"{NOTHING} Other sessions of this project have nothing on it.{late}"
    head = (
        f"[{plural(count, 'match')} in {plural(sessions, 'other session')} of this project, the last used "
        f"session and the newest entry first; a whole entry is shown for seq SESSION/NUMBER with this scope.{late}]"
    )
    return "\n\n".join((head, *blocks))
