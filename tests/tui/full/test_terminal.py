"""A real pseudo-terminal around the demo: what the terminal gets, and how it is left."""

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
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

ROOT = Path(__file__).parents[3]
PATIENCE = 120.0
BEGUN = ("?1049h", "?1000h", "?1002h", "?1006h", "?2004h", "?1004h", "?25l")
pytestmark = pytest.mark.terminal


class Session:
    """The demo in a pseudo-terminal; a shell outlives it, so that the terminal can be asked how it was left."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ.update({"TERM": "xterm-256color", **environ})
            os.execv(sys.executable, [sys.executable, "-m", "tests.tui.full.demo", *arguments])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.fd)
        self.status: int | None = None

    def read(self, seconds: float = 0.05) -> None:
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):
                data = os.read(self.fd, 65_536)
                self.output += data
                self.stream.feed(re.sub(rb"\x1b\[[<>=?][0-9;$]*[a-z]", b"", data))

    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.screen.display)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.text():
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.text()}"
            self.read()

    def send(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_end(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.status is None:
            assert time.monotonic() < deadline, f"it never ended:\n{self.text()}"
            self.read(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        self.read()
        return self.status

    def assert_restored(self) -> None:
        """Every mode that was begun has been ended after it, and the line discipline is as before."""
        sent = self.output.decode("utf-8", "replace")
        for begun in BEGUN:
            ended = begun[:-1] + ("l" if begun.endswith("h") else "h")
            assert sent.rfind(f"\x1b[{ended}") > sent.rfind(f"\x1b[{begun}") >= 0, begun
        assert sent.rfind("\x1b[<u") > sent.rfind("\x1b[>")
        assert termios.tcgetattr(self.fd)[:4] == self.before[:4]

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def session() -> Iterator[Session]:
    running = Session()
    try:
        running.wait_for("commands")
        running.wait_for("offline/offline")
        yield running
    finally:
        running.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_r080_a_signal_leaves_the_terminal_as_it_was(session: Session, number: int) -> None:
    session.send("half a draft")
    session.wait_for("half a draft")
    os.kill(session.pid, number)
    session.wait_end()
    session.assert_restored()


def test_r080_quitting_leaves_the_terminal_as_it_was(session: Session) -> None:
    session.send("/exit\r")
    assert session.wait_end() == 0
    session.assert_restored()


def test_r080_an_exception_in_rendering_leaves_the_terminal_as_it_was(session: Session) -> None:
    session.send("/break\r")
    assert session.wait_end() != 0
    session.assert_restored()


def test_r080_a_terminal_that_goes_away_ends_the_program(session: Session) -> None:
    os.close(session.fd)
    session.fd = os.open(os.devnull, os.O_RDONLY)
    deadline = time.monotonic() + PATIENCE
    while not os.waitpid(session.pid, os.WNOHANG)[0]:
        assert time.monotonic() < deadline, "an orphan keeps running"
        time.sleep(0.02)
    session.status = 0


def test_noise_on_standard_error_does_not_reach_the_screen(session: Session) -> None:
    session.send("/noise\r")
    session.wait_for("You ran /noise")
    assert "NOISE FROM A LIBRARY" not in session.text()
    assert b"NOISE" not in session.output


def test_t42_r099_a_paste_in_pieces_arrives_whole(session: Session) -> None:
    pasted = "".join(f"line {number} 字 \x1b[1m\n" for number in range(20_000))
    data = f"\x1b[200~{pasted}\x1b[201~".replace("\n", "\r").encode()
    for start in range(0, len(data), 4096):
        piece = data[start : start + 4096]
        while piece:
            _, ready, _ = select.select([], [session.fd], [], PATIENCE)
            assert ready
            piece = piece[os.write(session.fd, piece[:1024]) :]
            session.read(0)
    session.wait_for("Pasted text")
    session.send("\x1b[H/size \r")
    session.wait_for(f"{len(pasted.rstrip())} characters")


def test_bytes_that_are_no_utf8_do_not_end_the_program(session: Session) -> None:
    os.write(session.fd, b"ok \xff\xfe then")
    session.wait_for("ok \ufffd\ufffd then")


def test_r100_the_real_cursor_is_at_the_caret(session: Session) -> None:
    session.send("字字a")
    session.wait_for("a")
    deadline = time.monotonic() + PATIENCE
    while (session.screen.cursor.x, session.screen.cursor.y) != (2 + 5, 22):
        assert time.monotonic() < deadline, (session.screen.cursor.x, session.screen.cursor.y)
        session.read()
