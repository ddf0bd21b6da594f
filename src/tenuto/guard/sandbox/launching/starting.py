"""The way from Tenuto to a launcher: one process that forks them, started with the first command.

It is started anew when it is gone, and when what a process leaves to its children is not what it was (limits, mask,
rights, ignored signals): a command finds Tenuto as it is now. Tenuto has one end of a socket that has no name, and
passes it to nobody; with that end the process goes, however Tenuto ends.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import marshal
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

FIRST_PASSED = 3
"""The number that the first of what is passed on has in a command."""
_STARTER = Path(__file__).with_name("starter.py")
_HEAD, _ANSWER = struct.Struct("=II"), struct.Struct("=i")
"""As `starter` reads and writes them."""
_SECONDS = 10.0
"""How long an answer may take; it takes about a millisecond."""
_SAID_BYTES = 4_096
_OF_THE_LOADER = ("LD_", "DYLD_")
_STATUS = (
    *(b"Umask", b"Uid", b"Gid", b"Groups", b"SigBlk", b"SigIgn", b"CapInh", b"CapPrm", b"CapEff", b"CapBnd"),
    *(b"CapAmb", b"NoNewPrivs", b"Seccomp", b"Cpus_allowed", b"Mems_allowed"),
)
"""Of what the kernel says of a process, what those have that it starts."""
_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


class Order(Struct, frozen=True, kw_only=True):
    """A command to be started. All descriptors stay the caller's; those of `passed` are `FIRST_PASSED` and on in it.

    `status` takes a line that says how the shell ended. Without `stdin` the command has an empty one; with
    `has_terminal` that is the terminal of its session. `processes` is how many more the user's may become, 0 for no
    limit. The command enters each of `namespaces`, and `confinement` holds it.
    """

    words: Sequence[str]
    environ: Mapping[str, str]
    cwd: str
    status: int
    output: int
    errors: int
    stdin: int | None = None
    has_terminal: bool = False
    processes: int = 0
    namespaces: Sequence[int] = ()
    passed: Sequence[int] = ()
    confinement: bytes = b""

    def encode(self) -> bytes:
        """Return what goes with the descriptors. Raises `ValueError` for what no program can be given."""
        words, names, values = (
            [os.fsencode(one) for one in each] for each in (self.words, self.environ, self.environ.values())
        )
        if any(b"\0" in one for one in (*words, *names, *values)):
            raise ValueError("a NUL byte in a command or its environment")
        counts = 2 + (self.stdin is not None), len(self.namespaces)
        environ = dict(zip(names, values, strict=True))
        return marshal.dumps((words, environ, self.processes, counts, self.has_terminal, self.confinement))

    def descriptors(self) -> tuple[int, ...]:
        """Return those that are sent, in the order in which they are read."""
        stdin = () if self.stdin is None else (self.stdin,)
        return (self.status, *stdin, self.output, self.errors, *self.namespaces, *self.passed)


class Launcher(Struct, frozen=True):
    """What stands over a command: it leads the command's session."""

    pid: int
    starter: _Starter

    def reap(self) -> None:
        """It has ended: from now on its number can be given to another process."""
        self.starter.reap(self.pid)


def launch(order: Order, group: str | None = None) -> Launcher:
    """Start a command; `group` is the control group in which it counts, empty for Tenuto's, `None` for any.

    Raises `OSError`, `ValueError`.
    """
    data = order.encode()
    folder = os.open(order.cwd, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _lock:
            answer = _ask(data, (folder, *order.descriptors()), group)
            starter = _starters[0]
    finally:
        os.close(folder)
    if answer < 0:
        raise OSError(-answer, os.strerror(-answer), order.cwd)
    return Launcher(answer, starter)


def _ask(data: bytes, descriptors: Sequence[int], group: str | None) -> int:
    left = _left_to_children()
    for _ in range(2):
        if not _starters:
            _starters.append(_Starter(left))
        starter, answer = _starters[0], None
        try:
            if starter.left == left and starter.counts_in(group):
                answer = starter.ask(data, descriptors)
        finally:
            if answer is None:
                _starters.clear()
                starter.close()
        if answer is not None:
            return answer
    raise OSError("the process that starts commands has ended")


def try_command(
    words: Sequence[str], seconds: float, *, confinement: bytes = b"", namespaces: Sequence[int] = ()
) -> str:
    """Run a command to its end, so many seconds at most; return what went wrong, empty for nothing."""
    seen, status = os.pipe()
    reading, output = os.pipe()
    with open(seen, "rb") as told, open(reading, "rb") as said:
        try:
            order = Order(
                words=words, environ=os.environ, cwd="/", status=status, output=output, errors=output,
                confinement=confinement, namespaces=namespaces,
            )  # fmt: skip
            launcher = launch(order)
        except (OSError, ValueError) as error:
            return str(error)
        finally:
            os.close(status)
            os.close(output)
        if not select.select([told], [], [], seconds)[0]:
            os.killpg(launcher.pid, signal.SIGKILL)
        code = int(told.read().partition(b"\n")[0].strip(b".+") or b"137")
        launcher.reap()
        return "" if code == 0 else said.read(_SAID_BYTES).decode("utf-8", "replace").strip() or f"exit code {code}"


class _Starter:
    """The process. `left` is what Tenuto left to it."""

    def __init__(self, left: object) -> None:
        """Start it. Raises `OSError`."""
        self.left = left
        self._group = ""
        self._owner = os.getpid()
        ours, theirs = socket.socketpair()
        with theirs:
            passed = theirs.fileno(), _life()
            self._process = subprocess.Popen(
                [sys.executable or "python3", "-I", "-S", "-E", str(_STARTER), *map(str, passed)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: value for name, value in os.environ.items() if name.startswith(_OF_THE_LOADER)},
                pass_fds=passed,
                start_new_session=True,
            )
        ours.settimeout(_SECONDS)
        self._channel = ours

    def counts_in(self, group: str | None) -> bool:
        """Whether its launchers count in a control group; it joins the first that is asked for. Raises `OSError`."""
        if group and not self._group and self._is_ours():
            try:
                Path(group, "cgroup.procs").write_text(str(self._process.pid))
            except ProcessLookupError:
                return False
            self._group = group
        return group in (None, self._group)

    def ask(self, data: bytes, descriptors: Sequence[int]) -> int | None:
        """Have a command started; return the number of its launcher, or a fault below 0.

        `None` says that it was surely not started. Raises `OSError` where nobody knows.
        """
        if not self._is_ours():
            return None
        try:
            socket.send_fds(self._channel, [_HEAD.pack(len(data), 0)], descriptors)
            self._channel.sendall(data)
        except OSError:
            return None
        try:
            answer = self._channel.recv(_ANSWER.size, socket.MSG_WAITALL)
        except ConnectionResetError:
            return None  # it ended with something left to read, and begins nothing before it has read all
        if len(answer) < _ANSWER.size:
            raise OSError("the process that starts commands ended while it started one")
        return int(_ANSWER.unpack(answer)[0])

    def reap(self, pid: int) -> None:
        """Have it take an ended launcher away."""
        if self._is_ours():
            with _lock, contextlib.suppress(OSError):  # it has ended: then the system has done that
                self._channel.sendall(_HEAD.pack(0, pid))

    def close(self) -> None:
        """End it; the launchers that it has forked go on."""
        self._channel.close()
        if self._is_ours():
            self._process.kill()
            self._process.wait()

    def _is_ours(self) -> bool:
        """Whether it was started here, and not before a fork of Tenuto."""
        return self._owner == os.getpid()


_starters: list[_Starter] = []
"""The one that is there."""
_lock = threading.Lock()


@atexit.register
def close_starters() -> None:
    """End the processes that start commands; the next command starts another one."""
    with _lock:
        while _starters:
            _starters.pop().close()


@functools.cache
def _life() -> int:
    """Return the end of a pipe that every launcher reads; the other end is open for as long as this process lives."""
    reading, writing = os.pipe()
    _held_open.append(writing)
    return reading


_held_open: list[int] = []


def _left_to_children() -> object:
    """Return what this process leaves to those that it starts, as far as a program changes that."""
    try:
        with open("/proc/thread-self/status", "rb") as file:
            facts: object = [line for line in file if line.partition(b":")[0] in _STATUS]
        with open("/proc/thread-self/cgroup", "rb") as file:
            groups = file.read()
    except OSError:
        facts, groups = os.umask(0o077), b""
        os.umask(facts)
    return facts, groups, os.getpriority(os.PRIO_PROCESS, 0), [resource.getrlimit(one) for one in _LIMITS]
