"""Stopped by nobody's leave between "there is a key" and reading it, which the shell does: nobody waits for another."""

from __future__ import annotations

import os
import signal
import termios
import time
from pathlib import Path

import pytest

from tests.tui.first_paint.pseudo import PATIENCE, SOURCES, TENUTO, Pseudo

TAKES_THE_TERMINAL = b"\x1b[?1004h"
STOPS_BEFORE_READING = """
import os, signal, sys, time
read = os.read
def stop_and_read(descriptor, size):
    if os.path.exists({flag!r}) and os.isatty(descriptor):
        os.rename({flag!r}, {flag!r} + ".seen")
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.3)  # of several threads this one may go on for a moment
    return read(descriptor, size)
os.read = stop_and_read
class Wait:
    def find_spec(self, name, path, target=None):
        if name == "tenuto.cli.start":
            sys.meta_path.remove(self)
            while not os.path.exists({go!r}):
                time.sleep(0.01)
sys.meta_path.insert(0, Wait())
"""


def begin(folder: Path, *options: str) -> tuple[Pseudo, Path, Path]:
    flag, go, hook = folder / "flag", folder / "go", folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(STOPS_BEFORE_READING.format(flag=str(flag), go=str(go)))
    return Pseudo(folder, (*TENUTO, *options), PYTHONPATH=f"{hook}:{SOURCES}"), flag, go


def stop_before_a_key(program: Pseudo, flag: Path) -> int:
    """Have the one who reads stopped before it does, and its key read by somebody else; return its process id."""
    flag.touch()
    program.type(b"x")
    seen = flag.with_name(f"{flag.name}.seen")
    program.read_until(seen)
    deadline = time.monotonic() + PATIENCE
    while not (stopped := [pid for pid in family(program.pid) if state(pid) == "T"]):
        assert time.monotonic() < deadline, "nobody stopped"
        program.read(0.01)
    termios.tcflush(program.slave, termios.TCIFLUSH)
    return stopped[0]


def family(pid: int) -> list[int]:
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("options", [(), ("--inline",)], ids=["full", "inline"])
def test_t34_in_the_first_moments_the_front_end_comes_without_a_key(tmp_path: Path, options: tuple[str, ...]) -> None:
    program, flag, go = begin(tmp_path, *options)
    with program:
        program.read_until("❯ ".encode())
        program.type(b"half a draft")
        program.read_until(b"half a draft")
        os.kill(stop_before_a_key(program, flag), signal.SIGCONT)
        go.touch()
        program.read_until(b"offline/tenuto")
        program.read_until(b"half a draft")
        program.type(b"\x03\x03")


@pytest.mark.parametrize("options", [(), ("--inline",)], ids=["full", "inline"])
def test_t34_later_the_next_key_is_the_first_that_is_waited_for(tmp_path: Path, options: tuple[str, ...]) -> None:
    program, flag, go = begin(tmp_path, *options)
    go.touch()
    with program:
        program.read_until(b"offline/tenuto")
        program.read(0.5)
        stopped = stop_before_a_key(program, flag)
        since = len(program.output)
        os.kill(stopped, signal.SIGCONT)
        program.read_until(TAKES_THE_TERMINAL, after=since)
        program.type(b"typed")
        program.read_until(b"typed", after=since)


def test_an_answer_in_two_pieces_with_a_sigcont_between_is_no_text(tmp_path: Path) -> None:
    program, _, go = begin(tmp_path)
    go.touch()
    with program:
        program.read_until(b"offline/tenuto")
        program.read(0.5)
        for begun, rest in (
            (b"\x1b]11;rgb:1e1e/2", b"020/2424\x1b\\"),
            (b"\x1b[?62;", b"22c"),
            (b"\x1b[?2048;0", b"$y"),
        ):
            since = len(program.output)
            program.type(begun)
            program.read(0.01)
            os.kill(program.pid, signal.SIGCONT)
            program.read_until(TAKES_THE_TERMINAL, after=since)
            program.type(rest)
        program.type(b"typed")
        program.read_until(b"typed")
        program.read(0.5)  # the frame that it is a part of
        assert [row for row in program.screen() if row.startswith("❯")] == ["❯ typed"]
