"""Closing a session: in good order, without a trace where nothing was said, elsewhere where it cannot be saved."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tenuto.session.session import Session, Unsaved


class ClosedSession(msgspec.Struct, frozen=True):
    """What the user has to know of a session that was closed; `text` is empty when all is well.

    `lost` says that entries of it are nowhere.
    """

    text: str = ""
    lost: bool = False


def close_session(session: Session) -> ClosedSession:
    """Close a session in good order; one that began here and in which nothing was ever said leaves nothing behind."""
    if session.is_read_only:
        session.close()
        return ClosedSession()
    if not session.has_content:
        session.discard()
        return ClosedSession()
    session.save_meta()
    unsaved = session.unsaved
    farewell = _save_elsewhere(session, unsaved) if unsaved is not None else ClosedSession()
    session.close()
    return farewell


def _save_elsewhere(session: Session, unsaved: Unsaved) -> ClosedSession:
    """Write the whole session to the first place that takes it; return how to bring it back from there."""
    import shlex
    import tempfile

    lost = f"This session could not be saved ({unsaved.reason})"
    for place in (Path(tempfile.gettempdir()), session.cwd, Path.home()):
        folder = place / f"tenuto-{session.id}-{os.urandom(3).hex()}"
        try:
            path = session.save_copy(folder)
        except OSError:
            continue
        back = shlex.join(["tenuto", "sessions", "restore", str(path)])
        return ClosedSession(f"{lost}. All of it is in {path}; when there is room again: {back}")
    text = f"{lost}, and no other place could be written to: its last {unsaved.entries} entries are lost"
    return ClosedSession(text, lost=True)
