"""Leaving by every door: the terminal is given back, the way back is named, and it leads to the same transcript."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time

import pytest

from tests.examples import one_of
from tests.server import Call, Reply, Request, scripts
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import READY, Screen, processes

pytestmark = pytest.mark.terminal

FAULT = """
import tenuto.tui.render.items as items

{name} = items.{name}


def {name}_or_fail(*arguments):
    if any(getattr(one, "text", "") == "break the screen" for one in arguments):
        raise RuntimeError("a fault in rendering")
    return {name}(*arguments)


items.{name} = {name}_or_fail
"""
MODES = "#{alternate_on} #{mouse_any_flag} #{mouse_sgr_flag} #{cursor_flag} #{keypad_flag} #{wrap_flag}"


def answer(request: Request) -> Reply:
    del request
    return Reply("An **answer**.", thinking="A thought.")


def state_of(screen: Screen) -> tuple[str, str]:
    """How the terminal is set: its line discipline, and its modes."""
    attributes = screen.shell("stty -a")
    assert "icanon" in attributes
    return attributes, screen.tmux("display-message", "-p", "-t", "main", MODES)


def begin(place: Workplace, **environ: str) -> tuple[Screen, tuple[str, str]]:
    place.serve(answer)
    screen = place.open(**environ)
    before = state_of(screen)
    screen.start("--model", MODEL)
    screen.wait_for(MODEL)
    screen.submit("hello")
    screen.wait_settled("An answer.")
    return screen, before


def assert_hint_leads_back(screen: Screen, left: str) -> None:
    """The line that says how to come back does, when it is typed."""
    hint = re.search(r"tenuto --resume (\S+)", left)
    assert hint is not None, left
    screen.start("--resume", hint[1])
    screen.wait_settled("hello", "An answer.")


def test_r080_ctrl_c_twice_leaves_and_names_the_way_back(place: Workplace) -> None:
    screen, before = begin(place)
    screen.keys("C-c")
    screen.wait_for("Press Ctrl+C again to quit")
    screen.keys("C-c")
    code, left = screen.wait_exit()
    assert code == 0
    assert state_of(screen) == before
    assert_hint_leads_back(screen, left)


@pytest.mark.parametrize("number", one_of([signal.SIGTERM, signal.SIGHUP, signal.SIGINT], 1))
def test_t34_r080_a_signal_leaves_the_terminal_as_it_was(place: Workplace, number: signal.Signals) -> None:
    screen, before = begin(place)
    os.kill(screen.program_pid(), number)
    code, left = screen.wait_exit()
    assert code == 128 + number
    assert "tenuto --resume" in left
    assert state_of(screen) == before


def test_t34_r080_a_hangup_that_two_tell_of_loses_nothing(place: Workplace) -> None:
    """When a line breaks, the kernel tells whoever has the terminal, and the shell tells its jobs."""
    screen, _ = begin(place)
    screen.type("a draft")
    screen.wait_for("❯ a draft")
    program = screen.program_pid()
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(program, signal.SIGHUP)
            time.sleep(0.01)
    _, left = screen.wait_exit()
    assert "tenuto --resume" in left
    screen.start("--continue", "--model", MODEL, ready=False)
    screen.wait_for("❯ a draft")


def test_where_there_is_no_other_screen_nothing_of_the_frame_stays(place: Workplace) -> None:
    """As in mosh and on consoles: pyte has only one, too."""
    server = place.serve(answer)
    terminal = PseudoTerminal(place.work, place.home, server.environ(), "--model", MODEL)
    try:
        terminal.wait_for(READY)
        terminal.write(b"hello\r")
        terminal.wait_for("An answer.")
        terminal.wait_for(READY)
        terminal.write(b"/exit")
        terminal.wait_for("❯ /exit")
        terminal.write(b"\r")
        left = terminal.wait_for("tenuto --resume")
    finally:
        terminal.close()
    assert [row for row in left.split("\n") if row.strip()][:1] == ["▌ hello"]
    assert "❯" not in left and READY not in left


def test_t34_r080_a_fault_of_ours_leaves_the_terminal_as_it_was(place: Workplace) -> None:
    folder = place.folder / "fault"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULT.format(name="gap_before"))
    screen, before = begin(place, PYTHONPATH=str(folder))
    screen.submit("break the screen")
    code, left = screen.wait_exit()
    assert code == 1
    assert "a fault in rendering" in left
    assert "Traceback" not in left
    assert "tenuto --resume" in left
    assert "Traceback" in (place.home / "stderr.log").read_text()
    assert state_of(screen) == before


def test_a_block_that_cannot_be_drawn_does_not_end_the_program(place: Workplace) -> None:
    folder = place.folder / "fault"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULT.format(name="_user"))
    screen, _ = begin(place, PYTHONPATH=str(folder))
    screen.submit("break the screen")
    screen.wait_settled("cannot be drawn", "An answer.")
    screen.submit("go on")
    screen.wait_until(lambda shown: "▌ go on" in shown and shown.count("An answer.") >= 2, "the next answer")


def test_t34_the_next_start_works_after_kill_9(place: Workplace) -> None:
    screen, _ = begin(place)
    os.kill(screen.program_pid(), signal.SIGKILL)
    screen.wait_for("exitcode=137")
    # The shell is left in raw mode: a user types this, and a newline instead of Enter.
    screen.type("stty sane; echo sa''ne")
    screen.keys("C-j")
    screen.wait_for("sane")  # before, Enter is no end of a line
    screen.start("--continue", "--model", MODEL)
    screen.wait_settled("hello", "An answer.")
    screen.submit("again")
    screen.wait_until(lambda shown: shown.count("An answer.") == 2, "the second answer")


def body(shown: str) -> list[str]:
    """The transcript's rows, without the scroll bar that fades."""
    rows = shown.split("\n")
    rule = max(number for number, row in enumerate(rows) if row.startswith("────"))
    return [row.rstrip("▐ ") for row in rows[: rule - 1]]


def test_continuing_shows_the_transcript_that_was_left(place: Workplace) -> None:
    server = place.serve(scripts.fix_tests)
    screen = place.start("--mode", "auto", "fix the failing tests", columns=100, rows=70)
    screen.wait_settled("all tests pass now")
    screen.submit("!echo from the shell")
    screen.wait_settled("from the shell")
    screen.submit("/cost")
    screen.wait_for("cache read")
    screen.submit("/mode ask")
    screen.wait_for("ask ·")
    before = screen.capture()
    screen.submit("/exit")
    screen.wait_exit()
    screen.start("--continue")
    after = screen.wait_settled("all tests pass now")
    said_before = [row for row in body(before) if row]
    said_after = [row for row in body(after) if row]
    cost = next(number for number, row in enumerate(said_before) if "cache read" in row)
    assert said_after == said_before[: cost - 1], "what a command showed is not part of the conversation"
    footer = before.split("\n")[-1]
    screen.wait_until(lambda shown: shown.split("\n")[-1] == footer, f"the same footer: {footer}")
    screen.submit("and again")
    screen.wait_until(lambda _: "and again" in server.requests[-1].last_user, "the next request")
    assert not server.refusals
    assert not server.prefix_breaks()


def test_r035_after_kill_9_in_a_running_command_the_session_goes_on(place: Workplace) -> None:
    number = f"45.{os.getpid()}"

    def script(request: Request) -> Reply:
        if said(request) == "wait":
            return Reply("I wait.", tool_calls=[Call("bash", {"command": f"echo begun; sleep {number}"})])
        return Reply("I go on.")

    server = place.serve(script)
    screen = place.start("--mode", "auto")
    screen.submit("wait")
    screen.wait_for("begun")
    os.kill(screen.program_pid(), signal.SIGKILL)
    screen.wait_for("exitcode=137")
    screen.close()
    # A killed program cannot end its children: the test does.
    for process in processes("sleep", number):
        with contextlib.suppress(ProcessLookupError):  # its launcher may be faster
            os.kill(process, signal.SIGKILL)
    screen = place.open()
    screen.start("--continue")
    shown = screen.wait_settled("wait", "I wait.")
    assert "interrupted" in shown
    screen.submit("go on")
    screen.wait_settled("I go on.")
    (result,) = [item for item in server.requests[-1].items if item.kind == "result"]
    assert "may have taken effect" in result.text
    assert not server.refusals
