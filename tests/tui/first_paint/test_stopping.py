"""Stopped from outside in the first moments, in a real shell: that gets its terminal, and the draft is there again."""

from __future__ import annotations

import os
import signal

import pytest

from tests.examples import in_turn
from tests.terminal.conftest import Workplace, place, tmux
from tests.terminal.screen import SHELL_PROMPT, Screen, source_path
from tests.terminal.test_leaving import state_of
from tests.terminal.test_stopping import repair

__all__ = ["place", "tmux"]
pytestmark = pytest.mark.terminal
WAITS = """
import os, sys, time
class Wait:
    def find_spec(self, name, path, target=None):
        if name == "tenuto.cli.start":
            sys.meta_path.remove(self)
            while not os.path.exists({go!r}):
                time.sleep(0.01)
sys.meta_path.insert(0, Wait())
"""
"""For the interpreter's start: the program is as slow to import as the test wants."""


def begin(place: Workplace, options: tuple[str, ...], columns: int = 100) -> tuple[Screen, tuple[str, str]]:
    """Start with imports that wait; type a draft into the early prompt."""
    hook = place.folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(WAITS.format(go=str(place.folder / "go")))
    screen = place.open(columns, PYTHONPATH=":".join([str(hook), *source_path().values()]))
    before = state_of(screen)
    screen.start("--model", "offline/tenuto", *options, ready=False)
    screen.wait_for("? keys")
    screen.type("half a draft")
    screen.wait_for("❯ half a draft")
    return screen, before


def wait_for_one_prompt(screen: Screen) -> None:
    screen.wait_until(lambda shown: "❯ half a draft" in shown and shown.count("❯") == 1, "one prompt with the draft")


def assert_goes_on(place: Workplace, screen: Screen, before: tuple[str, str]) -> None:
    """The front-end comes up with the draft, and leaves the terminal as it was."""
    (place.folder / "go").touch()
    screen.wait_for("offline/tenuto ·")
    wait_for_one_prompt(screen)
    screen.keys("C-c")
    screen.wait_for("? keys")
    screen.type("/exit")
    screen.wait_for("❯ /exit")
    screen.keys("Enter")
    assert screen.wait_exit()[0] == 0
    assert state_of(screen) == before


@pytest.mark.parametrize(("options", "group"), in_turn([(), ("--inline",)], [True, False]))
def test_t34_a_stop_gives_the_terminal_to_the_shell_and_the_draft_comes_back(
    place: Workplace, options: tuple[str, ...], group: bool
) -> None:
    screen, before = begin(place, options)
    pid = screen.program_pid()
    (os.killpg if group else os.kill)(pid, signal.SIGTSTP)
    shown = screen.wait_until(
        lambda shown: "topped" in shown and shown.rstrip().endswith(SHELL_PROMPT.strip()), "the shell's prompt"
    )
    assert "❯" not in shown
    assert state_of(screen) == before
    screen.type("clear; fg; echo exit''code=$?")
    screen.keys("Enter")
    wait_for_one_prompt(screen)
    assert_goes_on(place, screen, before)


@pytest.mark.parametrize(("options", "group"), in_turn([(), ("--inline",)], [True, False]))
def test_t34_a_stop_that_nobody_announced_is_repaired(place: Workplace, options: tuple[str, ...], group: bool) -> None:
    screen, before = begin(place, options)
    (os.killpg if group else os.kill)(screen.program_pid(), signal.SIGSTOP)
    repair(screen)
    screen.type("clear; fg; echo exit''code=$?")
    screen.keys("Enter")
    wait_for_one_prompt(screen)
    assert_goes_on(place, screen, before)


@pytest.mark.parametrize("columns", [40, 140])
def test_a_resize_leaves_one_prompt_where_the_terminal_wraps_rows_again(place: Workplace, columns: int) -> None:
    screen, before = begin(place, ("--inline",), columns=80)
    screen.type(" that goes on and on, until it is as long as most of a row is")
    screen.wait_for("a row is")
    for width, begins in ((columns, "❯"), (80, "❯ half")):
        screen.resize(width, 30)
        screen.wait_until(
            lambda shown, begins=begins: any(
                row.startswith(begins) and row.endswith("row is") for row in shown.split("\n")
            ),
            "the early frame",
        )
        screen.wait_until(lambda _: screen.whole().count("❯") == 1, "one prompt")
    screen.wait_until(lambda _: screen.whole().count("ask\n") == 1, "one mode")
    assert_goes_on(place, screen, before)
