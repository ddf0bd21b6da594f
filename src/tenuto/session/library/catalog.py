"""The sessions of a home: list, find, latest. Read from their metadata alone where that is up to date.

A session that is deleted is moved to the trash, and can come back: nothing is removed from disk (DESIGN 3).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tenuto.private_files import make_directory
from tenuto.protocol.entry import HeaderEntry
from tenuto.protocol.part import text_of
from tenuto.session.errors import SessionAmbiguous, SessionError, SessionLocked
from tenuto.session.library.meta import Meta, first_entry, fold_all, fold_log, write_meta
from tenuto.session.log.lock import SessionLock, lock_owner
from tenuto.session.log.log import LOG_NAME, sum_up
from tenuto.session.paths import SESSIONS, folder_identity, project_directory
from tenuto.session.store import Store, agent_directories
from tenuto.session.view.state import SessionState
from tenuto.text.titles import title_of
from tenuto.text.writable import text_path

_WORTH_WRITING = 1 << 12
"""Bytes: the fold of a longer log is stored, so that the next list does not read it again."""


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a picker. `size` is the log's, in bytes; `error` says why a session cannot be read (R-076)."""

    id: str
    directory: Path
    cwd: str = ""
    folder: str = ""
    branch: str = ""
    title: str = ""
    model: str = ""
    first_text: str = ""
    last_text: str = ""
    messages: int = 0
    steps: int = 0
    cost: float | None = None
    created: float = 0.0
    updated: float = 0.0
    size: int = 0
    error: str = ""

    @property
    def place(self) -> Path:
        """The directory in which it works; `cwd` is that as a text, a file URL where its name is not UTF-8."""
        return text_path(self.cwd)

    @property
    def name(self) -> str:
        """What a user calls the session: its title, else one by rule from how it began, on one line."""
        return " ".join(self.title.split()) or title_of(self.first_text) or self.id


Tell = Callable[[int, int], None]
"""Hears how many of how many are read. It may raise."""


def tell_nobody(_done: int, _whole: int) -> None:
    """Let nobody hear how far it is."""


def list_sessions(home: Path, cwd: Path | None = None, tell: Tell = tell_nobody) -> list[SessionSummary]:
    """Return the sessions of a project, or with `cwd=None` of all, the last used first.

    Sessions in which nothing was ever said are left out. `tell` hears how many of how many are read.
    """
    directories = list(session_directories(home, cwd))
    summaries: list[SessionSummary | None] = []
    for done, directory in enumerate(directories, 1):
        summaries.append(summarise_session(directory))
        tell(done, len(directories))
    used = [summary for summary in summaries if summary is not None]
    return sorted(used, key=lambda summary: summary.updated, reverse=True)


def has_used_server(home: Path, cwd: Path, model: str) -> bool:
    """Whether a session of the project was with the server of a model, which is what its id begins with."""
    server = model.partition("/")[0] + "/"
    return any(one.model.startswith(server) for one in list_sessions(home, cwd))


class Latest(msgspec.Struct, frozen=True):
    """The folder of the session to go on with, `None` if there is none, and the later ones that cannot be read."""

    directory: Path | None
    unreadable: tuple[SessionSummary, ...] = ()


def latest_session(home: Path, cwd: Path) -> Latest:
    """Return the project's session that was last written to and can be read."""
    unreadable: list[SessionSummary] = []
    for directory in newest_first(home, cwd):
        summary = summarise_session(directory)
        if summary is not None and not summary.error:
            return Latest(directory, tuple(unreadable))
        if summary is not None:
            unreadable.append(summary)
    return Latest(None, tuple(unreadable))


def newest_first(home: Path, cwd: Path | None = None) -> list[Path]:
    """Return the folders of a project's sessions, or of all, the last written to first; none of them is opened."""
    dated = [(_written(directory), directory) for directory in session_directories(home, cwd)]
    return [directory for _, directory in sorted(dated, reverse=True)]


def homeless_sessions(home: Path, cwd: Path) -> list[SessionSummary]:
    """Return the sessions whose directory is gone, the last used first (R-072).

    Those that worked in `cwd` before it was renamed or moved come before all others.
    """
    folder = folder_identity(cwd)
    gone = [one for one in list_sessions(home) if not one.error and one.cwd and not one.place.is_dir()]
    return sorted(gone, key=lambda one: not (folder and one.folder == folder))


def find_session(home: Path, name: str) -> Path | None:
    """Return the folder of the session with this id, or whose id begins with it; `None` if there is none.

    A sub-agent's session counts where no other has the name. Raises `SessionAmbiguous` when the beginning fits several.
    """
    found = [directory for directory in session_directories(home, None) if name and directory.name.startswith(name)]
    if not found and name:
        every = (folder for directory in session_directories(home, None) for folder in agent_directories(directory))
        found = [folder for folder in every if folder.name.startswith(name)]
    exact = [directory for directory in found if directory.name == name]
    matches = exact or found
    if len(matches) > 1:
        raise SessionAmbiguous(name, tuple(sorted(directory.name for directory in matches)))
    return matches[0] if matches else None


def find_by_words(home: Path, words: str, tell: Tell = tell_nobody) -> list[SessionSummary]:
    """Return the sessions in whose name, first or last words all of `words` are, the last used first."""
    wanted = words.casefold().split()
    return [one for one in list_sessions(home, None, tell) if wanted and all(word in _words_of(one) for word in wanted)]


def _words_of(session: SessionSummary) -> str:
    return f"{session.name} {session.first_text} {session.last_text}".casefold()


def session_directories(home: Path, cwd: Path | None = None) -> Iterator[Path]:
    """Yield the folders of all sessions, or of those of one project; none of them is opened."""
    projects = _subdirectories(home / SESSIONS) if cwd is None else [project_directory(home, cwd)]
    for project in projects:
        for directory in _subdirectories(project):
            if (directory / LOG_NAME).is_file():
                yield directory


def _subdirectories(directory: Path) -> list[Path]:
    try:
        return [path for path in directory.iterdir() if path.is_dir()]
    except OSError:
        return []


def _written(directory: Path) -> float:
    try:
        return (directory / LOG_NAME).stat().st_mtime
    except OSError:
        return 0.0


def summarise_session(directory: Path) -> SessionSummary | None:
    """Return the summary of a session, `None` if nothing was ever said in it.

    A session that cannot be read has a summary with the reason.
    """
    try:
        meta, read = fold_log(directory)
        size = (directory / LOG_NAME).stat().st_size
        if not _has_content(meta.state) and not meta.damaged and (read == 0 or meta.size < size):
            # Metadata of an older version names no damage, and of a log without line ends nothing is folded.
            meta, read = fold_all(directory), 0
    except OSError as error:
        reason = error.strerror or str(error)
        return SessionSummary(id=directory.name, directory=directory, updated=_written(directory), error=reason)
    if read >= _WORTH_WRITING:
        _keep(directory, meta)
    state = meta.state
    waiting = text_of(state.queue[0].parts) if state.queue else ""
    if not _has_content(state):
        reason = _unreadable(directory, meta)
        return (
            SessionSummary(
                id=directory.name,
                directory=directory,
                cwd=state.cwd or meta.cwd,
                folder=state.folder,
                created=state.created,
                updated=_written(directory),
                size=size,
                error=f"nothing in its log can be read: {reason}",
            )
            if reason
            else None
        )
    return SessionSummary(
        id=directory.name,
        directory=directory,
        cwd=state.cwd or meta.cwd,
        folder=state.folder,
        branch=state.branch,
        title=state.title,
        model=state.model,
        first_text=state.first_text or waiting,
        last_text=state.last_text or waiting,
        messages=state.messages,
        steps=state.steps,
        cost=state.usage.cost,
        created=state.created,
        updated=state.updated or _written(directory),
        size=size,
    )


def _has_content(state: SessionState) -> bool:
    return bool(state.messages or state.queue or state.title or state.first_text)


def _unreadable(directory: Path, meta: Meta) -> str:
    """Return why nothing is known of what was said, empty where nothing was said."""
    if meta.damaged:
        return sum_up(meta.damaged, meta.first_damage)
    if not meta.seq and not meta.state.created:
        return "it is empty"
    if Store(directory).has_files and not _is_copy(directory):
        return "it starts over, with files of earlier work beside it"
    return ""


def _is_copy(directory: Path) -> bool:
    """Whether a log begins as a copy of another one: it has that one's files, whatever of it was said on its way."""
    try:
        header = first_entry(directory / LOG_NAME)
    except OSError:
        return False
    return isinstance(header, HeaderEntry) and header.forked_from is not None


def _keep(directory: Path, meta: Meta) -> None:
    """Store a fold that was long to compute, unless the session's writer is about to do so."""
    lock = SessionLock(directory)
    try:
        lock.acquire()
        write_meta(directory, meta)
    except (OSError, SessionLocked):
        return
    finally:
        lock.release()


BIN = "bin"


class SessionNotMoved(SessionError):  # noqa: N818 - named as the user is told
    """A session could not be moved to the bin or back."""


def bin_directory(home: Path) -> Path:
    """Return the folder of deleted sessions."""
    return home / BIN


def list_bin(home: Path) -> list[Path]:
    """Return the folders of deleted sessions, the last deleted first."""
    found = [path.parent for path in bin_directory(home).glob(f"*/*/{LOG_NAME}")]
    return sorted(found, key=_moved_at, reverse=True)


def move_to_bin(home: Path, directory: Path) -> Path:
    """Move a session aside and return where it lies now.

    Raises `SessionLocked` when it is open, `SessionNotMoved` when the disk refuses.
    """
    return _move(directory, bin_directory(home) / directory.parent.name / directory.name)


def take_from_bin(home: Path, directory: Path) -> Path:
    """Move a deleted session back to where it was and return that. Raises `SessionNotMoved`."""
    return _move(directory, home / SESSIONS / directory.parent.name / directory.name)


def _move(source: Path, target: Path) -> Path:
    if target.exists():
        raise SessionNotMoved(f"{target} exists already; move it away first")
    for folder in agent_directories(source):
        if (locked := lock_owner(folder)) is not None:
            raise locked
    lock = SessionLock(source)
    lock.acquire()
    try:
        make_directory(target.parent)
        os.utime(source)  # the time at which it was moved
        source.rename(target)
    except OSError as error:
        raise SessionNotMoved(f"{source} cannot be moved: {error.strerror or error}") from error
    finally:
        lock.release()
    return target


def _moved_at(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except OSError:
        return 0.0
