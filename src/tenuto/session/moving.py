"""Sessions that change their place: to another directory, or back from the copy that was made on leaving (R-067).

A copy is made where a session's own disk did not take it. The session may have been continued meanwhile. What its log
has is never touched: the copy's later lines go behind it where they follow, and where they do not the copy becomes a
session of its own.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.private_files import make_directory, make_new_directory, open_private, write_all, write_new
from tenuto.protocol.entry import ForkOrigin, HeaderEntry, MovedEntry, TitleEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.errors import SessionError, SessionUnreadable
from tenuto.session.library.catalog import find_session
from tenuto.session.log.lock import SessionLock
from tenuto.session.log.log import LOG_NAME
from tenuto.session.log.record import DamagedLine, decode, encode
from tenuto.session.paths import folder_identity, new_session_id, project_directory
from tenuto.session.session import Session
from tenuto.session.store import Store
from tenuto.text.writable import path_text, text_path


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


def relocate(home: Path, directory: Path, cwd: Path) -> Path:
    """Write down that the session works in `cwd`, put its folder among that project's, and return where it lies.

    Raises `SessionError` when it cannot be written to. A folder that cannot be moved stays; it is found there.
    """
    note(directory, MovedEntry(cwd=path_text(cwd.absolute()), folder=folder_identity(cwd)))
    target = project_directory(home, cwd) / directory.name
    if target == directory or target.exists():
        return directory
    try:
        make_directory(target.parent)
        directory.rename(target)
    except OSError:
        return directory
    return target


Way = Literal["made", "joined", "there", "apart"]
"""A session was made, lines were joined to its log, all of them are there already, or it became one of its own."""


class Rejoined(msgspec.Struct, frozen=True):
    """What became of a copy, and the folder of the session that has it now."""

    way: Way
    directory: Path


def rejoin(home: Path, copy: Path) -> Rejoined:
    """Bring a copied log back. Raises `SessionError` when it is none or its session is open, `OSError`."""
    data = copy.read_bytes()
    first, _, rest = data.partition(b"\n")
    try:
        header = decode(first)
    except DamagedLine as problem:
        raise SessionUnreadable(copy.parent, f"its first line is {problem}") from problem
    if not isinstance(header, HeaderEntry):
        raise SessionUnreadable(copy.parent, "it does not begin as a session does")
    directory = find_session(home, header.session_id) or _place(home, header, header.session_id)
    log = directory / LOG_NAME
    if not log.exists():
        make_directory(directory)
        write_new(log, data)
        return Rejoined("made", directory)
    lock = SessionLock(directory)
    lock.acquire()
    try:
        there = log.read_bytes()
        if there.startswith(data):
            return Rejoined("there", directory)
        if data.startswith(there):
            _append(log, data[len(there) :])
            return Rejoined("joined", directory)
    finally:
        lock.release()
    return Rejoined("apart", _set_apart(home, header, rest, Store(directory)))


def _set_apart(home: Path, header: HeaderEntry, lines: bytes, store: Store) -> Path:
    session_id = new_session_id(time.time())
    directory = _place(home, header, session_id)
    origin = ForkOrigin(session=header.session_id, seq=0)
    make_new_directory(directory)
    line = encode(msgspec.structs.replace(header, session_id=session_id, forked_from=origin))[1]
    store.copy_blobs(Store(directory))
    write_new(directory / LOG_NAME, line + lines)
    return directory


def _place(home: Path, header: HeaderEntry, session_id: str) -> Path:
    if not header.cwd or Path(session_id).name != session_id:
        raise SessionError("the copy does not say where its session worked")
    return project_directory(home, text_path(header.cwd)) / session_id


def _append(log: Path, data: bytes) -> None:
    descriptor = open_private(log, os.O_WRONLY | os.O_APPEND)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)
