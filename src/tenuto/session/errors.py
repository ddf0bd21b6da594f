"""What can go wrong with a session, as types. Each text is one line for a user and names what to do."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The process that has a session open for writing; `pid` is 0 when the lock file does not say."""

    pid: int = 0
    host: str = ""

    def __str__(self) -> str:
        """Return the owner as a user reads it."""
        return f"process {self.pid} on {self.host}" if self.pid else "another process"


class SessionError(Exception):
    """Base of all errors of this room."""


class SessionLocked(SessionError):  # noqa: N818 (a state of the session, named as the user is told)
    """The session is open for writing elsewhere (R-066).

    `can_take_over` says that a user who knows the owner to be gone may take it over.
    """

    def __init__(self, directory: Path, owner: Owner, *, can_take_over: bool = False) -> None:
        super().__init__(f"session {directory.name} is open in {owner}: read it, fork it, or close it there first")
        self.directory = directory
        self.owner = owner
        self.can_take_over = can_take_over


class SessionReadOnly(SessionError):  # noqa: N818
    """Something was to be written to a session that was opened for reading, or is closed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} is open for reading only: fork it to go on from it")


class SessionUnreadable(SessionError):  # noqa: N818
    """The log cannot be read at all; `reason` is the system's own."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(f"cannot read session {directory.name}: {reason} ({directory})")
        self.directory = directory
        self.reason = reason


class SessionNewer(SessionError):  # noqa: N818
    """The log is of a later format than this program knows; it can be read as far as it is known, and not written."""

    def __init__(self, directory: Path, version: int, known: int) -> None:
        super().__init__(
            f"session {directory.name[:8]} is in format {version}, and this Tenuto writes format {known}: "
            "a newer Tenuto made it; update to go on with it (tenuto sessions show and export read it)"
        )
        self.version = version


class SessionAmbiguous(SessionError):  # noqa: N818
    """More than one session fits the abbreviated id."""

    def __init__(self, name: str, matches: tuple[str, ...]) -> None:
        super().__init__(f"{name} fits {len(matches)} sessions: {', '.join(matches[:8])}")
        self.matches = matches
