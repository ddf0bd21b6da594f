"""Plan approval in a real terminal, on both screens and as plain lines: approved, put off, killed and resumed."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess

import pytest

from tests.program import TENUTO
from tests.server import Call, Reply, Request
from tests.server.reply import AnyReply
from tests.terminal.conftest import Workplace
from tests.terminal.screen import Screen
from tests.tui.inline.test_terminal import submit

pytestmark = pytest.mark.terminal
both_screens = pytest.mark.parametrize("screen_arguments", [(), ("--inline",)], ids=["full", "inline"])
PLAN = "# A quicker start\n\n1. **measure**\n2. import later"


def proposal(plan: str) -> Reply:
    """Answer with a plan; the tags are cut into several deltas."""
    return Reply(f"I looked around.\n\n<proposed_plan>\n{plan}\n</proposed_plan>\n", chunk_size=7)


def planning(request: Request) -> AnyReply:
    """Propose a plan, carry it out when it is approved, propose it again when it is not."""
    if request.items[-1].kind == "result":
        return Reply("It is done.")
    new = itertools.takewhile(lambda item: item.kind == "user", reversed(request.items))
    last = "\n".join(item.text for item in new)
    if "go on planning" in last:
        return proposal(PLAN.replace("later", "last"))
    if "approved the plan" in last:
        return Reply(tool_calls=[Call("write", {"path": "done.txt", "content": "done\n"})])
    return proposal(PLAN)


def begin(place: Workplace, *arguments: str) -> Screen:
    place.serve(planning)
    screen = place.start("--mode", "plan", *arguments)
    submit(screen, "make it quick")
    return screen


@both_screens
def test_a_plan_is_put_off_with_words_then_approved_and_carried_out_in_the_same_turn(
    place: Workplace, screen_arguments
) -> None:
    screen = begin(place, *screen_arguments)
    screen.answer("Go ahead with this plan?", "4")
    screen.wait_for("Enter send")
    screen.type("the import comes last")
    screen.keys("Enter")
    screen.wait_for("2. import last")
    screen.answer("Go ahead with this plan?", "1")
    shown = screen.wait_settled("It is done.")
    assert "approved" in shown and "edits ·" in shown
    assert (place.work / "done.txt").read_text() == "done\n"
    whole = screen.whole() if screen_arguments else shown
    assert "the import comes last" in whole and "I looked around." in whole
    assert "proposed_plan" not in whole
    assert json.loads(place.log.splitlines()[-1])


@both_screens
def test_killed_while_a_plan_waits_it_has_an_honest_end_and_nothing_was_approved(
    place: Workplace, screen_arguments
) -> None:
    screen = begin(place, *screen_arguments)
    screen.wait_for("Go ahead with this plan?")
    os.kill(screen.program_pid(), signal.SIGKILL)
    again = place.open()
    again.start("--continue", *screen_arguments)
    again.wait_for("interrupted")
    shown = again.wait_for("plan ·")  # the mode is still plan
    assert "Go ahead" not in shown
    submit(again, "go on")
    again.answer("Go ahead with this plan?", "2")
    again.answer("Allow?", "1")
    shown = again.wait_settled("It is done.")
    assert (again.whole() if screen_arguments else shown).count("· interrupted") <= 1, "the plan has one end"
    assert not any(request.refused for request in place.server.requests)


def test_with_plain_lines_a_plan_is_a_numbered_question(place: Workplace) -> None:
    place.serve(planning)
    screen = place.open()
    screen.type("tenuto --screen-reader --mode plan --model openai-chat/test")
    screen.keys("Enter")
    screen.wait_for("Type a prompt")
    screen.type("make it quick")
    screen.keys("Enter")
    shown = screen.wait_for("Answer with a number:")
    assert "proposed_plan" not in screen.whole()
    assert "A quicker start" in shown and "4. No, go on planning; say what to change" in shown
    screen.answer("Answer with a number:", "3")
    screen.keys("Enter")
    screen.wait_for("It is done.")
    assert (place.work / "done.txt").exists()


def test_without_a_screen_the_plan_is_the_answer(place: Workplace) -> None:
    server = place.serve(planning)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(place.folder),
        "TENUTO_HOME": str(place.home),
        **server.environ(),
    }
    done = subprocess.run(
        [*TENUTO, "-p", "make it quick", "--mode", "plan", "--model", "openai-chat/test"],
        cwd=place.work, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{PLAN}\n"), done.stderr
    assert len(server.requests) == 1
