"""`kill -9` leaves a terminal in ruins; the next start that is left in order has repaired it (T-34, R-080)."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.examples import in_turn
from tests.terminal.modes import Modes
from tests.tui.first_paint.pseudo import PATIENCE, Pseudo

pytestmark = pytest.mark.terminal
TENUTO = shlex.join([sys.executable, "-m", "tenuto", "--model", "offline/tenuto"])
UP = b"offline/tenuto"
SCREENS = ["", "--inline"]


def story(first: str, second: str) -> tuple[str, ...]:
    """One shell, two starts, and what the terminal's line discipline is like between and around them."""
    lines = [
        "stty -a > before",
        f"sh -c 'echo $$ > pid; exec {TENUTO} {first}'",
        "stty -a > ruins",
        f"{TENUTO} {second}",
        "stty -a > after",
    ]
    return ("sh", "-c", "\n".join(lines))


def wait_up(program: Pseudo, start: int) -> None:
    """Wait until what was started after `start` bytes is up, and has taken the terminal."""
    deadline = time.monotonic() + PATIENCE
    while UP not in program.output[start:] or b"\x1b[?2004h" not in program.output[start:]:
        assert time.monotonic() < deadline, "\n".join(program.screen())
        program.read(0.05)
    program.read(0.3)


def modes_after(output: bytes) -> tuple[object, ...]:
    modes = Modes()
    modes.feed(output)
    return modes.state()


@pytest.mark.parametrize(("first", "second"), in_turn(SCREENS, SCREENS[::-1]))
def test_t34_r080_the_start_after_kill_9_repairs_the_terminal(tmp_path: Path, first: str, second: str) -> None:
    with Pseudo(tmp_path, story(first, second)) as program:
        wait_up(program, 0)
        assert modes_after(program.output) != modes_after(b"")
        taken = len(program.output)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        wait_up(program, taken)
        assert program.leave() == 0
        program.read_while(lambda: modes_after(program.output) != modes_after(b""))
        before = (tmp_path / "before").read_text()
        assert (tmp_path / "ruins").read_text() != before
        assert (tmp_path / "after").read_text() == before


def test_t34_without_the_mouse_the_next_start_ends_the_mouse_that_was_left(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text("[ui]\nmouse = 'off'\n")
    ruin = "printf '\\033[?1049h\\033[?1000h\\033[?1003h\\033[?1006h\\033[?2048h\\033[>25u'"
    with Pseudo(tmp_path, ("sh", "-c", f"{ruin}; {TENUTO}")) as program:
        wait_up(program, 0)
        assert program.leave() == 0
        program.read_while(lambda: modes_after(program.output) != modes_after(b""))


def test_t34_leaving_in_the_first_moments_repairs_what_was_left(tmp_path: Path) -> None:
    ruin = "printf '\\033[>25u\\033[?1049h\\033[?1000h\\033[?1003h\\033[?1006h\\033[?1004h\\033[?2048h\\033[>25u'"
    start = "import sys, time; from tenuto.cli import main; main._run_program = lambda *_: time.sleep(600); main.main()"
    with Pseudo(tmp_path, ("sh", "-c", f"{ruin}; exec {sys.executable} -c '{start}'")) as program:
        program.read_until(b"? keys")
        program.type(b"\x03")
        assert program.wait() == 130
        assert program.is_restored()
        program.read_while(lambda: modes_after(program.output) != modes_after(b""))


def test_t34_lines_can_be_typed_where_a_killed_program_left_no_lines(tmp_path: Path) -> None:
    with Pseudo(tmp_path, (*shlex.split(TENUTO), "--screen-reader"), left_raw=True) as program:
        program.read_until(b"> ")
        program.type(b"/exit\r")
        assert program.wait() == 0
        assert program.is_restored()


@pytest.mark.parametrize("options", SCREENS, ids=["full", "inline"])
def test_r080_sigquit_restores_the_terminal_and_ends(tmp_path: Path, options: str) -> None:
    with Pseudo(tmp_path, tuple(shlex.split(f"{TENUTO} {options}"))) as program:
        wait_up(program, 0)
        os.kill(program.pid, signal.SIGQUIT)
        assert program.wait() == 128 + signal.SIGQUIT
        assert program.is_restored()
        program.read_while(lambda: modes_after(program.output) != modes_after(b""))
