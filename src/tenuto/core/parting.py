"""Closing a session, also one that its own disk does not take: then it is offered elsewhere (R-067)."""

from __future__ import annotations

import os
from pathlib import Path

from tenuto.session.log import LOG_NAME
from tenuto.session.session import Session, Unsaved


def close_session(session: Session) -> str:
    """Close a session in good order; one that began here and in which nothing was ever said leaves nothing behind.

    Returns what the person has to know of one that could not be saved, empty when all is well.
    """
    if session.is_read_only:
        session.close()
        return ""
    if not session.has_content:
        session.discard()
        return ""
    session.save_meta()
    unsaved = session.unsaved
    text = _save_elsewhere(session, unsaved) if unsaved is not None else ""
    session.close()
    return text


def _save_elsewhere(session: Session, unsaved: Unsaved) -> str:
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
        back = shlex.join(["cp", str(path), str(session.directory / LOG_NAME)])
        return f"{lost}. All of it is in {path}; when there is room again: {back}"
    return f"{lost}, and no other place could be written to: its last {unsaved.entries} entries are lost"
