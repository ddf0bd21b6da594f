"""The program as a job of a small shell, in a terminal that answers and reports, and of which every mode is known."""

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
from typing import Self

import pyte

from tests.terminal.modes import Modes
from tests.tui.first_paint.pseudo import NOT_FOR_PYTE

PATIENCE = 120.0
"""Seconds; a hang guard, not a measure."""
UNENDED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?)?\Z")
QUESTIONS: dict[bytes, bytes] = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[5n": b"\x1b[0n",
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[?2048$p": b"\x1b[?2048;0$y",
    b"\x1b]11;?\x07": b"\x1b]11;rgb:1e1e/2020/2424\x1b\\",
}
STOPPED, WENT_ON, ENDED = b"s", b"c", b"e"
FOREGROUND = {"as bash": b"b", "as zsh": b"z"}
"""How a shell lets a job go on: with the terminal as the shell had it, or as the job had it."""


class Job:
    """One run. `late` says how many seconds each answer of the terminal takes."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        columns: int = 100,
        rows: int = 30,
        late: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.columns, self.rows = columns, rows
        self._late = late
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.modes = Modes()
        self.at_first = self.modes.state()
        self.output = b""
        self._unseen = b""
        self._text: str | None = None
        self._answers: list[tuple[float, bytes]] = []
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        said, say = os.pipe()
        told, self._tell = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            os.close(said)
            os.close(self._tell)
            _Shell(self, folder, list(command), dict(environ), say, told).lead()
        os.close(say)
        os.close(told)
        self._said = said
        (self.pid,) = struct.unpack("i", self._hear(4))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in (-self.pid, self.pid, self.leader):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        for descriptor in (self.master, self.slave, self._said, self._tell):
            os.close(descriptor)

    # --- the terminal ---

    def say(self, data: bytes) -> None:
        """Say something as a terminal, or type it."""
        os.write(self.master, data)

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._text = None
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def pass_time(self, seconds: float) -> None:
        """Take in what is drawn, and answer what is asked."""
        deadline = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            for answer in [one for one in self._answers if one[0] <= now]:
                self._answers.remove(answer)
                self.say(answer[1])
            if now >= deadline:
                return
            due = min([deadline, *(at for at, _ in self._answers)])
            if select.select([self.master], [], [], max(0.0, due - now))[0]:
                self._take(os.read(self.master, 65_536))

    def _take(self, data: bytes) -> None:
        self.output += data
        data = self._unseen + data
        unended = UNENDED.search(data)
        self._unseen = unended[0] if unended else b""
        data = data[: len(data) - len(self._unseen)]
        places = [(data.find(one), one) for one in QUESTIONS]
        for _, question in sorted(place for place in places if place[0] >= 0):
            for _ in range(data.count(question)):
                earliest = max([time.monotonic(), *(at for at, _ in self._answers)])
                self._answers.append((earliest + self._late(), QUESTIONS[question]))
        self.modes.feed(data)
        self._stream.feed(NOT_FOR_PYTE.sub(b"", data))
        self._text = None

    @property
    def text(self) -> str:
        if self._text is None:  # pyte takes milliseconds for it
            self._text = "\n".join(row.rstrip() for row in self.screen.display)
        return self._text

    def wait_until(self, condition: Callable[[], object], what: str, tell: Callable[[], str] | None = None) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n{(tell or self.describe)()}"
            self.pass_time(0.02)

    def describe(self) -> str:
        shown = "\n".join(f"| {row}" for row in self.text.split("\n"))
        return f"{shown}\ncursor {self.screen.cursor.x} {self.screen.cursor.y}\nlast output {self.output[-600:]!r}"

    # --- the shell ---

    def wait_stopped(self) -> bool:
        """Wait until the job has stopped; return whether the line discipline was as before."""
        self._wait_for(STOPPED)
        return self._hear(1) == b"1"

    def go_on(self, how: str) -> None:
        """Let the job go on in the foreground."""
        os.write(self._tell, FOREGROUND[how])
        self._wait_for(WENT_ON)

    def wait_ended(self) -> int:
        """Wait for the end; return the exit code, less than 0 for a signal."""
        self._wait_for(ENDED)
        (code,) = struct.unpack("i", self._hear(4))
        return code

    def left_to_read(self) -> bytes:
        """What whoever reads the terminal next gets."""
        got = b""
        while select.select([self.slave], [], [], 0.1)[0]:
            got += os.read(self.slave, 1024)
        return got

    def _wait_for(self, word: bytes) -> None:
        self.wait_until(lambda: select.select([self._said], [], [], 0)[0], f"{word!r} from the shell")
        heard = self._hear(1)
        assert heard == word, f"{heard!r} and not {word!r}\n{self.describe()}"

    def _hear(self, size: int) -> bytes:
        return os.read(self._said, size)


class _Shell:
    """The leader of the session: it has the terminal whenever the job is stopped or has ended."""

    def __init__(
        self, job: Job, folder: Path, command: list[str], environ: dict[str, str], say: int, told: int
    ) -> None:
        self._job, self._folder, self._command, self._environ = job, folder, command, environ
        self._say, self._told = say, told

    def lead(self) -> None:
        try:
            os.close(self._job.master)
            os.login_tty(self._job.slave)
            os.chdir(self._folder)
            for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_IGN)
            self._run()
        finally:
            os._exit(0)

    def _run(self) -> None:
        program = os.fork()
        if program == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            for number in (signal.SIGTTOU, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.execvpe(self._command[0], self._command, self._environ)
        with contextlib.suppress(OSError):
            os.setpgid(program, program)
        os.write(self._say, struct.pack("i", program))
        while True:
            _, status = os.waitpid(program, os.WUNTRACED)
            theirs = termios.tcgetattr(0)
            os.tcsetpgrp(0, os.getpgrp())
            if not os.WIFSTOPPED(status):
                os.write(self._say, ENDED + struct.pack("i", os.waitstatus_to_exitcode(status)))
                signal.pause()
            termios.tcsetattr(0, termios.TCSANOW, self._job.before)
            os.write(self._say, STOPPED + (b"1" if theirs == self._job.before else b"0"))
            how = os.read(self._told, 1)
            termios.tcflush(0, termios.TCIFLUSH)  # a shell reads what comes meanwhile
            if how == FOREGROUND["as zsh"]:
                termios.tcsetattr(0, termios.TCSANOW, theirs)
            os.tcsetpgrp(0, program)
            os.killpg(program, signal.SIGCONT)
            os.write(self._say, WENT_ON)
