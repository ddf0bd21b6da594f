"""Where there is no terminal to draw on: one clear line, exit code 2, and nothing hangs."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.terminal.conftest import Workplace
from tests.terminal.screen import BIN, PATIENCE

pytestmark = pytest.mark.terminal


def run(place: Workplace, *arguments: str, **streams: object) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "TENUTO_HOME": str(place.home), "TERM": "xterm"}
    return subprocess.run(
        [BIN / "tenuto", *arguments],
        cwd=place.work,
        env=environ,
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        **streams,
    )


@pytest.mark.parametrize("arguments", [(), ("--continue",), ("--resume",)])
def test_without_a_terminal_and_a_prompt_one_line_says_what_to_do(place: Workplace, arguments: tuple[str, ...]) -> None:
    done = run(place, *arguments, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().split("\n")) == 1
    assert "no terminal" in done.stderr
    assert "tenuto -p" in done.stderr


def test_a_prompt_on_standard_input_is_answered_without_a_terminal(place: Workplace) -> None:
    done = run(place, "--model", "offline/tenuto", input="read README.md")
    assert done.returncode == 0
    assert "Prices and carts" in done.stdout


@pytest.mark.parametrize("name", ["dumb", ""])
def test_a_dumb_terminal_gets_plain_lines(place: Workplace, name: str) -> None:
    screen = place.open()
    screen.type(f"clear; TERM={name} tenuto --model offline/tenuto; echo exit''code=$?")
    screen.keys("Enter")
    screen.wait_for("Type a prompt")
    screen.type("read README.md")
    screen.keys("Enter")
    screen.wait_for("Prices and carts")
    screen.type("/exit")
    screen.keys("Enter")
    code, left = screen.wait_exit()
    assert code == 0
    assert "tenuto --resume" in left


def test_a_directory_that_is_not_there_is_named(place: Workplace) -> None:
    left = place.open().shell("tenuto --cwd nowhere; echo code $?")
    assert left.split("\n") == ["tenuto: nowhere is not a directory; name an existing one", "code 2"]


def test_an_unknown_option_is_one_line(place: Workplace) -> None:
    left = place.open().shell("tenuto --frobnicate; echo code $?")
    assert left.endswith("code 2")
    assert "tenuto --help" in left
    assert len(left.split("\n")) == 2


def test_an_unknown_model_is_one_line(place: Workplace) -> None:
    left = place.open().shell("tenuto --model offline/nothing; echo code $?")
    assert "offline/tenuto" in left
    assert not left.endswith("code 0")
    assert len(left.split("\n")) == 2


def test_continue_without_an_earlier_session_says_so(place: Workplace) -> None:
    left = place.open().shell("tenuto --continue; echo code $?")
    assert "no earlier session" in left
    assert left.endswith("code 2")
    assert len(left.split("\n")) == 2
