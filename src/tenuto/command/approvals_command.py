"""/approvals: what is allowed without asking, this session and permanently; and revoking it."""

from __future__ import annotations

import hashlib

import msgspec

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.config.saved_approvals import StandingAnswer, StandingFileError
from tenuto.core.errors import TaskFailedError
from tenuto.core.runtime import Runtime
from tenuto.protocol.entry import ApprovalEntry

NOTHING = "No saved approvals. Choose “don't ask again” in an approval to add one."


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that stands: of this session, or permanently in a directory."""

    tool: str
    pattern: str
    directory: str = ""
    is_session: bool = False

    @property
    def id(self) -> str:
        """A short name that stays the same whatever else is added or taken back."""
        text = "\0".join((self.tool, self.pattern, self.directory, str(self.is_session)))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show what stands; `remove N` revokes one. Raises `TaskFailedError` when that cannot be written."""
    rows = standing_rows(runtime)
    words = argument.split()
    if words[:1] == ["remove"]:
        return [_remove(runtime, rows, " ".join(words[1:]))]
    live = runtime.live
    if live.standing.problem:
        return [Say(live.standing.problem, "warning")]
    if not rows:
        return [Say(NOTHING)]
    here = str(live.tool_context.workspace)
    choices = tuple(
        Choice(f"remove {row.id}", f"{number}. {row.tool} {row.pattern}", _where(row, here), preview=row.pattern)
        for number, row in enumerate(rows, 1)
    )
    leave = Choice("", "Keep all", "", present=True)
    return [Choose("Saved approvals: Enter revokes one", "approvals", (leave, *choices))]


def standing_rows(runtime: Runtime) -> list[Row]:
    """Return what stands: this session's answers, this directory's, then those of others."""
    live = runtime.live
    here = str(live.tool_context.workspace)
    session = [Row(tool=entry.tool, pattern=entry.pattern, is_session=True) for entry in live.session.state.approvals]
    lasting = [
        Row(tool=answer.tool, pattern=answer.pattern, directory=answer.directory) for answer in live.standing.all()
    ]
    return [*session, *sorted(lasting, key=lambda row: row.directory != here)]


def _where(row: Row, here: str) -> str:
    if row.is_session:
        return "this session"
    return "this project" if row.directory == here else row.directory


def _remove(runtime: Runtime, rows: list[Row], which: str) -> Say:
    found = [row for number, row in enumerate(rows, 1) if which in (row.id, str(number))]
    if not found:
        return Say(f"“{which}” is not the number of an approval; /approvals lists them", "warning")
    row, live = found[0], runtime.live
    if row.is_session:
        live.session.append(ApprovalEntry(tool=row.tool, pattern=row.pattern, withdrawn=True))
    else:
        try:
            live.standing.remove(StandingAnswer(tool=row.tool, pattern=row.pattern, directory=row.directory))
        except StandingFileError as error:
            raise TaskFailedError(f"not revoked: {error}") from error
    return Say(f"Revoked: {row.tool} {row.pattern}")
