"""Programs that tests start warm: forked from a Python that has imported already what they import.

A start of Tenuto takes 120 ms of a processor, 80 of them for imports; a fork takes a tenth. A test says which it wants
by how it names the program:

- `[*TENUTO, "-p", "hello"]`, given to `subprocess` or to `asyncio`: a warm start, for tests of what the program does.
  `[PYTHON, "-m", MODULE]` and `[PYTHON, "-c", CODE]` are warm too: for programs of a test that import much of ours.
- `[sys.executable, "-m", "tenuto"]`: a real start, for tests of the start itself: what is imported when, the first
  paint, an installation, flags of Python, signals while it begins, memory. So does all that another program starts:
  a shell, a terminal, `os.exec`, `os.posix_spawn`.

What is forked is a child of the test, with a pid of its own, and begins as after an exec: the arguments, environment,
directory, umask, group, signals and descriptors are those that the test gives it, and no test's before it. It shares
with others of its worker the seed of hashes, the limits (`setrlimit`), and what its command line looks like to `ps`.
What a fork cannot have makes a real start of it, without a word: a function that runs before the exec, another user,
Python's own variables; and so does a system other than Linux.

All starts are real unless asked for: `WARM_STARTS=1 ./scripts/test`. CI has real ones, since a worker once waited for
ever for a forker that waited for it, and nobody knows yet why.
"""

from __future__ import annotations

import marshal
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.warm.forker import CLONE, HEAD

FORKER = Path(__file__).parent / "forker.py"
IS_POSSIBLE = (
    sys.platform == "linux"
    and os.uname().machine in CLONE
    and Path("/proc/self/status").exists()
    and os.environ.get("WARM_STARTS") == "1"
)
ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
LOCALE = (b"LC_ALL", b"LC_CTYPE", b"LANG")
"""The first of these that says something is asked once and for all: for each such locale there is a forker."""
FLAGS = (b"PYTHONUNBUFFERED", b"PYTHONDONTWRITEBYTECODE")
"""And for each setting of these, which containers like to have."""
HARMLESS = [
    "PYTHON_KEYRING_BACKEND=",  # a library's
    *(f"PYTHONPATH={re.escape(str(each))}$" for each in (ROOT, SOURCES)),  # where imports come from anyway
    *(f"{each.decode()}=" for each in FLAGS),
]
NOT_FORKED = re.compile(os.fsencode(rf"(?!{'|'.join(HARMLESS)})(PYTHON|LD_|MALLOC_|OPENSSL_|OTEL_|PYDANTIC_)"))
"""What else is read when a Python begins, or while it imports."""
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores, and `subprocess` gives back to what it starts."""
PATIENCE = 120.0
"""Seconds; a hang guard."""


class _Warm(str):
    """The path of this Python, in the words of a program that is to be forked."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


PYTHON = _Warm(sys.executable)
TENUTO = (PYTHON, "-m", "tenuto")


class _Forker:
    """A forker that this process has started, and the line to it."""

    def __init__(self, environ: dict[bytes, bytes]) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._line, other = socket.socketpair()
        self._line.settimeout(PATIENCE)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, FORKER, str(other.fileno())],
                env=environ,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def fork(self, wanted: dict[str, Any], descriptors: Sequence[int]) -> int:
        """Return the pid of a child of this process that is what is wanted."""
        message = marshal.dumps(wanted)
        with self._lock:
            socket.send_fds(self._line, [HEAD.pack(len(message))], descriptors)
            self._line.sendall(message)
            answer = self._line.recv(HEAD.size)
        if not answer:
            raise RuntimeError(f"the forker has ended with {self._process.wait()}")
        return HEAD.unpack(answer)[0]


_forkers: dict[tuple[tuple[bytes, bytes], ...], _Forker] = {}
_fork_exec = subprocess._fork_exec


def _start(
    words: Sequence[Any], places: Any, close_fds: bool, kept: Sequence[int], cwd: Any, environ: list[bytes] | None,
    in_read: int, in_write: int, out_read: int, out_write: int, error_read: int, error_write: int,
    failures_read: int, failures: int, restore_signals: bool, session: bool, group: int,
    gid: Any, gids: Any, uid: Any, umask: int, preexec: Any, *others: Any,
) -> int:  # fmt: skip
    """Stand in for what `subprocess` starts all programs with: fork those that are to be warm."""
    lines = environ if environ is not None else [name + b"=" + value for name, value in os.environb.items()]
    if (
        IS_POSSIBLE
        and isinstance(words[0], _Warm)
        and words[1] in ("-m", "-c")
        and close_fds
        and (gid, gids, uid, preexec) == (None, None, None, None)
        and not any(map(NOT_FORKED.match, lines))
        and (forker := _forker_of(lines))
    ):
        numbers = [each for each in kept if each != failures]
        given = [own if own != -1 else number for number, own in enumerate((in_read, out_write, error_write))]
        status = Path("/proc/self/status").read_text("ascii", "replace")
        ignored = {number for number in signal.valid_signals() if _field(status, "SigIgn", 16) >> (number - 1) & 1}
        wanted = {
            "words": [os.fsdecode(os.fsencode(word)) for word in words],
            "cwd": os.path.join(os.fsencode(os.getcwd()), os.fsencode(cwd or "")),
            "environ": lines,
            "numbers": numbers,
            "ignored": [int(each) for each in ignored - (set(RESTORED) if restore_signals else set())],
            "blocked": [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
            "session": session,
            "group": group,
            "umask": umask if umask >= 0 else _field(status, "Umask", 8),
        }
        return forker.fork(wanted, [failures, *given, *numbers])
    return _fork_exec(
        words, places, close_fds, kept, cwd, environ,
        in_read, in_write, out_read, out_write, error_read, error_write,
        failures_read, failures, restore_signals, session, group,
        gid, gids, uid, umask, preexec, *others,
    )  # fmt: skip


def _field(status: str, name: str, base: int) -> int:
    return int(status.partition(f"\n{name}:")[2].split(maxsplit=1)[0], base)


def _forker_of(environ: Sequence[bytes]) -> _Forker | None:
    """The forker for this locale and these flags; none in a fork of its owner: what it forks is no child of ours."""
    values = dict(each.split(b"=", 1) for each in environ)
    names = [*[name for name in LOCALE if values.get(name)][:1], *(name for name in FLAGS if name in values)]
    key = tuple((name, values[name]) for name in names)
    if key not in _forkers:
        _forkers[key] = _Forker(dict(key))
    return _forkers[key] if _forkers[key].owner == os.getpid() else None


if IS_POSSIBLE:
    subprocess._fork_exec = _start
    subprocess._USE_POSIX_SPAWN = False  # from 3.13 on it is another way to start what asks for nothing special
