"""The early frame is the app's, and whatever happens early, the terminal is as before afterwards."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.examples import in_turn
from tests.tui.first_paint.pseudo import COLUMNS, PATIENCE, ROWS, TENUTO, Pseudo, replay

pytestmark = pytest.mark.terminal
PROC = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
PAINTED = b"? keys"
CLEARS = re.compile(rb"\x1b\[[0-3]?J|\x1bc")
EARLY_MODULES = (
    "tenuto.tui.first_paint",
    *(f"tenuto.tui.first_paint.{name}" for name in ("decide", "editor", "paint", "reader", "screen")),
    "tenuto.tui.terminal",
    "tenuto.tui.terminal.colours",
    "tenuto.tui.terminal.input",
)
ALLOWED = {"select", "termios", "marshal", "_signal", "gc", "__future__"}
LATE_IMPORT = """
import sys, time
from tenuto.cli import main
def fail(arguments, early):
    time.sleep(0.3)
    {what}
main._run_program = fail
sys.argv = ["tenuto", *{arguments!r}]
main.main()
"""

WITHOUT_CHILD = """
import os, sys, time
fork = os.fork
def fail():
    os.fork = fork
    raise BlockingIOError(11, "no process is left")
os.fork = fail
while not os.path.exists("go"):
    time.sleep(0.01)
from tenuto.cli.main import main
sys.argv = ["tenuto", "--model", "offline/tenuto"]
main()
"""


def failing(what: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", LATE_IMPORT.format(what=what, arguments=arguments))


@pytest.mark.parametrize(
    "environ",
    [
        {},
        pytest.param({"COLORTERM": ""}, marks=pytest.mark.full),
        {"TERM": "xterm", "COLORTERM": ""},
        {"COLORFGBG": "0;15"},
        pytest.param({"COLORFGBG": "0;15", "COLORTERM": ""}, marks=pytest.mark.full),
        {"NO_COLOR": "1"},
        pytest.param({"TERM": "xterm", "COLORTERM": "", "XTERM_VERSION": "XTerm(379)"}, marks=pytest.mark.full),
        {"TERM": "xterm-kitty", "COLORTERM": ""},
    ],
    ids=["dark", "dark-256", "ansi", "light", "light-256", "mono", "xterm", "kitty-over-ssh"],
)
def test_the_early_frame_is_the_apps_first_frame(tmp_path: Path, environ: dict[str, str]) -> None:
    with Pseudo(tmp_path, **environ) as program:
        program.read_until(b"\x1b[?2026l")
        early, _, rest = program.output.partition(b"\x1b[?2026h")
        first = rest.partition(b"\x1b[?2026l")[0]
        before, after = replay(early), replay(early + first)
        rows = before.display
        assert rows[ROWS - 2].startswith("❯ Ask for something")
        assert rows == after.display
        for row in (ROWS - 3, ROWS - 2, ROWS - 1):
            for column in range(COLUMNS):
                if rows[row][column] != " ":
                    assert before.buffer[row][column] == after.buffer[row][column], (row, column)
        assert b"\x1b[?1049h" not in rest
        assert not CLEARS.search(first), "a frame without anything on it would flicker"


def test_what_was_typed_stays_where_it_is_when_the_app_takes_over(tmp_path: Path) -> None:
    with Pseudo(tmp_path) as program:
        program.read_until(PAINTED)
        program.type("aé漢😀 b\x1b[D\x1b[D".encode())
        program.read_until(b"\x1b[?2026l")
        early, _, rest = program.output.partition(b"\x1b[?2026h")
        before, after = replay(early), replay(early + rest.partition(b"\x1b[?2026l")[0])
        assert before.display == after.display
        row = ROWS - 2
        reversed_cells = [
            [column for column in range(COLUMNS) if one.buffer[row][column].reverse] for one in (before, after)
        ]
        assert reversed_cells[0] == reversed_cells[1] != []


def test_keys_are_echoed_before_the_front_end_is_there(tmp_path: Path) -> None:
    with Pseudo(tmp_path, failing("time.sleep(600)")) as program:
        program.read_until(PAINTED)
        program.type("aé漢b\x1b[D\x7f".encode())
        deadline = time.monotonic() + PATIENCE
        while "❯ aéb" not in program.screen() and time.monotonic() < deadline:
            program.read(0.02)
        assert "❯ aéb" in program.screen()


def test_what_was_typed_before_is_in_the_first_frame_and_kept_where_no_process_is_left(tmp_path: Path) -> None:
    with Pseudo(tmp_path, (sys.executable, "-c", WITHOUT_CHILD)) as program:
        program.type(b"typed early")
        (tmp_path / "go").touch()
        program.read_until(b"\x1b[?2026l")
        early, _, rest = program.output.partition(b"\x1b[?2026h")
        assert replay(early).display[ROWS - 2].startswith("❯ typed early")
        assert replay(early + rest).display[ROWS - 2].startswith("❯ typed early")


def at_first_paint(folder: Path, *arguments: str) -> set[str]:
    """Return the modules that are there at first paint, and that the bare interpreter has not."""
    probe = (
        "import sys; bare = set(sys.modules)\n"
        "from tenuto.cli import main\n"
        "from tenuto.tui.first_paint import reader\n"
        "def show(arguments, early):\n"
        "    names = sorted(set(sys.modules) - bare); early.close()\n"
        "    print('MODULES', *names, 'END'); return 0\n"
        "main._run_program = show\n"
        f"sys.argv = ['tenuto', *{arguments!r}]\n"
        "main.main()\n"
    )
    with Pseudo(folder, (sys.executable, "-c", probe)) as program:
        program.read_until(b"END")
        names = program.output.decode().partition("MODULES ")[2].partition(" END")[0].split()
    assert {name for name in names if not name.startswith("tenuto")} <= ALLOWED
    return set(names)


def test_at_first_paint_nothing_is_imported(tmp_path: Path) -> None:
    names = at_first_paint(tmp_path)
    assert {name for name in names if name.startswith("tenuto")} <= {
        "tenuto",
        "tenuto.version",
        "tenuto.exit_codes",
        "tenuto.last_acts",
        "tenuto.cli",
        "tenuto.cli.main",
        "tenuto.tui",
        *EARLY_MODULES,
    }


@PROC
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(4, 12))])
def test_r080_ctrl_c_at_any_time_restores_the_terminal(tmp_path: Path, seed: int) -> None:
    with Pseudo(tmp_path) as program:
        program.read(random.Random(seed).uniform(0.005, 0.6))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not is_over(program.pid):
            program.type(b"\x03")
            program.read(0.15)
        code = program.wait()
        # The interpreter itself, before it came to our code, ends with 1.
        assert code in (0, 130, -signal.SIGINT) or b"\x1b[?1049h" not in program.output
        assert program.is_restored()


def is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def child_of(program: Pseudo) -> int:
    """Wait for the early reader."""
    while not (children := Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()):
        program.read(0.01)
    return int(children[0])


@pytest.mark.parametrize(
    ("number", "keys"), in_turn([signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT], [b"", b"abc\x1bOQd"])
)
def test_r080_a_signal_while_importing_restores_the_terminal(
    tmp_path: Path, number: signal.Signals, keys: bytes
) -> None:
    with Pseudo(tmp_path, failing("time.sleep(600)")) as program:
        program.read_until(PAINTED)
        program.type(keys)
        if keys:
            program.read_until(b"abc")
        elif Path("/proc/self/task").exists():
            child_of(program)  # killed before there is one, nobody is left to restore anything
        os.kill(program.pid, number)
        assert program.wait() in (-number, 130)
        assert program.is_restored()


@pytest.mark.parametrize(
    ("delay", "number"), in_turn([0.05, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5], [signal.SIGTERM, signal.SIGHUP])
)
def test_r080_a_signal_at_any_time_restores_the_terminal(tmp_path: Path, number: signal.Signals, delay: float) -> None:
    with Pseudo(tmp_path) as program:
        program.read(delay)
        os.kill(program.pid, number)
        assert program.wait() in (-number, 128 + number)
        assert program.is_restored()


def test_r080_an_import_error_is_read_on_the_normal_screen(tmp_path: Path) -> None:
    with Pseudo(tmp_path, failing("import no_such_module")) as program:
        program.read_until(b"No module named")
        assert program.wait() == 1
        assert program.is_restored()
        assert program.output.rfind(b"No module named") > program.output.rfind(b"\x1b[?1049l")


def test_r080_leaving_in_order_restores_the_terminal(tmp_path: Path) -> None:
    with Pseudo(tmp_path) as program:
        program.read_until(b"offline/tenuto")
        assert program.leave() == 0
        assert program.is_restored()


def test_r080_the_next_start_repairs_what_was_killed_with_everything(tmp_path: Path) -> None:
    with Pseudo(tmp_path, left_raw=True) as program:
        program.read_until(b"offline/tenuto")
        assert program.leave() == 0
        assert program.is_restored()


@PROC
def test_the_app_comes_up_when_the_early_reader_was_killed(tmp_path: Path) -> None:
    with Pseudo(tmp_path) as program:
        program.read_until(PAINTED)
        os.kill(child_of(program), signal.SIGKILL)
        program.read_until(b"offline/tenuto")
        program.type(b"abc")
        deadline = time.monotonic() + PATIENCE
        while not any("❯ abc" in row for row in program.screen()) and time.monotonic() < deadline:
            program.read(0.05)
        assert any("❯ abc" in row for row in program.screen())
        program.type(b"\x15")
        assert program.leave() == 0
        assert program.is_restored()


@PROC
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_running(tmp_path: Path, number: signal.Signals) -> None:
    with Pseudo(tmp_path, failing("time.sleep(600)")) as program:
        program.read_until(PAINTED)
        child = child_of(program)
        os.kill(program.pid, number)
        program.wait()
        deadline = time.monotonic() + PATIENCE
        while not is_over(child) and time.monotonic() < deadline:
            program.read(0.05)
        assert is_over(child)


def test_another_size_is_painted_at_once(tmp_path: Path) -> None:
    import fcntl
    import struct
    import termios

    with Pseudo(tmp_path, failing("time.sleep(600)")) as program:
        program.read_until(PAINTED)
        program.type(b"abc")
        program.read_until(b"abc")
        seen = len(program.output)
        fcntl.ioctl(program.master, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
        program.read_until(b"\x1b[18;1H", after=seen)
        program.read_until(b"abc", after=seen)


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("-p", "hi"), ("sessions", "list")],
)
def test_there_is_no_early_frame_where_there_is_no_full_screen(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    command = (sys.executable, "-m", "tenuto", *arguments)
    with Pseudo(tmp_path, command) as program:
        program.wait()
        assert b"\x1b[?1049h" not in program.output


def test_a_dumb_terminal_gets_lines_and_no_frame(tmp_path: Path) -> None:
    with Pseudo(tmp_path, TERM="dumb") as program:
        program.read_until(b"Type a prompt")
        assert b"\x1b[?1049h" not in program.output


@pytest.mark.parametrize(
    "words", [(b"\x04", b"\x04"), (b"\x03", b"\x03"), (b"/exit\n",)], ids=["end", "cancel", "exit"]
)
def test_a_dumb_terminal_is_left_by_the_keys_that_it_knows(tmp_path: Path, words: tuple[bytes, ...]) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "keys.toml").write_text('cancel = "F7"\n"quit.end" = "F8"\n')
    with Pseudo(tmp_path, TERM="dumb") as program:
        program.read_until(b"> ")
        program.type(b"/keys\n")
        program.read_until(b"interrupts; twice it quits")
        for place, word in enumerate(words):
            if place:  # two signals that come before the first is handled are one
                program.read_until(b"Press Ctrl")
            program.type(word)
        assert program.wait() == 0
        assert program.is_restored()
        assert b"F7" not in program.output
        assert b"F8" not in program.output
        assert b"Press Ctrl" in program.output or words[0] == b"/exit\n"


def test_a_dumb_terminal_that_goes_away_ends_the_program(tmp_path: Path) -> None:
    with Pseudo(tmp_path, ("sh", "-c", "trap '' HUP; exec " + " ".join(TENUTO)), TERM="dumb") as program:
        program.read_until(b"> ")
        os.close(program.master)
        program.master = os.open(os.devnull, os.O_RDWR)
        deadline = time.monotonic() + PATIENCE
        while not is_over(program.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert is_over(program.pid)
