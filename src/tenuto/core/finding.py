"""Which session a user means, and the directory in which it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.core.errors import UsageError
from tenuto.guard.terminal import sanitize_line
from tenuto.session.errors import SessionError
from tenuto.session.library.catalog import (
    SessionSummary,
    find_by_words,
    find_session,
    homeless_sessions,
    latest_session,
    summarise_session,
)
from tenuto.session.moving import relocate
from tenuto.session.paths import folder_identity, project_directory

if TYPE_CHECKING:
    from tenuto.core.start import Start


def check_directory(cwd: Path) -> Path:
    """Return the real path of the working directory. Raises `UsageError` when it is none."""
    if not cwd.is_dir():
        raise UsageError(f"{cwd} is not a directory; name an existing one")
    return cwd.resolve()


def resolve_directory(text: str, base: Path) -> Path:
    """Return the directory that a user means, seen from `base`. Raises `UsageError` when it is none."""
    return check_directory(base / Path(text).expanduser())


def _name_unreadable(session: SessionSummary) -> str:
    return f"Session {session.id[:8]} cannot be read ({session.error}; {session.directory})"


class SessionFinder:
    """Finds the folder of a session for one start; `remarks` takes what a user has to know of how it was found."""

    def __init__(self, start: Start, remarks: list[str]) -> None:
        self._start = start
        self._remarks = remarks

    def find(self, target: str) -> Path:
        """Return the session that an id, the beginning of one, or words name. Raises `UsageError`."""
        directory = find_session(self._start.home, target)
        if directory is not None:
            return directory
        found = find_by_words(self._start.home, target)
        if len(found) > 1:
            names = ", ".join(f"{one.id[:8]} “{sanitize_line(one.name)[:40]}”" for one in found[:4])
            raise UsageError(f"{len(found)} sessions have “{target}” in them: {names}; name one by its id")
        if not found:
            raise UsageError(f"there is no session “{target}”; /resume and tenuto sessions list them")
        return found[0].directory

    def latest(self) -> Path:
        """Return the session to continue here; the latest of this directory under an earlier name counts (R-072)."""
        start = self._start
        latest = latest_session(start.home, start.cwd)
        if latest.directory is not None:
            self._remarks += [f"{_name_unreadable(one)}; it was passed over." for one in latest.unreadable]
            return latest.directory
        gone = homeless_sessions(start.home, start.cwd)
        folder = folder_identity(start.cwd)
        if gone and folder and gone[0].folder == folder:
            return gone[0].directory
        hint = "start one without --continue"
        if gone:
            one = gone[0]
            last = sanitize_line(one.name)[:60]
            hint = f"{one.cwd} is gone: tenuto --resume {one.id[:8]} --cwd . goes on here with its last, “{last}”"
        damaged = "".join(f"{_name_unreadable(one)}; " for one in latest.unreadable)
        raise UsageError(f"there is no earlier session in {start.cwd} to go on with; {damaged}{hint}")

    def relocate(self, directory: Path, cwd: Path) -> Path:
        """Move a session's folder to those of another directory; return where it is. Raises `UsageError`."""
        try:
            return relocate(self._start.home, directory, cwd)
        except SessionError as error:
            raise UsageError(str(error)) from error

    def place(self, directory: Path) -> Path:
        """Return where the session lies, after moving it where the user named its new directory.

        A user is asked when it is open (`SessionOpenedEvent.missing`); without one it has to be named.
        """
        summary = summarise_session(directory)
        if summary is None or not summary.cwd or summary.place.is_dir():
            return directory
        is_here = directory.parent == project_directory(self._start.home, self._start.cwd)
        if self._start.names_directory or is_here:  # a name that is not UTF-8 was not kept whole by earlier versions
            return self.relocate(directory, self._start.cwd)
        if not self._start.interactive:
            raise UsageError(f"session {directory.name[:8]} worked in {summary.cwd}, which is gone; name another --cwd")
        return directory
