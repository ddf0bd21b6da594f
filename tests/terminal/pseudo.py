"""A pseudo-terminal around the program, for what a tmux would do for us: every byte in and out, chunk by chunk."""

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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from tests.terminal.screen import BIN, PATIENCE, frame, source_path

UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=?][0-9;$]*[a-z]")
ANSWERS = {b"\x1b[c": b"\x1b[?62;22c", b"\x1b[5n": b"\x1b[0n", b"\x1b[?2026$p": b"\x1b[?2026;2$y"}
"""What a terminal says when it is asked: what it is, that it is well, that it can draw in one go."""


class CommandTerminal:
    """A command in a pseudo-terminal of 100 x 30 cells whose screen pyte keeps; `environ` is all that it knows."""

    def __init__(self, cwd: Path, environ: Mapping[str, str], command: Sequence[str | Path]) -> None:
        self.screen = pyte.Screen(100, 30)
        self.output = b""
        self.answers = ANSWERS
        self._text = ""
        self._text_of = -1
        self.status: int | None = None
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], [Path(command[0]).name, *command[1:]], dict(environ))
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def read(self, seconds: float = 0.05) -> None:
        """Take in what the program writes, if it writes within this time, and answer what it asks."""
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return
        with contextlib.suppress(OSError):
            data = os.read(self.descriptor, 65_536)
            self.output += data
            for question, reply in self.answers.items():
                for _ in range(data.count(question)):
                    os.write(self.descriptor, reply)
            self._stream.feed(UNKNOWN_TO_PYTE.sub(b"", data))

    def write(self, data: bytes) -> None:
        """Write bytes as the terminal would, taking in what comes back meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while data:
            assert time.monotonic() < deadline, "the program does not read"
            _, ready, _ = select.select([], [self.descriptor], [], 0.05)
            if ready:
                data = data[os.write(self.descriptor, data[:1024]) :]
            self.read(0)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the kernel tells the program."""
        self._text_of = -1
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until_quiet(self, seconds: float = 0.7) -> bytes:
        """Take in what the program writes until it writes nothing for so long; return it."""
        begin = len(self.output)
        deadline = time.monotonic() + PATIENCE
        seen, since = begin, time.monotonic()
        while time.monotonic() - since < seconds:
            assert time.monotonic() < deadline, "it never stops writing"
            self.read()
            if len(self.output) != seen:
                seen, since = len(self.output), time.monotonic()
        return self.output[begin:]

    def text(self) -> str:
        """The screen as text; pyte takes milliseconds for it, so it is made anew only after something was written."""
        if self._text_of != len(self.output):
            self._text = "\n".join(row.rstrip() for row in self.screen.display)
            self._text_of = len(self.output)
        return self._text

    def wait_until(self, condition: Callable[[], object], what: str) -> str:
        """Take in what the program writes until a condition is fulfilled; return the screen."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n{frame(self.text())}"
            self.read()
        return self.text()

    def wait_for(self, text: str) -> str:
        """Wait until a text shows."""
        return self.wait_until(lambda: text in self.text(), repr(text))

    def wait_until_gone(self, text: str) -> str:
        """Wait until a text shows no more."""
        return self.wait_until(lambda: text not in self.text(), f"no {text!r}")

    def has_ended(self) -> bool:
        """Whether the program has ended, by itself or not."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait_end(self) -> int:
        """Wait until the program has ended by itself; return its exit code."""
        deadline = time.monotonic() + PATIENCE
        while not self.has_ended():
            assert time.monotonic() < deadline, f"it never ended\n{frame(self.text())}"
            self.read()
        seen = -1
        while seen < len(self.output):  # what it wrote at its end may not be read yet
            seen = len(self.output)
            self.read()
        return self.status

    def close(self) -> None:
        """End the program."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.descriptor)


class PseudoTerminal(CommandTerminal):
    """The program itself in a pseudo-terminal."""

    def __init__(self, cwd: Path, home: Path, environ: Mapping[str, str], *arguments: str) -> None:
        settings = {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TENUTO_HOME": str(home),
            "PATH": os.environ["PATH"],
            **source_path(),
        }
        super().__init__(cwd, {**settings, **environ, "HOME": str(home)}, [BIN / "tenuto", *arguments])
