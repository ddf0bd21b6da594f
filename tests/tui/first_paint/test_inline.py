"""The early prompt of the inline screen: the app's own takes its place, and nothing else on the terminal changes."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pyte
import pytest

from tenuto.tui.inline.app import BEGIN_MODES
from tenuto.tui.inline.application import PASTES
from tests.examples import in_turn
from tests.tui.first_paint.pseudo import COLUMNS, PATIENCE, ROWS, TENUTO, Pseudo, fill
from tests.tui.first_paint.test_terminal import EARLY_MODULES, PROC, at_first_paint, child_of, failing, is_over

pytestmark = pytest.mark.terminal
INLINE = (*TENUTO, "--inline")
PAINTED, FRAME_END = b"? keys", b"\x1b[?2026l"
APP_FRAME = f"{PASTES}{BEGIN_MODES}".encode()[:24]
"""How the app's first frame begins; the early one has only a part of it."""
BEFORE = ("shell> ls", "some file", "shell> tenuto --inline")


def behind(rows: int, command: tuple[str, ...] = INLINE) -> tuple[str, ...]:
    """Return the command, run in a terminal that has so many rows of output already."""
    words = [f"row {number}" for number in range(rows - len(BEFORE))]
    lines = "".join(f"{line}\\n" for line in (*words, *BEFORE))
    return ("sh", "-c", f"printf '{lines}'; exec \"$@\"", "sh", *command)


def parted(program: Pseudo) -> tuple[pyte.HistoryScreen, pyte.HistoryScreen]:
    """Return the terminal before the app's first frame and after it."""
    program.read_until(APP_FRAME)
    while FRAME_END not in program.output.partition(APP_FRAME)[2]:
        program.read(0.01)
    early, mark, rest = program.output.partition(APP_FRAME)
    early = early.rpartition(b"\x1b[?25l\r\x1b[A")[0]
    frame = program.output[len(early) :].partition(APP_FRAME)[0] + mark + rest.partition(FRAME_END)[0] + FRAME_END
    return history(early), history(early + frame)


def history(output: bytes) -> pyte.HistoryScreen:
    screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1_000, ratio=0.5)
    fill(screen, output)
    return screen


def rows_of(screen: pyte.HistoryScreen) -> list[str]:
    """Return the scrollback and the screen."""
    above = ["".join(row[x].data for x in range(COLUMNS)).rstrip() for row in screen.history.top]
    return [*above, *(row.rstrip() for row in screen.display)]


def prompt_in(rows: list[str]) -> tuple[int, int]:
    """Return where the prompt begins, and how many rows it has down to the line with the mode; 0: it is not whole."""
    first = next((place for place, row in enumerate(rows) if row.startswith("❯")), len(rows))
    return first, next((height for height, row in enumerate(rows[first:]) if row.startswith("ask")), 0)


@pytest.mark.parametrize(("rows", "typed"), in_turn([3, ROWS - 4, ROWS + 20], ["", "aé漢😀 b\x1b[D\x1b[D"]))
def test_the_apps_first_frame_takes_the_place_of_the_early_one(tmp_path: Path, rows: int, typed: str) -> None:
    with Pseudo(tmp_path, behind(rows)) as program:
        program.read_until(PAINTED)
        program.type(typed.encode())
        before, after = parted(program)
        assert rows_of(before) == rows_of(after)
        assert (before.cursor.x, before.cursor.y) == (after.cursor.x, after.cursor.y)
        shown = [row for row in rows_of(after) if row]
        assert shown[-5:-2] == list(BEFORE)
        assert shown[-2].startswith("❯ aé漢" if typed else "❯ Ask for something")
        assert shown[-1] == "ask"
        assert len(shown) == rows + 2


@pytest.mark.parametrize(
    "environ",
    [
        {"COLORTERM": ""},
        {"TERM": "xterm", "COLORTERM": ""},
        {"COLORFGBG": "0;15"},
        {"COLORFGBG": "0;15", "COLORTERM": ""},
        {"NO_COLOR": "1"},
    ],
    ids=["dark-256", "ansi", "light", "light-256", "mono"],
)
def test_the_colours_are_those_of_the_app(tmp_path: Path, environ: dict[str, str]) -> None:
    with Pseudo(tmp_path, behind(3), **environ) as program:
        before, after = parted(program)
        shown = before.display
        assert shown == after.display
        for row in range(ROWS):
            for column in range(COLUMNS):
                if shown[row][column] != " ":
                    assert before.buffer[row][column] == after.buffer[row][column], (row, column)


@pytest.mark.parametrize("rows", [3, ROWS + 20], ids=["top", "bottom"])
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("word " * 80 + "end", 3),
        ("\x1b[200~one\rtwo\r\rfour\x1b[201~", 4),
        ("漢" * 60 + "\x1b[200~one\rtwo\x1b[201~" + "\x1b[D" * 20, 2),
    ],
    ids=["long", "lines", "wide"],
)
def test_a_text_of_several_rows_leaves_nothing_doubled(tmp_path: Path, rows: int, typed: str, wanted: int) -> None:
    with Pseudo(tmp_path, behind(rows)) as program:
        program.read_until(PAINTED)
        for place in range(0, len(typed), 40):  # more at once would be taken for a paste
            program.type(typed[place : place + 40].encode())
            program.read(0.005)
        before, after = parted(program)
        shown = [row for row in rows_of(after) if row]
        assert sum(row.startswith("❯") for row in shown) == 1
        assert sum(row.startswith("❯") for row in rows_of(before)) == 1
        first, height = prompt_in(rows_of(after))
        end = rows_of(before).index(BEFORE[-1]) + 1
        assert rows_of(after)[:end] == rows_of(before)[:end]
        assert {row for row in rows_of(after)[end:first] if row} <= {"  Ctrl+J begins a new line"}
        assert 0 < height <= wanted  # on a busy machine the end of the text is still on its way
        assert not any(rows_of(after)[first + height + 1 :])
        deadline = time.monotonic() + PATIENCE
        while prompt_in(rows_of(history(program.output)))[1] != wanted:
            assert time.monotonic() < deadline, "the end of the text never came\n" + "\n".join(program.screen())
            program.read(0.05)


def test_the_kernels_echo_of_what_came_before_is_gone(tmp_path: Path) -> None:
    with Pseudo(tmp_path, ("sh", "-c", 'sleep 0.3; exec "$@"', "sh", *INLINE)) as program:
        program.type(b"ab")
        program.read_until(b"ab")
        _, after = parted(program)
        assert [row for row in rows_of(after) if row] == ["❯ ab", "ask"]


def test_what_a_resumed_session_prints_comes_above_the_prompt(tmp_path: Path) -> None:
    with Pseudo(tmp_path, (*INLINE, "hello there")) as program:
        program.read_until(b"I am Tenuto")
        program.read_while(lambda: "esc to interrupt" in "\n".join(program.screen()))
        assert program.leave() == 0
    with Pseudo(tmp_path, behind(3, (*INLINE, "--continue"))) as program:
        program.read_until(PAINTED)
        program.type(b"early")
        program.read_until(b"I am Tenuto")
        program.read_until(APP_FRAME)
        program.read_while(lambda: "❯ early" not in rows_of(history(program.output)))
        shown = [row for row in rows_of(history(program.output)) if row]
        assert shown[:3] == list(BEFORE)
        assert "▌ hello there" in shown[3]
        assert sum(row.startswith("❯") for row in shown) == 1
        assert shown[-2] == "❯ early"


def test_at_first_paint_nothing_is_imported(tmp_path: Path) -> None:
    names = at_first_paint(tmp_path, "--inline")
    assert {name for name in names if name.startswith("tenuto.tui.")} <= set(EARLY_MODULES)


# --- the terminal as before ---


def is_untouched(program: Pseudo) -> bool:
    """Whether the terminal shows what was there before, the cursor below it, and nothing else."""
    screen = history(program.output)
    return [row for row in rows_of(screen) if row] == list(BEFORE) and (screen.cursor.x, screen.cursor.y) == (0, 3)


@pytest.mark.parametrize(
    ("number", "keys"), in_turn([signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT], [b"abc", b"abc\x1bOQd"])
)
def test_r080_a_signal_while_importing_restores_the_terminal(
    tmp_path: Path, number: signal.Signals, keys: bytes
) -> None:
    with Pseudo(tmp_path, behind(3, failing("time.sleep(600)", "--inline"))) as program:
        program.read_until(PAINTED)
        program.type(keys)
        program.read_until(b"abc")
        os.kill(program.pid, number)
        assert program.wait() in (-number, 130)
        assert program.is_restored()
        program.read_while(lambda: not is_untouched(program))


def test_r080_ctrl_c_while_importing_restores_the_terminal(tmp_path: Path) -> None:
    with Pseudo(tmp_path, behind(3, failing("time.sleep(600)", "--inline"))) as program:
        program.read_until(PAINTED)
        program.type(b"abc\x03")
        assert program.wait() == 130
        assert program.is_restored()
        program.read_while(lambda: not is_untouched(program))


@PROC
@pytest.mark.parametrize("seed", range(3))
def test_r080_ctrl_c_at_any_time_restores_the_terminal(tmp_path: Path, seed: int) -> None:
    with Pseudo(tmp_path, INLINE) as program:
        program.read(random.Random(seed).uniform(0.005, 0.6))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not is_over(program.pid):
            program.type(b"\x03")
            program.read(0.15)
        assert program.wait() in (0, 130, -signal.SIGINT) or PAINTED not in program.output
        assert program.is_restored()


@pytest.mark.parametrize(("delay", "number"), in_turn([0.1, 0.25, 0.4], [signal.SIGTERM, signal.SIGHUP]))
def test_r080_a_signal_at_any_time_restores_the_terminal(tmp_path: Path, number: signal.Signals, delay: float) -> None:
    with Pseudo(tmp_path, INLINE) as program:
        program.read(delay)
        os.kill(program.pid, number)
        assert program.wait() in (-number, 128 + number)
        assert program.is_restored()


def test_r080_an_import_error_is_read_where_the_prompt_was(tmp_path: Path) -> None:
    with Pseudo(tmp_path, behind(3, failing("import no_such_module", "--inline"))) as program:
        program.read_until(b"No module named")
        assert program.wait() == 1
        assert program.is_restored()
        shown = rows_of(history(program.output))
        assert shown[:3] == list(BEFORE)
        assert shown[3].startswith("Traceback")
        assert not any("❯" in row for row in shown)


@PROC
def test_the_app_comes_up_in_its_place_when_the_early_reader_was_killed(tmp_path: Path) -> None:
    with Pseudo(tmp_path, behind(3)) as program:
        program.read_until(PAINTED)
        os.kill(child_of(program), signal.SIGKILL)
        _, after = parted(program)
        shown = [row for row in rows_of(after) if row]
        assert shown[:3] == list(BEFORE)
        assert len(shown) == 5


@pytest.mark.parametrize("columns", [120, 30])
def test_another_size_is_painted(tmp_path: Path, columns: int) -> None:
    """pyte cuts rows at another width; what wraps them is xterm's heir, and `XTERM_VERSION` says that it does not."""
    command = failing("time.sleep(600)", "--inline")
    with Pseudo(tmp_path, behind(3, command), XTERM_VERSION="XTerm(390)") as program:
        program.read_until(PAINTED)
        program.type(b"a text of some forty characters, or a few more")
        program.read_until(b"few more")
        seen = len(program.output)
        fcntl.ioctl(program.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        program.read_until(b"\x1b[?7h", after=seen)
        screen = history(program.output[:seen])
        screen.resize(ROWS, columns)
        fill(screen, program.output[seen:])
        shown = [row.rstrip() for row in screen.display if row.strip()]
        assert shown[-1] == "ask"
        assert shown[-2].startswith("❯") and shown[-2].endswith("few more")
        assert len(shown) == 5


# --- where a first look at the settings was not enough ---

TURNS = """
import sys
from tenuto.tui.inline.app import BEGIN_MODES
from tenuto.tui.inline.application import PASTES
from tenuto.tui.first_paint import decide
decide.choose_front_end = lambda arguments, environ: {promised!r}
from tenuto.cli import main
sys.argv = ["tenuto", "--model", "offline/tenuto", *{arguments!r}]
main.main()
"""


@pytest.mark.parametrize(("promised", "arguments"), [("full", ["--inline"]), ("inline", [])])
def test_the_other_front_end_comes_up_with_what_was_typed(tmp_path: Path, promised: str, arguments: list[str]) -> None:
    source = TURNS.format(promised=promised, arguments=arguments)
    with Pseudo(tmp_path, behind(3, (sys.executable, "-c", source))) as program:
        program.read_until(PAINTED)
        program.type("typed é".encode())
        program.read_until(b"offline/tenuto")
        program.read_while(lambda: sum("❯ typed é" in row for row in program.screen()) != 1)
        entered, left = program.output.rfind(b"\x1b[?1049h"), program.output.rfind(b"\x1b[?1049l")
        assert (entered < left) == bool(arguments)
        program.type(b"\x15")
        assert program.leave() == 0
        assert program.is_restored()
        # pyte has no other screen; ours begins below what was there, and is left.
        begun, _, rest = program.output.partition(b"\x1b[?1049h")
        shown = rows_of(history(begun + rest.rpartition(b"\x1b[?1049l")[2]))
        assert shown[:3] == list(BEFORE)


@pytest.mark.parametrize("arguments", [("--inline", "--help"), ("--inline", "-p", "hi"), ("--inline", "--json", "hi")])
def test_there_is_no_early_prompt_where_there_is_no_screen(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with Pseudo(tmp_path, (*TENUTO, *arguments)) as program:
        program.wait()
        assert b"\x1b[?2004h" not in program.output


@pytest.mark.parametrize(("arguments", "term"), [((), "dumb"), (("--screen-reader",), "xterm")])
def test_a_terminal_that_cannot_gets_lines_and_no_prompt_of_ours(
    tmp_path: Path, arguments: tuple[str, ...], term: str
) -> None:
    with Pseudo(tmp_path, (*INLINE, *arguments), TERM=term) as program:
        program.read_until(b"Type a prompt")
        assert b"\x1b[" not in program.output
