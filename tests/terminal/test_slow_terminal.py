"""A terminal that takes nothing (a stopped ssh client, a frozen window): the work goes on, and shows when it can."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.server import Reply, Request
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import PATIENCE

pytestmark = pytest.mark.terminal
SCREENS = pytest.mark.parametrize("options", [(), ("--inline",)], ids=["full", "inline"])
LONG = "\n\n".join(f"Paragraph {number} of a long answer that fills the terminal's buffer." for number in range(3_000))


def answer(_request: Request) -> Reply:
    return Reply(f"{LONG}\n\nThe very end.")


def begin(place: Workplace, options: tuple[str, ...]) -> PseudoTerminal:
    server = place.serve(answer)
    terminal = PseudoTerminal(place.work, place.home, server.environ(), "--model", MODEL, *options)
    terminal.wait_for(MODEL)
    return terminal


def wait_for_log(place: Workplace) -> None:
    deadline = time.monotonic() + PATIENCE
    while b"The very end." not in place.log:
        assert time.monotonic() < deadline, "the work waits for the terminal"
        time.sleep(0.05)


@SCREENS
def test_the_work_goes_on_and_shows_when_the_terminal_takes_it(place, options):
    terminal = begin(place, options)
    try:
        terminal.write(b"go\r")
        wait_for_log(place)  # nobody reads meanwhile
        terminal.wait_for("The very end.")
        terminal.wait_for("? keys")
    finally:
        terminal.close()


@SCREENS
def test_r080_a_signal_ends_it_even_so(place, options):
    terminal = begin(place, options)
    terminal.write(b"go\r")
    wait_for_log(place)
    os.kill(terminal.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while not os.waitpid(terminal.pid, os.WNOHANG)[0]:
        assert time.monotonic() < deadline, "it waits for a terminal that takes nothing"
        time.sleep(0.05)
    os.close(terminal.descriptor)
