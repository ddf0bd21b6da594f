"""Commands that outlive the program (`kill -9`): written down while they run, found and ended at the next start.

A record lies beside the log for as long as its command runs, and is made before the command is, so that there is no
moment in which it could be missed. A process id says little after a while, since ids are used again: a process is
taken for one of ours only by the word that it inherited in its environment, or by the start time of its shell, and
never after the machine was started again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tenuto.private_files import make_directory, open_private, write_all
from tenuto.text.writable import to_json

_HAS_PROC = Path("/proc/self/stat").exists()
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PATIENCE = 5
_PARENT, _SESSION, _TICKS = 1, 3, 19
"""Places in `/proc/PID/stat`, counted from the state behind the name."""


@functools.cache
def boot_id() -> str:
    """Return what changes with every start of the machine, empty where that is not known."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _facts(pid: int | str) -> list[bytes]:
    """Return the facts of a live process behind its name, which may hold anything; none of a dead one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            line = file.read()
    except OSError:
        return []
    facts = line[line.rfind(b")") + 2 :].split()
    return facts if len(facts) > _TICKS and facts[0] not in b"ZX" else []


def is_listed(pid: int) -> bool:
    """Say whether a process is alive, and no zombie."""
    return bool(_facts(pid))


def start_ticks(pid: int) -> int:
    """Return when a live process started, in the kernel's ticks since the machine did; 0 where that is not known."""
    facts = _facts(pid)
    return int(facts[_TICKS]) if facts else 0


def started_at(pid: int) -> float | None:
    """Return the second since the epoch in which a live process started, as `ps` says; `None` if there is none."""
    listing = _ask_ps("-o", "lstart=", "-p", str(pid))
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(" ".join(listing.split()), "%a %b %d %H:%M:%S %Y"))
    return None


def session_of(pid: int) -> int:
    """Return the session of a process, 0 when it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def session_members(session: int) -> list[int]:
    """Return the live processes of a session, also those whose parent has ended."""
    if _HAS_PROC:
        wanted = str(session).encode()
        names = (name for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names are all that is needed
        return [int(name) for name in names if (facts := _facts(name)) and facts[_SESSION] == wanted]
    return [int(word) for word in _ask_ps("-axo", "pid=").split() if session_of(int(word)) == session]


def tree_members(leader: int) -> list[int]:
    """Return the live processes of a session and all that descend from its leader, whatever session they went to."""
    if not _HAS_PROC:
        return session_members(leader)
    wanted = str(leader).encode()
    children: dict[int, list[int]] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are all that is needed
        if name.isdigit() and (facts := _facts(name)):
            children.setdefault(int(facts[_PARENT]), []).append(int(name))
            if facts[_SESSION] == wanted:
                found.add(int(name))
    pending = [leader, *found]
    while pending:
        below = [pid for pid in children.get(pending.pop(), ()) if pid not in found]
        found.update(below)
        pending += below
    return sorted(found)


def _ask_ps(*words: str) -> str:
    try:
        listing = subprocess.run(
            ["ps", *words],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return listing.stdout


VARIABLE = "TENUTO_COMMAND"
"""The environment variable by which the processes of a command are known."""
_PROC = Path("/proc")
_TERM_SECONDS = 1.0
_GONE_SECONDS = 1.5
_POLL_SECONDS = 0.03
_CLOCK_SECONDS = 2.0
"""How far the start time that `ps` shows, in whole seconds, may be from our own."""


class _Begun(msgspec.Struct, frozen=True):
    """The first line of a record: what is known before the command is there. `at` is seconds since the epoch."""

    word: str
    command: str
    at: float
    boot: str


class _Running(msgspec.Struct, frozen=True):
    """The second line: the shell, which leads the command's session, and when it started in the clock of the kernel."""

    pid: int
    ticks: int


class RunningRecord:
    """The record of one command. A disk that does not take it stops nothing."""

    def __init__(self, folder: Path, command: str) -> None:
        """Write down that `command` is about to be started."""
        self.word = os.urandom(12).hex()
        self._path = folder / f"{self.word}.json"
        with contextlib.suppress(OSError):
            make_directory(folder)
            self._add(_Begun(self.word, command, time.time(), boot_id()), os.O_CREAT | os.O_EXCL)

    def started(self, pid: int) -> None:
        """Write down the process of its shell."""
        with contextlib.suppress(OSError):
            self._add(_Running(pid, start_ticks(pid)), 0)

    def remove(self) -> None:
        """Nothing of the command runs any more."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _add(self, line: msgspec.Struct, flags: int) -> None:
        descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | flags)
        try:
            write_all(descriptor, to_json(line) + b"\n")
        finally:
            os.close(descriptor)


class LeftCommand(msgspec.Struct, frozen=True):
    """A command of an earlier run that was found running. `ended` says whether it is gone now."""

    command: str
    pid: int
    processes: int
    ended: bool

    def __str__(self) -> str:
        """Return it as a user reads it."""
        count = f", {self.processes} processes" if self.processes > 1 else ""
        return f"{self.command} (process {self.pid}{count})"


def end_left_commands(folder: Path) -> list[LeftCommand]:
    """End what still runs of the commands that are written down in `folder`; return what did, and forget the rest.

    Takes up to a few seconds. The session must be ours: its owner is gone. Never raises for a single command.
    """
    found: list[LeftCommand] = []
    for path in _records(folder):
        begun, running = _read(path)
        session = _find_session(begun, running) if begun is not None and begun.boot == boot_id() else 0
        if begun is not None and session:
            members = _watch(session)
            count = len(members())
            found.append(LeftCommand(begun.command, session, count, _end(members)))
            if not found[-1].ended:
                continue
        with contextlib.suppress(OSError):
            path.unlink()
    return found


def _records(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []


def _read(path: Path) -> tuple[_Begun | None, _Running | None]:
    try:
        first, _, second = path.read_bytes().partition(b"\n")
        begun = msgspec.json.decode(first, type=_Begun)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None, None
    try:
        return begun, msgspec.json.decode(second, type=_Running)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return begun, None


def _find_session(begun: _Begun, running: _Running | None) -> int:
    """Return the session of the command if anything in it is alive, surely ours; else 0.

    What left the session by `setsid` was let go on purpose, and is as free here as at an orderly end (R-078).
    """
    if not (_PROC / "self" / "environ").exists():
        at = started_at(running.pid) if running else None
        return running.pid if running and at is not None and abs(at - begun.at) <= _CLOCK_SECONDS else 0
    if running is not None and running.ticks and start_ticks(running.pid) == running.ticks:
        return running.pid
    mark = f"{VARIABLE}={begun.word}".encode()
    sessions = [session_of(pid) for pid in _all_pids() if _has_word(pid, mark)]
    if running is not None:
        return running.pid if running.pid in sessions else 0
    return sessions[0] if sessions else 0  # killed before its process was written down


def _watch(session: int) -> Callable[[], list[int]]:
    """Return what lists the members of a session that is ours now: its id is nobody else's while one of them lives."""
    ticks = start_ticks(session)

    def members() -> list[int]:
        now = start_ticks(session)
        return [] if now and now != ticks else session_members(session)

    return members


def _all_pids() -> Iterable[int]:
    return (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 - names are all that is needed


def _has_word(pid: int, mark: bytes) -> bool:
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0") and is_listed(pid)
    except OSError:
        return False


def _end(members: Callable[[], list[int]]) -> bool:
    """End processes: ask first, then kill. Return whether all are gone."""
    for signals, seconds in (((signal.SIGTERM, signal.SIGCONT), _TERM_SECONDS), ((signal.SIGKILL,), _GONE_SECONDS)):
        deadline = time.monotonic() + seconds
        asked: set[int] = set()
        while pids := members():
            for pid in pids:
                if pid not in asked or signal.SIGKILL in signals:
                    asked.add(pid)
                    _send(pid, signals, members)
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
        else:
            return True
    return not members()


def _send(pid: int, signals: Iterable[signal.Signals], members: Callable[[], list[int]]) -> None:
    """Signal a process that is surely the one that was meant, where the system can hold on to it meanwhile."""
    with contextlib.suppress(OSError):
        if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
            for number in signals:
                os.kill(pid, number)
            return
        held = os.pidfd_open(pid)
        try:
            if pid in members():  # the id may have become another's just before it was held
                for number in signals:
                    signal.pidfd_send_signal(held, number)
        finally:
            os.close(held)


def describe_left(left: Iterable[LeftCommand]) -> list[str]:
    """Return a line for the user on each command that was found."""
    return [
        f"A command of the last run was still running and was ended: {one}."
        if one.ended
        else f"A command of the last run is still running and could not be ended: {one}."
        for one in left
    ]


def note_for_model(left: Iterable[LeftCommand]) -> str:
    """Return what the model has to know of them."""
    lines = "\n".join(f"- {one}: {'ended now' if one.ended else 'still running'}" for one in left)
    return (
        "The program was killed while these commands ran; they went on by themselves until the session was opened "
        f"again. Check what they did before you rely on it:\n{lines}"
    )
