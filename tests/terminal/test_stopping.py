"""Ctrl+Z and `fg` in a real shell, on both screens: the terminal is the shell's meanwhile, and then ours again."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

import pytest

from tests.examples import in_turn
from tests.server import Reply, Request
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.screen import SHELL_PROMPT, Screen, source_path
from tests.terminal.test_leaving import state_of

pytestmark = pytest.mark.terminal
STOPS_WHILE_TAKING_OVER = """
import os, signal, sys, time
class Stop:
    def find_spec(self, name, path, target=None):
        if name == "tenuto.tui.full.transcript":
            sys.meta_path.remove(self)
            from tenuto.tui.full.driver import HeldDriver
            start = HeldDriver.start_application_mode
            def stop(driver):
                start(driver)
                HeldDriver.start_application_mode = start
                while not os.path.exists({go!r}):
                    time.sleep(0.01)
                os.kill(0 if {group} else os.getpid(), signal.{number})
            HeldDriver.start_application_mode = stop
sys.meta_path.insert(0, Stop())
"""
"""For the interpreter's start: the job is stopped when the early phase still has the keyboard, and the app is there."""
SCREENS = pytest.mark.parametrize("options", [(), ("--inline",)], ids=["full", "inline"])


def answer(_request: Request) -> Reply:
    return Reply("An answer.")


def submit(screen: Screen, text: str) -> None:
    screen.type(text)
    screen.wait_for(f"❯ {text}")
    screen.keys("Enter")


def begin(place: Workplace, options: tuple[str, ...]) -> tuple[Screen, tuple[str, str]]:
    place.serve(answer)
    screen = place.open()
    before = state_of(screen)
    screen.start("--model", MODEL, *options)
    screen.wait_for(MODEL)
    submit(screen, "hello")
    screen.wait_settled("An answer.")
    screen.type("half a draft")
    screen.wait_for("half a draft")
    return screen, before


def stopped(screen: Screen) -> str:
    return screen.wait_until(
        lambda shown: "topped" in shown and shown.rstrip().endswith(SHELL_PROMPT.strip()), "the shell's prompt"
    )


def repair(screen: Screen) -> None:
    """Make a shell usable to which nobody has given the terminal back."""
    # Until the shell has it the program may still take keys; and its prompt is somewhere on what was painted.
    screen.wait_until(lambda shown: SHELL_PROMPT.strip() in shown.partition("topped")[2], "the shell's prompt")
    screen.type("stty sane; printf '\\033[?2004l\\033[?1049l\\033[?1000l\\033[H\\033[2J'")
    screen.keys("C-j")  # Enter is no end of a line in a raw terminal
    screen.wait_until(lambda shown: shown.strip() == SHELL_PROMPT.strip(), "a sane shell")


def enter(screen: Screen, command: str) -> None:
    """Give the shell a command, after which the program may have the terminal."""
    screen.type(f"clear; {command}; echo exit''code=$?")
    screen.keys("Enter")


def wait_until_asleep(pid: int) -> None:
    """Wait until the loop has nothing to do, so that only a signal wakes it."""
    before, status = "", Path(f"/proc/{pid}/task/{pid}/status")
    while before != (before := status.read_text().partition("voluntary")[2]):
        time.sleep(1.5)


def assert_lives(screen: Screen, before: tuple[str, str]) -> None:
    """It is there again with the draft, takes keys one by one, and leaves the terminal as it was."""
    screen.wait_for("half a draft")
    screen.type(" and more")
    screen.wait_for("half a draft and more")
    screen.keys("C-c")
    screen.wait_gone("half a draft and more")
    submit(screen, "/exit")
    code, _ = screen.wait_exit()
    assert code == 0
    assert state_of(screen) == before


@pytest.mark.parametrize(("options", "outside"), in_turn([(), ("--inline",)], [False, True]))
def test_t34_r080_stopping_gives_the_terminal_to_the_shell(place, options, outside):
    screen, before = begin(place, options)
    if outside:
        os.kill(screen.program_pid(), signal.SIGTSTP)
    else:
        screen.keys("C-z")
    stopped(screen)
    assert state_of(screen) == before
    enter(screen, "fg")
    assert_lives(screen, before)


@SCREENS
def test_in_the_background_it_leaves_the_shell_alone(place, options):
    screen, before = begin(place, options)
    screen.keys("C-z")
    stopped(screen)
    enter(screen, "bg")
    screen.wait_for("exitcode=0")
    screen.keys("Enter")
    screen.wait_for("topped")
    assert state_of(screen) == before
    enter(screen, "fg")
    assert_lives(screen, before)


@SCREENS
def test_a_stop_that_nobody_announced_is_repaired(place, options):
    screen, before = begin(place, options)
    os.kill(screen.program_pid(), signal.SIGSTOP)
    repair(screen)
    enter(screen, "fg")
    assert_lives(screen, before)


@pytest.mark.parametrize(("number", "group"), [("SIGTSTP", True), ("SIGTSTP", False), ("SIGSTOP", True)])
def test_a_stop_while_the_app_takes_the_terminal_over_loses_nothing(place, number, group):
    place.serve(answer)
    hook, go = place.folder / "hook", place.folder / "go"
    hook.mkdir()
    source = STOPS_WHILE_TAKING_OVER.format(go=str(go), group=group, number=number)
    (hook / "sitecustomize.py").write_text(source)
    screen = place.open(PYTHONPATH=":".join([str(hook), *source_path().values()]))
    before = state_of(screen)
    screen.start("--model", MODEL, ready=False)
    screen.wait_for("Ask for something")
    screen.type("half a draft")
    screen.wait_for("half a draft")
    go.touch()
    repair(screen)
    enter(screen, "fg")
    assert_lives(screen, before)


@SCREENS
def test_going_on_is_noticed_whichever_thread_hears_of_it(place, options):
    screen, _ = begin(place, options)
    pid = screen.program_pid()
    wait_until_asleep(pid)
    other = max(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())
    assert other != pid
    screen.tmux("send-keys", "-R", "-t", "main")
    screen.wait_gone("half a draft")
    assert ctypes.CDLL(None).tgkill(pid, other, signal.SIGCONT) == 0
    screen.wait_for("half a draft")


def test_r080_inline_nothing_of_the_bottom_is_left_behind(place):
    place.serve(lambda _request: Reply("word " * 200, chunk_size=5, delay_per_event=0.5))
    screen = place.open()
    screen.start("--model", MODEL, "--inline")
    screen.wait_for(MODEL)
    submit(screen, "hello")
    screen.wait_for("word")
    screen.keys("C-z")
    stopped(screen)
    enter(screen, "fg")
    screen.wait_for("esc to interrupt")
    screen.type("typed")  # whatever else is painted because it goes on is painted before this
    assert screen.wait_for("❯ typed").count("esc to interrupt") == 1
    screen.keys("C-c", "C-c")
    screen.wait_gone("esc to interrupt")
