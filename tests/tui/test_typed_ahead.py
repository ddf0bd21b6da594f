"""What a terminal says, and what a user types, while the terminal is given away."""

from __future__ import annotations

import os
import pty
import select
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tenuto.tui.terminal.terminal import FAR, NEAR, QUESTION, answer_timeout, drain_input, give_back, typed_text

ENDS, WELL = "\x1b[?1004l", b"\x1b[0n"


@pytest.mark.parametrize(
    ("data", "typed"),
    [
        (b"ls -la\r", "ls -la\r"),
        ("ä漢😀".encode(), "ä漢😀"),
        (b"\x1b[Ol\x1b[Is", "ls"),
        (b"\x1b[<0;10;5Ml\x1b[<0;10;5ms", "ls"),
        (b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\l\x1b]10;rgb:00/00/00\x07s", "ls"),
        (b"\x1b[?62;22cl\x1b[?997;1ns\x1b[48;30;100;0;0t\x1b[?2026;2$y", "ls"),
        (b"l\x1b[A\x1bOBs\x1b[13;2u", "ls"),
        (b"l\x7f\x03\x04\x1as\n", "l\x7fs\n"),
        (b"\x1b[200~rm -rf .\r\x1b[201~ls", "ls"),
        (b"ls\x1b[200~rm -rf .\r", "ls"),
        (b"ls\x1b[", "ls"),
        (b"ls\x1b", "ls"),
        (b"\xff", ""),
    ],
)
def test_only_what_a_user_types_is_kept(data: bytes, typed: str) -> None:
    assert typed_text(data) == typed


def test_how_long_an_answer_is_waited_for_goes_by_the_line() -> None:
    assert answer_timeout({"TERM": "xterm-256color"}) == NEAR
    assert answer_timeout({"TERM": "xterm-256color", "SSH_CONNECTION": "there 22 here 22"}) == FAR
    assert answer_timeout({"TERM": "linux"}) == 0.0


class Raw:
    """A terminal that does not echo, and what is written to it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)

    def say(self, data: bytes) -> None:
        os.write(self.master, data)

    def write(self, text: str) -> None:
        os.write(self.slave, text.encode())

    def left(self) -> bytes:
        return os.read(self.slave, 1024) if select.select([self.slave], [], [], 0.2)[0] else b""

    def close(self) -> None:
        for one in (self.master, self.slave):
            with suppress(OSError):
                os.close(one)


@pytest.fixture
def raw() -> Iterator[Raw]:
    terminal = Raw()
    yield terminal
    terminal.close()


def test_what_the_terminal_still_says_is_dropped_up_to_its_answer_and_the_rest_stays_there(raw: Raw) -> None:
    def answer() -> None:
        asked = b""
        while QUESTION.encode() not in asked:
            asked += os.read(raw.master, 100)
        assert asked.startswith(ENDS.encode())
        for one in (b"\x1b[O", b"\x1b[?62", b";22c", WELL[:2], WELL[2:] + b"git status\r"):
            time.sleep(0.02)
            raw.say(one)

    terminal = threading.Thread(target=answer)
    terminal.start()
    typed = drain_input(raw.slave, lambda question: raw.write(ENDS + question), 20)
    terminal.join()
    assert typed == ""
    assert raw.left() == b"git status\r"


def test_what_was_typed_before_the_answer_comes_first_with_what_is_behind_it(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.tui.terminal.terminal._may_give_back", lambda: True)
    raw.say(b"\x1b[Igit" + WELL + b" sta\x1b[Otus\r")
    assert drain_input(raw.slave, raw.write, 5) == "git status\r"


def test_where_nothing_can_be_given_back_what_is_behind_the_answer_stays(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.tui.terminal.terminal._may_give_back", lambda: False)
    raw.say(b"git" + WELL + b" status\r")
    drain_input(raw.slave, raw.write, 5)
    assert raw.left() == b" status\r"


def test_a_terminal_that_does_not_answer_is_not_waited_for_for_long(raw: Raw) -> None:
    raw.say(b"\x1b[I")
    assert drain_input(raw.slave, raw.write, 0.3) == ""
    assert raw.left() == b""


def test_a_terminal_that_is_gone_is_none(raw: Raw) -> None:
    os.close(raw.master)
    assert drain_input(raw.slave, lambda _: None, 5) == ""


def test_nothing_is_asked_where_the_answer_would_be_seen(raw: Raw) -> None:
    attributes = termios.tcgetattr(raw.slave)
    attributes[3] |= termios.ECHO
    termios.tcsetattr(raw.slave, termios.TCSANOW, attributes)
    said: list[str] = []
    assert drain_input(raw.slave, said.append, 5) == ""
    assert said == [""]


def test_what_was_typed_is_there_for_the_next_one_to_read() -> None:
    pid, master = pty.fork()
    if pid == 0:
        status = 1
        try:
            give_back(0, "git ä\n")
            ready = select.select([0], [], [], 5)[0]
            got = os.read(0, 100) if ready else b""
            status = 0 if got == "git ä\n".encode() else 3 if got else 2
        finally:
            os._exit(status)
    with suppress(OSError):
        while os.read(master, 100):
            pass
    _, status = os.waitpid(pid, 0)
    os.close(master)
    if os.waitstatus_to_exitcode(status) == 2:
        pytest.skip("this system lets no program type into its own terminal (TIOCSTI)")
    assert os.waitstatus_to_exitcode(status) == 0
