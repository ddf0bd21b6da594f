"""A session: the one thing that touches its log, and the one way that its state changes (DESIGN sections 2 and 3)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from tenuto.private_files import (
    is_temporary,
    make_directory,
    make_new_directory,
    open_private,
    remove_temporaries,
    write_all,
)
from tenuto.protocol.entry import (
    FORMAT_VERSION,
    BranchEntry,
    DequeuedEntry,
    Entry,
    ForkOrigin,
    HeaderEntry,
    ModeEntry,
    ModelEntry,
    QueuedEntry,
    UnknownEntry,
    UsageEntry,
)
from tenuto.protocol.message import CompactionEntry, HistoryEvent, Message, ToolResultMessage, UserMessage
from tenuto.protocol.part import ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.agents import (
    Said,
    agent_purpose,
    copy_agents,
    interrupted_agent,
    named_agents,
    read_said,
    remove_agents,
)
from tenuto.session.errors import Owner, SessionError, SessionNewer, SessionReadOnly, SessionUnreadable
from tenuto.session.library.meta import META_NAME, UNFINISHED, Keeping, Loaded, Meta, load_session
from tenuto.session.log.history import INDEX_NAME, History, LoadCount, StoredIndex
from tenuto.session.log.lock import LOCK_NAME, SessionLock
from tenuto.session.log.log import LOG_NAME, Damage, Durability, LogWriter
from tenuto.session.log.record import encode
from tenuto.session.paths import folder_identity, new_session_id, project_directory, temporary_directory
from tenuto.session.store import (
    AGENTS,
    BLOBS,
    OUTPUTS,
    PROCESSES,
    RUNNING,
    SERVERS,
    RunningCommand,
    Store,
    found_result,
    missing_shells,
)
from tenuto.session.view.pairing import interrupted_result
from tenuto.session.view.projection import LiveView, Reading
from tenuto.session.view.state import SessionState, apply_entry, apply_path_entry, missing_in_copy, reset_path_state
from tenuto.session.view.tree import EntryPath, Tree, of_kind
from tenuto.text.writable import path_text, text_path

_BATCH_BYTES = 1 << 20


def write_fork(log: Path, header: HeaderEntry, tree: Tree, end: int) -> None:
    """Write the log of a fork: its header and the lines of the path that ends at the seq `end`, as they stand.

    Queued texts that were not sent on this path are left out. Raises `OSError`, and `SessionUnreadable` when the lines
    cannot be read; then there is no log.
    """
    make_directory(log.parent)
    descriptor = open_private(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        batch = bytearray(encode(header)[1])
        for line in _copied_lines(tree, end):
            batch += line + b"\n"
            if len(batch) > _BATCH_BYTES:
                write_all(descriptor, bytes(batch))
                batch.clear()
        write_all(descriptor, bytes(batch))
    except (OSError, SessionUnreadable):
        log.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _copied_lines(tree: Tree, end: int) -> Iterator[bytes]:
    ranges = tree.path_ranges(end)
    settled = _settled(EntryPath(tree.history, ranges))
    for run in ranges:
        for entry, line in _lines(tree.history, run):
            if not isinstance(entry, QueuedEntry) or entry.seq in settled:
                yield line


def _settled(path: EntryPath) -> set[int]:
    """Return the seqs of the queued texts that were sent or taken back on the path."""
    return {
        entry.from_queued if isinstance(entry, UserMessage) else entry.target
        for entry in of_kind(path, UserMessage, DequeuedEntry)
    }


def _lines(history: History, run: range) -> Iterator[tuple[HistoryEvent, bytes]]:
    """Yield entries and their lines; what waits for a disk that failed is encoded again."""
    position = run.start
    while position < run.stop:
        number = history.block_at(position)
        first = history.block_start(number)
        entries = history.block_entries(number)
        records = list(history.block_records(number))
        for index in range(position - first, min(run.stop - first, len(entries))):
            entry = entries[index]
            record = records[index] if index < len(records) else None
            same = record is not None and record.entry.seq == entry.seq
            yield entry, record.raw if record is not None and same else _encode(entry)
        position = first + len(entries)


def _encode(entry: HistoryEvent) -> bytes:
    return entry.raw if isinstance(entry, UnknownEntry) else encode(entry)[1].rstrip(b"\n")


_FILES = frozenset({LOG_NAME, META_NAME, INDEX_NAME, LOCK_NAME})
_FOLDERS = frozenset({OUTPUTS, BLOBS, RUNNING, PROCESSES, SERVERS})


def remove_folder(directory: Path, copied: Iterable[str] = ()) -> bool:
    """Remove a session's folder if nothing but a session's own files is in it; return whether it is gone.

    `copied` names the blobs that another session has as well. Raises `OSError`; then, too, what is left is whole files.
    """
    files: list[Path] = []
    folders: list[Path] = []
    ours = {directory / BLOBS / name for name in copied}
    for path in directory.iterdir():
        if path.name in _FOLDERS and path.is_dir() and not path.is_symlink():
            inside = set(path.iterdir())
            if not inside <= ours:
                return False
            files += inside
            folders.append(path)
        elif (path.name in _FILES or is_temporary(path)) and path.is_file():
            files.append(path)
        else:
            return False
    for path in sorted(files, key=lambda path: path.name == LOG_NAME):  # the log last: without it the rest is nothing
        path.unlink()
    for path in (*folders, directory):
        path.rmdir()
    return True


Clock = Callable[[], float]
AppendedT = TypeVar("AppendedT", bound=Entry)
_SYNC_POINTS = (UserMessage, QueuedEntry, CompactionEntry)


class Unsaved(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that the disk did not take; they are kept in memory and tried again with every append."""

    reason: str
    entries: int


class Session:
    """A session that is open. `state` is what its entries add up to."""

    def __init__(self, header: HeaderEntry, directory: Path, clock: Clock, tree: Tree) -> None:
        self.id = header.session_id
        self.header = header
        self.directory = directory
        self.store = Store(directory)
        self.state = SessionState()
        self.held_usage = Usage()
        self._clock = clock
        self._tree = tree
        self._view = LiveView(tree.path, "")
        self._lock = SessionLock(directory)
        self._log: LogWriter | None = None
        self._keeping = Keeping(directory, StoredIndex([]), 0)
        self._is_temporary = False
        self._is_own = False
        self._copied: tuple[str, ...] = ()
        self._copied_agents: frozenset[str] = frozenset()
        self._durability: Durability = "points"

    @property
    def cwd(self) -> Path:
        """Where the session works: where it began, or where its project was moved to."""
        return text_path(self.state.cwd or self.header.cwd)

    @property
    def left_by(self) -> Owner | None:
        """Who had it open, on a machine of another name, and is gone without having let go of it."""
        return self._lock.left_by

    # --- opening and closing ---

    @classmethod
    def create(
        cls,
        home: Path,
        cwd: Path,
        *,
        clock: Clock = time.time,
        durability: Durability = "points",
        directory: Path | None = None,
        parent_session: str = "",
    ) -> Session:
        """Start a session in `cwd`.

        It lies under `home`, in the folder of the project, or for a sub-agent's session in `directory`. A disk that
        cannot be written to does not stop it: `unsaved` says so.
        """
        session_id = directory.name if directory else new_session_id(clock())
        header = HeaderEntry(
            session_id=session_id,
            cwd=path_text(cwd.absolute()),
            version=FORMAT_VERSION,
            parent_session=parent_session,
            folder=folder_identity(cwd),
        )
        return cls._start(header, directory or project_directory(home, cwd) / session_id, clock, durability)

    @classmethod
    def create_temporary(cls, cwd: Path, *, clock: Clock = time.time) -> Session:
        """Start a session in a temporary folder that `close` removes (`--no-session`). Raises `OSError`."""
        session_id = new_session_id(clock())
        directory = temporary_directory() / session_id
        header = HeaderEntry(session_id=session_id, cwd=path_text(cwd.absolute()), version=FORMAT_VERSION)
        session = cls._start(header, directory, clock, "none")
        session._is_temporary = True
        return session

    @classmethod
    def _start(cls, header: HeaderEntry, directory: Path, clock: Clock, durability: Durability) -> Session:
        header = msgspec.structs.replace(header, ts=clock())
        session = cls(header, directory, clock, Tree(History(directory / LOG_NAME, [])))
        session._durability, session._is_own = durability, not directory.exists()
        session._log = LogWriter(directory / LOG_NAME, durability, session._lock.renew)
        session._log.create()
        session._write(header)
        return session

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        clock: Clock = time.time,
        durability: Durability = "points",
        read_only: bool = False,
        take_over: bool = False,
    ) -> Session:
        """Open a session to go on with it, or to read it; costs what its end costs, however long it is.

        A writer takes the lock, and gives every call of the last answer that has no result one that says so (R-068).
        Raises `SessionLocked` when another process writes to it (`take_over`: unless nothing but its name says so),
        `SessionUnreadable` when its log cannot be read, `SessionNewer` when it is of a later format: then reading shows
        what is known of it.
        """
        lock = SessionLock(directory)
        try:
            if read_only:
                return cls._read(load_session(directory), directory, clock)
            if (directory / LOG_NAME).is_file():
                lock.acquire(take_over=take_over)
                remove_temporaries(directory)
            loaded = load_session(directory)
        except OSError as error:
            lock.release()
            raise SessionUnreadable(directory, error.strerror or str(error)) from error
        if loaded.header.version > FORMAT_VERSION:
            lock.release()
            raise SessionNewer(directory, loaded.header.version, FORMAT_VERSION)
        session = cls._read(loaded, directory, clock)
        session._lock, session._durability = lock, durability
        session._log = LogWriter(directory / LOG_NAME, durability, lock.renew)
        session._log.resume()
        session._keeping = Keeping(directory, loaded.index, session._log.size - loaded.unfolded)
        session._repair()
        session._keep_up()
        return session

    @classmethod
    def _read(cls, loaded: Loaded, directory: Path, clock: Clock) -> Session:
        session = cls(loaded.header, directory, clock, loaded.tree)
        session.state, session.held_usage = loaded.state, loaded.held_usage
        session._view = LiveView(loaded.tree.path, loaded.state.model)
        return session

    def _repair(self) -> None:
        """Write what a crash left out: the header of a log that lost it, results of calls, commands of the user."""
        if not self._tree.history.headers:
            self._write(msgspec.structs.replace(self.header, ts=self._clock()))
        left = list(self.store.running.left())
        commands = {command.call_id: command for _name, command in left if command.call_id}
        for call in self._tree.open_calls():
            command = commands.get(call.id)
            self.append(self._agent_result(call, command) or found_result(call, command, self.store.outputs))
        shells = [command for _name, command in left if command.shell is not None]
        for entry in missing_shells(shells, self._tree.everything, self.store.outputs):
            self.append(entry)
        for name, _command in left:
            self.store.running.forget(name)

    def _agent_result(self, call: ToolCallPart, command: RunningCommand | None) -> ToolResultMessage | None:
        """Return the result of a call whose sub-agent was killed with the process; what that used is counted."""
        if command is None or not command.session:
            return None
        said = read_said(self.directory / AGENTS / command.session) or Said()
        if not command.since and said.usage != Usage():
            self.append(UsageEntry(usage=said.usage, purpose=agent_purpose(command.command)))
        return interrupted_agent(call, command.session, command.command, said)

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be appended: it was opened for reading, or is closed."""
        return self._log is None

    def close(self) -> None:
        """Save the metadata, let go of the files, and remove a temporary session. Safe to call twice."""
        if self._log is not None:
            if not self._is_temporary:
                self.save_meta()
            self._log.close()
            self._log = None
        self._lock.release()
        if self._is_temporary:
            import shutil

            shutil.rmtree(self.directory.parent, ignore_errors=True)

    @property
    def keeps_log(self) -> bool:
        """Whether what is said is written to a log."""
        return not self._is_temporary

    def discard(self) -> bool:
        """Close the session; return whether its folder is gone with it, because nothing was ever said there.

        Only a folder that this process made goes, and only if nothing is in it but what this process wrote: a log that
        cannot be read is no session in which nothing was said (R-064, R-071). What a copy says stands in its origin.
        """
        log, is_own = self._log, self._is_own and not self.damage
        removable = log is not None and is_own and not self._is_temporary and log.is_untouched
        if log is None or not removable:
            self.close()
            return False
        log.close()
        self._log = None
        try:
            remove_agents(self.directory, self._copied_agents)
            return remove_folder(self.directory, self._copied)
        except OSError:
            return not self.directory.exists()
        finally:
            self._lock.release()

    def fork(self, home: Path, seq: int = 0) -> Session:
        """Start a new session under `home` that goes on from the entry `seq` of this one (0: the leaf).

        The lines of the path are copied as they are, so every `seq` stays (DESIGN section 3); a point inside a step
        moves to its end. What holds in the session, on whatever branch it was said, holds in the copy. What is queued
        stays here. Works on a session that is open for reading. The copy of a temporary session is temporary. Raises
        `OSError` and `SessionError`; then there is none.
        """
        if self.header.version > FORMAT_VERSION:
            raise SessionNewer(self.directory, self.header.version, FORMAT_VERSION)
        end = self._tree.end_of_step(seq) if seq else self._tree.leaf
        now = self._clock()
        header = HeaderEntry(
            session_id=new_session_id(now),
            cwd=path_text(self.cwd),
            version=self.header.version,  # its lines are copied as they are
            folder=self.state.folder,
            forked_from=ForkOrigin(session=self.id, seq=end),
            parent_session=self.header.parent_session,
        )
        folder = temporary_directory() if self._is_temporary else project_directory(home, self.cwd)
        directory = folder / header.session_id
        make_new_directory(directory)
        try:
            write_fork(directory / LOG_NAME, msgspec.structs.replace(header, ts=now), self._tree, end)
            copied = self.store.copy_blobs(Store(directory))
            agents = copy_agents(self.directory, directory, named_agents(self._tree.path_to(end)))
            session = Session.open(directory, clock=self._clock, durability=self._durability)
        except (OSError, SessionError):
            import shutil

            # Half a copy is none: nobody is to find it in the list. The folder was made here, a moment ago.
            shutil.rmtree(folder if self._is_temporary else directory, ignore_errors=True)
            raise
        session._is_temporary, session._is_own, session._copied = self._is_temporary, True, copied
        session._copied_agents = agents
        for entry in list(missing_in_copy(self.state, session.state)):
            session.append(entry)
        return session

    # --- writing ---

    def append(self, entry: AppendedT) -> AppendedT:
        """Write an entry and take it into the state; return it as stored, with its `seq` and `ts`.

        The line is written before anything acts on it. A disk that fails does not raise: the entry is kept and
        `unsaved` says so. A branch into a step is moved to the end of that step. Raises `SessionReadOnly`.
        """
        stored = msgspec.structs.replace(entry, seq=self._tree.history.highest + 1, ts=self._clock())
        if isinstance(stored, BranchEntry):
            stored = msgspec.structs.replace(stored, parent=self._tree.end_of_step(stored.parent))
        return cast("AppendedT", self._write(cast("HistoryEvent", stored)))

    def close_open_calls(self) -> None:
        """Append a result for every call of the last answer that has none and that nobody works on (R-068)."""
        for call in self._tree.open_calls():
            self.append(interrupted_result(call))

    def _write(self, entry: HistoryEvent) -> HistoryEvent:
        if self._log is None:
            raise SessionReadOnly(self.id)
        entry, line = encode(entry)
        if self._remember(entry, self._log.write(line)):
            self._keep_up()
        if isinstance(entry, _SYNC_POINTS):
            self._log.sync()
        return entry

    def _remember(self, entry: HistoryEvent, offset: int) -> bool:
        """Take a written entry into the state; return whether the index has something to save."""
        history = self._tree.history
        has_grown = history.append(entry, offset)
        self._tree.follow(entry)
        apply_entry(self.state, entry)
        if isinstance(entry, BranchEntry):
            reset_path_state(self.state, self._tree.path)
        else:
            apply_path_entry(self.state, entry)
        if isinstance(entry, HeaderEntry) and not self.header.cwd:
            self.header, self.id = entry, entry.session_id
        if isinstance(entry, CompactionEntry) and self._log is not None and self._log.is_known:
            history.release(self._view.first_kept)  # what the view had before stays, for an undo
        self._view.follow(entry, self._tree.path, self.state.model)
        return has_grown

    def _keep_up(self) -> None:
        """Save what makes the next opening fast, so that one after a crash is fast as well."""
        if self._log is not None and self._keeping.save_index(self._log, self._tree.history):
            self.save_meta()

    @property
    def unsaved(self) -> Unsaved | None:
        """What is not on disk, and why; `None` when all is well."""
        if self._log is None or not self._log.problem:
            return None
        return Unsaved(reason=self._log.problem, entries=self._log.waiting)

    def retry_save(self) -> bool:
        """Try again to write what waits; return whether everything is on disk now."""
        return self._log is not None and self._log.flush()

    def save_copy(self, folder: Path) -> Path:
        """Write the whole log, with what its own disk did not take, into a new folder; return the file.

        Raises `OSError`.
        """
        if self._log is None:
            raise SessionReadOnly(self.id)
        make_directory(folder)
        self._log.copy_to(folder / LOG_NAME)
        return folder / LOG_NAME

    def save_meta(self) -> None:
        """Store `meta.json`, from which pickers list the session; a disk that fails only makes them slower."""
        if self._log is None:
            raise SessionReadOnly(self.id)
        meta = Meta(
            session_id=self.id,
            cwd=self.header.cwd,
            parent_session=self.header.parent_session,
            format=self.header.version,
            held_usage=self.held_usage if self.held_usage != Usage() else None,
            damaged=len(self.damage),
            first_damage=str(self.damage[0]) if self.damage else "",
        )
        self._keeping.save_meta(self._log, self._tree.history, meta, self.state)

    def hold_usage(self, usage: Usage) -> None:
        """Count what a call cost that may not leave an entry now (a cancelled compaction); kept in `meta.json`."""
        self.held_usage += usage
        self.save_meta()

    def flush_held_usage(self) -> None:
        """Write what is held as a `usage` entry, if anything is."""
        if self.held_usage != Usage():
            usage, self.held_usage = self.held_usage, Usage()
            self.append(UsageEntry(usage=usage, purpose=UNFINISHED))

    # --- reading ---

    def get_llm_history(self) -> list[Message]:
        """Return the live view, system prompt first; the same list until something is appended. Do not change it."""
        return self._view.messages()

    @property
    def reading(self) -> Reading:
        """The compaction, system prompt and view edits in effect on the active path."""
        return self._view.reading

    def path(self) -> EntryPath:
        """Return the entries from the root to the leaf, without header and branches. It grows with the session.

        Its older part is read when somebody looks at it, and may be used from another thread.
        """
        return self._tree.path

    def path_to(self, seq: int) -> EntryPath:
        """Return the entries from the root to the one with this seq, wherever in the tree it stands."""
        return self._tree.path_to(seq)

    def end_of_step(self, seq: int) -> int:
        """Return `seq`, or the seq of the last result of its step if it lies inside one: where the leaf would go."""
        return self._tree.end_of_step(seq)

    @property
    def length(self) -> int:
        """How many entries the whole history has, the header among them."""
        return len(self._tree.history)

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[HistoryEvent]:
        """Yield the whole history in file order, the header first, or from one position up to another.

        May be used from another thread.
        """
        return self._tree.history.entries(start, self.length if stop is None else stop)

    def everything(self) -> EntryPath:
        """Return the entries of all branches in file order, without headers."""
        return self._tree.everything

    def grow_search(self, may_go_on: Callable[[], bool] = lambda: True) -> tuple[int, int]:
        """Put the next stretch of a long log into its search index; return how many bytes are in it, and could be.

        Call it in a thread. It changes nothing that the session is. Once `may_go_on` says no, it ends with its block.
        """
        from tenuto.session.search.index import grow_search

        return grow_search(self._tree.history, may_go_on)

    @property
    def has_content(self) -> bool:
        """Whether anything was said or done: more than a header and the choice of model and mode."""
        return next(self._tree.history.besides(HeaderEntry, ModelEntry, ModeEntry), None) is not None

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read of the log as it stands."""
        return self._tree.history.damages

    @property
    def loads(self) -> LoadCount:
        """How much of the log was read again since the session is open."""
        return self._tree.history.loads

    def entries_after(self, seq: int) -> Iterator[HistoryEvent]:
        """Yield the entries of the history with a higher seq, in file order."""
        return self._tree.entries_after(seq)

    def entries_between(self, first: int, last: int) -> Iterator[HistoryEvent]:
        """Yield the entries of the history with a seq from `first` to `last`, in file order."""
        return takewhile(lambda entry: entry.seq <= last, self._tree.entries_after(first - 1))

    @property
    def highest_seq(self) -> int:
        """The seq of the newest entry, on whatever branch."""
        return self._tree.history.highest

    def find(self, seq: int) -> HistoryEvent | None:
        """Return the entry with this seq, `None` if there is none."""
        return self._tree.find(seq)

    @property
    def usage(self) -> Usage:
        """Everything that the session used so far, with what is held."""
        return self.state.usage + self.held_usage
