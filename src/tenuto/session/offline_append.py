"""Writing one entry into a session that is open nowhere."""

from __future__ import annotations

from pathlib import Path

from tenuto.protocol.entry import TitleEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.errors import SessionError
from tenuto.session.session import Session


def note(directory: Path, entry: HistoryEvent) -> None:
    """Append `entry` to the log of a session, by way of opening it.

    Raises `SessionLocked` when it is open, `SessionError` when it cannot be read or the disk does not take it.
    """
    session = Session.open(directory)
    try:
        session.append(entry)
        problem = session.unsaved
    finally:
        session.close()
    if problem is not None:
        raise SessionError(f"session {directory.name} cannot be written to: {problem.reason}")


def retitle(directory: Path, title: str) -> None:
    """Name a session. Raises as `note` does."""
    note(directory, TitleEntry(title=title))
