"""A program under a pseudo-terminal: every byte that it writes with the time at which it came.

Nothing is interpreted while the program runs, so that watching costs it as little as can be; `screen.py` replays the
bytes afterwards. The terminal answers the usual queries, since programs wait for the answers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

COLUMNS, ROWS = 100, 30
_ANSWERS = (
    (re.compile(rb"\x1b\[0?c"), b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[\?6n"), b"\x1b[?1;1R"),
    (re.compile(rb"\x1b\[5n"), b"\x1b[0n"),
    (re.compile(rb"\x1b\]10;\?(?:\x07|\x1b\\)"), b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
    (re.compile(rb"\x1b\]11;\?(?:\x07|\x1b\\)"), b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"),
    (re.compile(rb"\x1b\]4;0;\?(?:\x07|\x1b\\)"), b"\x1b]4;0;rgb:0000/0000/0000\x1b\\"),
    (re.compile(rb"\x1b\[\?u"), b"\x1b[?0u"),
    (re.compile(rb"\x1b\[14t"), b"\x1b[4;600;1000t"),
    (re.compile(rb"\x1b\[>0?q"), b"\x1bP>|bench 1\x1b\\"),
    (re.compile(rb"\x1b\[\?996n"), b"\x1b[?997;1n"),
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),
    (re.compile(rb"\x1b\[\?2027\$p"), b"\x1b[?2027;0$y"),
)


@dataclass(slots=True)
class Terminal:
    """One run. `started` is the moment just before exec; `chunks` are `(seconds since then, bytes)`."""

    pid: int
    master: int
    started: float
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    ended: bool = False

    @classmethod
    def start(cls, command: list[str], environ: dict[str, str], cwd: Path) -> Terminal:
        """Start a program; its terminal does not echo by itself, so an echo is always the program's own."""
        master, slave = pty.openpty()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        modes = termios.tcgetattr(slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        ready, mark = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.login_tty(slave)
                os.chdir(cwd)
                os.write(mark, struct.pack("d", time.monotonic()))
                os.execvpe(command[0], command, environ)
            finally:
                os._exit(127)
        os.close(slave)
        os.close(mark)
        (started,) = struct.unpack("d", os.read(ready, 8))
        os.close(ready)
        return cls(pid, master, started)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the program by its process group, in which it is the leader."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            if self._wait(2.0):
                break
        os.close(self.master)

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                    # The program may want to write its farewell before it goes.
                    self.read(0.01)
                    continue
            return True
        return False

    @property
    def now(self) -> float:
        """Seconds since exec."""
        return time.monotonic() - self.started

    def read(self, patience: float) -> bytes:
        """Return what has come within `patience` seconds, empty when nothing has."""
        if self.ended or not select.select([self.master], [], [], max(0.0, patience))[0]:
            return b""
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return b""
        self.chunks.append((self.now, data))
        for query, reply in _ANSWERS:
            for _ in query.findall(data):
                self.write(reply)
        return data

    def write(self, data: bytes) -> None:
        """Type bytes."""
        with contextlib.suppress(OSError):
            os.write(self.master, data)

    def wait_for(self, token: bytes, timeout: float) -> float | None:
        """Read until these bytes came, in this call; return when (seconds since exec), `None` if they did not."""
        deadline, tail = self.now + timeout, b""
        while self.now < deadline and not self.ended:
            data = self.read(deadline - self.now)
            if token in tail + data:
                return self.chunks[-1][0]
            tail = (tail + data)[-len(token) :]
        return None

    def wait_quiet(self, quiet: float, timeout: float) -> None:
        """Read until nothing has come for `quiet` seconds."""
        deadline = self.now + timeout
        while self.now < deadline and self.read(quiet):
            pass
