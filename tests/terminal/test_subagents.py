"""Sub-agents on both screens, in a real terminal: progress, a question, the transcript in the pager, ending one."""

from __future__ import annotations

import pytest

from tests.core.test_children import by_role, results_in, task
from tests.server import Call, Reply, Request
from tests.terminal.conftest import Workplace

pytestmark = pytest.mark.terminal


def child(request: Request) -> Reply:
    text = request.raw.decode()
    if "Wait for long" in text:
        return (
            Reply("late", delay=60)
            if results_in(request)
            else Reply("So far half.", tool_calls=[Call("read", {"path": "README.md"})])
        )
    return (
        Reply("It is written.")
        if results_in(request)
        else Reply(tool_calls=[Call("bash", {"command": "touch made.txt"})])
    )


@pytest.mark.parametrize("arguments", [(), ("--inline",)], ids=["full", "inline"])
def test_j5_children_are_seen_asked_read_and_ended(place: Workplace, arguments: tuple[str, ...]) -> None:
    calls = [task("Wait for long", description="The slow one"), task("Touch", "general", description="The quick one")]
    place.serve(by_role([Reply(tool_calls=calls), Reply("Both are over.")], child))
    pager, seen = place.folder / "pager", place.folder / "seen.txt"
    pager.write_text(f"#!/bin/sh\ncat > {seen}\n")
    pager.chmod(0o755)
    screen = place.open(100, 34, PAGER=str(pager))
    screen.start("--model", "openai-chat/test", "--mode", "ask", *arguments)
    screen.type("PARENT go")
    screen.keys("Enter")
    screen.wait_for_all("explore: The slow one", "general: The quick one")
    screen.wait_for("Sub-agent general: The quick one asks")
    screen.answer("Allow?", "y")
    screen.wait_for("answered")
    screen.type("/agents")
    screen.keys("Enter")
    screen.wait_for_all("Sub-agents (Enter: transcript)", "running")
    screen.keys("Enter")
    screen.wait_until(lambda _shown: seen.exists() and "So far half." in seen.read_text(), "the transcript")
    running = place.home.glob("sessions/*/*/agents/*")
    names = [path.name for path in running]
    slow = next(
        name
        for name in names
        if "Wait for long" in next(place.home.glob(f"sessions/*/*/agents/{name}/events.jsonl")).read_text()
    )
    screen.type(f"/agents end {slow[:8]}")
    screen.keys("Enter")
    screen.wait_for("Both are over.")
    screen.wait_for_all("interrupted", "It is written.")
    screen.type("/exit")
    screen.keys("Enter")
    assert screen.wait_exit()[0] == 0


@pytest.mark.parametrize("arguments", [(), ("--inline",)], ids=["full", "inline"])
def test_j5_enter_reads_along_with_one_and_esc_goes_back_and_ends_it_alone(
    place: Workplace, arguments: tuple[str, ...]
) -> None:
    calls = [
        task("Look for long", "general", description="The long one"),
        task("Look", description="The quick one"),
    ]
    place.serve(by_role([Reply(tool_calls=calls), Reply("Both are over.")], forever))
    screen = place.open(100, 34)
    screen.start("--model", "openai-chat/test", "--mode", "auto", *arguments)
    screen.type("PARENT go")
    screen.keys("Enter")
    screen.wait_for_all("general: The long one", "explore: The quick one", "1 step")
    screen.keys("M-Up")
    screen.wait_for("read along")
    screen.keys("M-Up")
    screen.keys("Enter")
    screen.wait_for_all("general: The long one  works", "Look for long", "I look.", "Esc back")
    screen.wait_for("I wait.")  # it came while the transcript was open
    screen.keys("Escape")
    screen.wait_for("x end it")
    screen.keys("Escape")
    screen.wait_for("again ends this sub-agent alone")
    screen.keys("Escape")
    screen.wait_for("interrupted")
    screen.wait_for("Both are over.")
    screen.type("/exit")
    screen.keys("Enter")
    assert screen.wait_exit()[0] == 0


def forever(request: Request) -> Reply:
    if "Look for long" not in request.raw.decode():
        return Reply("It is not there.", delay=2)
    match len(results_in(request)):
        case 0:
            return Reply("I look.", tool_calls=[Call("bash", {"command": "ls"})])
        case 1:
            return Reply("I wait.", tool_calls=[Call("bash", {"command": "sleep 0.5"})], delay=3)
        case _:
            return Reply("late", delay=60)
