"""The terminal goes to somebody else while it still speaks and a user types on: neither is in the other's way."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import termios
from pathlib import Path

import pytest

from tenuto.tui.terminal.terminal import QUESTION
from tests.examples import in_turn
from tests.terminal.job import Job
from tests.tui.first_paint.pseudo import SOURCES, TENUTO, Pseudo

LEGACY = Path("/proc/sys/dev/tty/legacy_tiocsti")
SCREENS = pytest.mark.parametrize("screen", ["full", "inline"])
COMMANDS = {"full": TENUTO, "inline": (*TENUTO, "--inline")}
SPEAKS = b"\x1b[O\x1b[<35;10;10M\x1b[I"
WELL = b"\x1b[0n"
REPORTS = (b"?1004", b"?1000", b"?1002", b"?1003", b"?1006", b"?2004", b"?2031", b"?2048")


def begin(folder: Path, screen: str, **environ: str) -> Pseudo:
    program = Pseudo(folder, COMMANDS[screen], **environ)
    program.read_until(b"offline/tenuto")
    program.read(0.3)
    return program


def speak_and_type(program: Pseudo, before: str, after: str, since: int) -> None:
    """Be a terminal that still speaks when it is asked how it is, and a user who types on meanwhile."""
    program.read_until(QUESTION.encode(), after=since)
    asked = program.output.index(QUESTION.encode(), since)
    assert not termios.tcgetattr(program.slave)[3] & termios.ECHO
    for mode in REPORTS:
        ends, begins = (program.output.rfind(b"\x1b[" + mode + switch, 0, asked) for switch in (b"l", b"h"))
        assert begins <= ends, f"{mode} is still on"
    program.type(SPEAKS + before.encode() + SPEAKS)
    program.type(WELL + after.encode())


def waiting(program: Pseudo) -> str:
    """What whoever reads the terminal next gets."""
    got = b""
    while select.select([program.slave], [], [], 0.3)[0]:
        got += os.read(program.slave, 1024)
    return got.decode()


def can_be_typed_into() -> bool:
    """Whether the system lets a program type into its own terminal."""
    if LEGACY.exists() and LEGACY.read_text().strip() == "0":
        return False
    pid, master = pty.fork()
    if pid == 0:
        status = 1
        try:
            fcntl.ioctl(0, termios.TIOCSTI, b"x")
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    os.close(master)
    return status == 0


@pytest.mark.parametrize(("screen", "way"), in_turn(COMMANDS, ["exit", "sigterm"]))
def test_r080_what_was_typed_after_leaving_is_the_shells_and_what_the_terminal_said_is_nobodys(
    tmp_path: Path, screen: str, way: str
) -> None:
    with begin(tmp_path, screen) as program:
        since = len(program.output)
        if way == "exit":
            program.type(b"/exit")
            program.read_until(b"/exit", after=since)
            program.type(b"\r")
        else:
            os.kill(program.pid, signal.SIGTERM)
        speak_and_type(program, "git sta", "tus\n", since)
        left = len(program.output)
        assert program.wait() == (0 if way == "exit" else 128 + signal.SIGTERM)
        assert program.is_restored()
        assert b"^[" not in program.output[left:]
        if can_be_typed_into():
            assert waiting(program) == "git status\n"


@SCREENS
def test_an_editor_gets_what_was_typed_and_nothing_that_the_terminal_said(tmp_path: Path, screen: str) -> None:
    got, editor = tmp_path / "got", tmp_path / "editor.sh"
    editor.write_text(f'stty -g > /dev/null; read line; echo "$line" > {got}.part; mv {got}.part {got}\n')
    with begin(tmp_path, screen, EDITOR=f"sh {editor}") as program:
        since = len(program.output)
        program.type(b"\x07")
        speak_and_type(program, "", "one line\n", since)
        program.read_until(got)
        assert got.read_text() == "one line\n"


@SCREENS
def test_ctrl_c_and_ctrl_backslash_in_an_editor_are_the_editors(tmp_path: Path, screen: str) -> None:
    got, editor = tmp_path / "got", tmp_path / "editor.sh"
    editor.write_text(f"trap 'echo interrupted >> {got}' INT QUIT\necho begun > {got}\nuntil read line; do :; done\n")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TENUTO_HOME": str(tmp_path / "home"),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(SOURCES),
        "EDITOR": f"sh {editor}",
    }
    with Job(tmp_path, COMMANDS[screen], environ) as job:
        job.wait_until(lambda: "offline/tenuto" in job.text, "the front-end")
        job.say(b"\x07")
        job.wait_until(got.exists, "the editor")
        for number, key in enumerate((b"\x03", b"\x1c"), 1):
            job.say(key)
            job.wait_until(lambda number=number: got.read_text().count("interrupted") == number, "the editor's signal")
        job.say(b"\n")
        job.wait_until(lambda: 1004 in job.modes.on, "the screen")
        job.say(b"typed")
        job.wait_until(lambda: "❯ typed" in job.text, "a key")


WAITS = """
import os, sys, time
class Wait:
    def find_spec(self, name, path, target=None):
        if name == "tenuto.command.runtime":
            sys.meta_path.remove(self)
            while not os.path.exists({go!r}):
                time.sleep(0.01)
sys.meta_path.insert(0, Wait())
"""
"""For the interpreter's start: the core is as slow to import as the test wants."""


@SCREENS
def test_a_draft_of_the_time_before_there_was_a_session_is_in_the_next_one(tmp_path: Path, screen: str) -> None:
    hook, go = tmp_path / "hook", tmp_path / "go"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(WAITS.format(go=str(go)))
    with Pseudo(tmp_path, COMMANDS[screen], PYTHONPATH=f"{hook}:{SOURCES}") as program:
        program.read_until(b"\x1b[?1004h")
        program.type(b"half a draft")
        program.read_until(b"half a draft")
        os.kill(program.pid, signal.SIGHUP)
        program.read(0.2)
        go.touch()
        assert program.wait() == 128 + signal.SIGHUP
    with Pseudo(tmp_path, COMMANDS[screen]) as program:
        program.read_until(b"half a draft")
        program.type(b"\x03")
        program.read(0.2)
