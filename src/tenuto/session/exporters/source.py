"""What an export is made from: the entries in file order and what they add up to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import ForkOrigin, HeaderEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.log.log import Damage
from tenuto.session.view.state import SessionState, apply_entry

_TITLE_LENGTH = 120


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is exported. `load_blob` returns an image's bytes by hash, or raises `OSError`."""

    id: str
    cwd: str
    forked_from: ForkOrigin | None
    entries: tuple[HistoryEvent, ...]
    state: SessionState
    damage: tuple[Damage, ...]
    load_blob: Callable[[str], bytes]

    @classmethod
    def read(
        cls,
        entries: Iterable[HistoryEvent],
        load_blob: Callable[[str], bytes],
        *,
        session_id: str = "",
        damage: tuple[Damage, ...] = (),
    ) -> Source:
        """Fold the entries of a whole log, in file order; `session_id` is for a log that lost its header."""
        history = tuple(entries)
        state = SessionState()
        for entry in history:
            apply_entry(state, entry)
        header = next((entry for entry in history if isinstance(entry, HeaderEntry)), None)
        return cls(
            id=header.session_id if header else session_id,
            cwd=header.cwd if header else "",
            forked_from=header.forked_from if header else None,
            entries=history,
            state=state,
            damage=damage,
            load_blob=load_blob,
        )

    @property
    def title(self) -> str:
        """What a user calls the session, on one line: its title, else how it began, else its id."""
        words = self.state.title or self.state.first_text or f"Session {self.id}"
        line = sanitize_line(words) or f"Session {self.id}"
        return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"


def format_time(seconds: float) -> str:
    """Return a moment as people and programs read it, in UTC; empty for 0, which is no moment."""
    moment = _moment(seconds)
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", moment) if moment else ""


def format_machine_time(seconds: float) -> str:
    """Return a moment as RFC 3339 has it, in UTC; empty for 0."""
    moment = _moment(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment) if moment else ""


def format_day(seconds: float) -> str:
    """Return the day of a moment, in UTC; empty for 0."""
    moment = _moment(seconds)
    return time.strftime("%Y-%m-%d", moment) if moment else ""


def _moment(seconds: float) -> time.struct_time | None:
    """Return the moment in UTC; a log can hold numbers that no calendar has."""
    try:
        return time.gmtime(seconds) if seconds > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
