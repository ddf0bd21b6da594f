"""What is typed while something runs, and what Esc does to it."""

from __future__ import annotations

import os

import pytest

from tests.server import Call, Reply, Request
from tests.terminal.conftest import Workplace, said
from tests.terminal.screen import processes

pytestmark = pytest.mark.terminal

SLOW = " ".join(f"word{number}" for number in range(60))


def test_r043_a_text_typed_while_an_answer_streams_is_queued_shown_and_sent_afterwards(place: Workplace) -> None:
    def script(request: Request) -> Reply:
        if said(request) == "first":
            return Reply(SLOW, delay_per_event=0.05, chunk_size=8)
        return Reply(f"You said {said(request)}.")

    server = place.serve(script)
    screen = place.start()
    screen.submit("first")
    screen.wait_for("word3")
    screen.submit("second")
    screen.wait_for("1 queued")
    assert len(server.requests) == 1
    shown = screen.wait_settled("You said second.")
    assert shown.count("second") == 2
    assert "queued" not in shown
    assert [said(request) for request in server.requests] == ["first", "second"]
    assert "word59" in server.requests[1].items[-2].text


def test_esc_ends_a_running_command_and_the_session_goes_on(place: Workplace) -> None:
    number = f"60.{os.getpid()}"

    def script(request: Request) -> Reply:
        if said(request) == "wait":
            return Reply("", tool_calls=[Call("bash", {"command": f"echo begun; sleep {number}"})])
        return Reply("I am still here.")

    server = place.serve(script)
    screen = place.start("--mode", "auto")
    screen.submit("wait")
    screen.wait_until(lambda _: processes("sleep", number), "the command runs")
    screen.wait_for("begun")
    screen.keys("Escape")
    screen.wait_until(lambda _: not processes("sleep", number), "the command has ended")
    screen.wait_settled("interrupted")
    screen.submit("are you there?")
    screen.wait_settled("I am still here.")
    results = [item for item in server.requests[-1].items if item.kind == "result"]
    assert len(results) == 1
    assert "interrupt" in results[0].text.lower()
    assert not server.refusals


def test_esc_keeps_what_an_answer_said_so_far_and_the_queue_waits(place: Workplace) -> None:
    def script(request: Request) -> Reply:
        if said(request) == "first":
            return Reply(SLOW, delay_per_event=0.1, chunk_size=8)
        return Reply(f"You said {said(request)}.")

    server = place.serve(script)
    screen = place.start()
    screen.submit("first")
    screen.wait_for("word3")
    screen.submit("second")
    screen.wait_for("1 queued")
    screen.keys("Escape")
    screen.wait_settled("interrupted", "word3", "Queue paused · Enter to send")
    assert len(server.requests) == 1
    screen.keys("Enter")
    screen.wait_settled("You said second.")
    assert "word3" in server.requests[1].items[-2].text
