"""The real program in a pseudo-terminal, under a session leader that outlives it.

The test holds the terminal's other side, so its attributes can be read before, while and after the program runs.
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
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pyte

NOT_FOR_PYTE = re.compile(rb"\x1b\[[<>=?][0-9;$]*[a-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[c|\x1b\[2[23];0t")
PASTES_OFF = b"\x1b[?2004l"
PATIENCE = 120.0
"""Seconds; a hang guard, not a measure."""
COLUMNS, ROWS = 200, 30
SOURCES = Path(__file__).parents[3] / "src"
TENUTO = (sys.executable, "-m", "tenuto", "--model", "offline/tenuto")


class Pseudo:
    """One run of one program. `left_raw`: in a terminal whose last programs were all killed at once."""

    def __init__(
        self, folder: Path, command: Sequence[str] = TENUTO, *, left_raw: bool = False, **environ: str
    ) -> None:
        self.home = folder / "home"
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        if left_raw:
            raw = termios.tcgetattr(self.slave)
            raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
            raw[0] &= ~(termios.IXON | termios.ICRNL)
            termios.tcsetattr(self.slave, termios.TCSANOW, raw)
        self.output = b""
        self._shown: tuple[int, list[str]] = (-1, [])
        known = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TENUTO_HOME": str(self.home),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(SOURCES),
            **environ,
        }
        report, mark = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            self._lead(list(command), known, folder, mark)
        os.close(mark)
        self._report = report
        (self.pid,) = struct.unpack("i", os.read(report, 4))

    def _lead(self, command: list[str], environ: dict[str, str], folder: Path, mark: int) -> None:
        try:
            os.login_tty(os.dup(self.slave))
            os.close(self.master)
            os.close(self.slave)
            os.chdir(folder)
            # A Ctrl+C before the terminal is raw is for the whole group.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            program = os.fork()
            if program == 0:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os.execvpe(command[0], command, environ)
            os.write(mark, struct.pack("i", program))
            _, status = os.waitpid(program, 0)
            os.write(mark, struct.pack("i", os.waitstatus_to_exitcode(status)))
            signal.pause()
        finally:
            os._exit(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in (self.pid, self.leader):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        for descriptor in (self.master, self.slave, self._report):
            os.close(descriptor)

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def read(self, seconds: float) -> None:
        """Take in what is drawn for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                self.output += os.read(self.master, 65_536)

    def read_while(self, condition: Callable[[], object]) -> None:
        """Take in what is drawn as long as this is so."""
        deadline = time.monotonic() + PATIENCE
        while condition():
            assert time.monotonic() < deadline, "it stays so\n" + "\n".join(self.screen())
            self.read(0.02)

    def leave(self) -> int:
        """Press Ctrl+D until the program begins to leave; return its exit code.

        The second counts only when it is handled soon after the first: on a busy machine it takes more.
        """
        seen = len(self.output)
        deadline = time.monotonic() + PATIENCE
        while PASTES_OFF not in self.output[seen:]:
            assert time.monotonic() < deadline, "it does not leave\n" + "\n".join(self.screen())
            self.type(b"\x04")
            pause = time.monotonic() + 0.3
            while PASTES_OFF not in self.output[seen:] and time.monotonic() < pause:
                self.read(0.02)
        return self.wait()

    def read_until(self, what: bytes | Path, patience: float = PATIENCE, *, after: int = 0) -> None:
        """Take in what is drawn until these bytes have been, `after` those that were, or the file is there."""
        deadline = time.monotonic() + patience
        while not (what in self.output[after:] if isinstance(what, bytes) else what.exists()):
            assert time.monotonic() < deadline, f"never came: {what!r}\n" + "\n".join(self.screen())
            self.read(0.01)

    def wait(self) -> int:
        """Wait for the end of the program; return its exit code, less than 0 for a signal."""
        deadline = time.monotonic() + PATIENCE
        while not select.select([self._report], [], [], 0)[0]:
            assert time.monotonic() < deadline, "it does not end\n" + "\n".join(self.screen())
            self.read(0.02)
        (code,) = struct.unpack("i", os.read(self._report, 4))
        return code

    def is_restored(self) -> bool:
        """Whether the terminal is, or is about to be, as it was before: its attributes, and what it was told to be."""
        deadline = time.monotonic() + PATIENCE
        self.read(0.05)
        while termios.tcgetattr(self.slave) != self.before or not self._has_left():
            if time.monotonic() > deadline:
                return False
            self.read(0.02)
        return True

    def _has_left(self) -> bool:
        entered, left = self.output.rfind(b"\x1b[?1049h"), self.output.rfind(b"\x1b[?1049l")
        hidden, shown = self.output.rfind(b"\x1b[?25l"), self.output.rfind(b"\x1b[?25h")
        pastes, plain = self.output.rfind(b"\x1b[?2004h"), self.output.rfind(b"\x1b[?2004l")
        return entered <= left and hidden <= shown and pastes <= plain

    def screen(self, output: bytes | None = None) -> list[str]:
        """The rows that show after `output`, or now; replayed only where something was drawn since the last look."""
        if output is not None:
            return rows_of(output)
        if self._shown[0] != len(self.output):
            self._shown = (len(self.output), rows_of(self.output))
        return self._shown[1]


def rows_of(output: bytes) -> list[str]:
    return [row.rstrip() for row in replay(output).display]


def replay(output: bytes) -> pyte.Screen:
    """Return the screen after this output."""
    screen = pyte.Screen(COLUMNS, ROWS)
    fill(screen, output)
    return screen


def fill(screen: pyte.Screen, output: bytes) -> None:
    """Show this output on a screen, but for what pyte would print instead of ignoring."""
    pyte.ByteStream(screen).feed(NOT_FOR_PYTE.sub(b"", output))
