"""Whole jobs, as a user does them: ask, approve by key, see the change and the answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.server import Call, Reply, scripts
from tests.terminal.conftest import Workplace

pytestmark = pytest.mark.terminal


def passes(place: Workplace) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=place.work, capture_output=True, check=False).returncode == 0


def test_a_bug_is_found_fixed_and_proved(place: Workplace) -> None:
    place.serve(scripts.fix_tests)
    screen = place.start(columns=120, rows=60)
    screen.submit("fix the failing tests")
    for title in ("Allow? Bash", "Allow? Edit", "Allow? Bash"):
        screen.answer(title, "y")
    shown = screen.wait_settled("all tests pass now")
    assert "failed" in shown
    assert "14 -     return round(amount * (1 - discount) * (1 - discount), 2)" in shown
    assert "14 +     return round(amount * (1 - discount), 2)" in shown
    assert "4 passed" in shown
    assert "**" not in shown, "Markdown is drawn"
    assert "Thought" in shown
    assert passes(place)


def test_denying_runs_nothing_and_tells_the_model(place: Workplace) -> None:
    server = place.serve([Reply("", tool_calls=[Call("bash", {"command": "touch made"})]), Reply("As you like.")])
    screen = place.start()
    screen.submit("make a file")
    screen.answer("Allow? Bash", "n")
    shown = screen.wait_settled("As you like.")
    assert "denied" in shown
    (result,) = [item for item in server.requests[1].items if item.kind == "result"]
    assert "did not allow" in result.text
    assert not (place.work / "made").exists()


def test_denying_with_a_reason_hands_the_reason_over(place: Workplace) -> None:
    server = place.serve([Reply("", tool_calls=[Call("bash", {"command": "touch made"})]), Reply("As you like.")])
    screen = place.start()
    screen.submit("make a file")
    screen.answer("Allow? Bash", "f")
    screen.wait_until(lambda shown: "made" in shown and "Enter" in shown, "the feedback line")
    screen.type("use the other folder")
    screen.wait_for("use the other folder")
    screen.keys("Enter")
    screen.wait_settled("As you like.")
    (result,) = [item for item in server.requests[1].items if item.kind == "result"]
    assert "use the other folder" in result.text
    assert not (place.work / "made").exists()


def test_allowing_for_the_session_asks_once(place: Workplace) -> None:
    call = Call("bash", {"command": "touch made"})
    place.serve([Reply("", tool_calls=[call]), Reply("", tool_calls=[call]), Reply("Made twice.")])
    screen = place.start()
    screen.submit("make a file")
    screen.answer("Allow? Bash", "a")
    screen.wait_settled("Made twice.")


def test_auto_mode_asks_nothing(place: Workplace) -> None:
    place.serve(scripts.fix_tests)
    screen = place.start("--mode", "auto", "fix the failing tests")
    shown = screen.wait_settled("all tests pass now")
    assert "Allow?" not in shown
    assert passes(place)


def test_calls_whose_turn_is_to_come_do_not_ask_for_an_answer(place: Workplace) -> None:
    go = place.work / "go"
    wait = Call("bash", {"command": "while ! test -e go; do sleep 0.05; done"})
    place.serve([Reply("", tool_calls=[wait, Call("bash", {"command": "echo sec''ond"})]), Reply("Both ran.")])
    screen = place.start("--mode", "auto")
    screen.submit("run both")
    shown = screen.wait_until(lambda shown: shown.count("Bash") == 2 and "Running bash" in shown, "both calls")
    assert "waiting for your answer" not in shown
    go.touch()
    screen.wait_settled("Both ran.", "    second")


def test_the_offline_model_reads_searches_runs_and_edits(place: Workplace) -> None:
    (place.work / "notes.txt").write_text("one\nTODO: water the plants\nthree\n")
    screen = place.start(columns=110, rows=50)
    screen.submit("read README.md")
    screen.wait_settled("Read README.md")
    screen.submit("search TODO")
    screen.wait_settled("water the plants", "● Grep TODO · 1 match")
    screen.submit("run python -m pytest -q")
    screen.answer("Allow? Bash", "y")
    screen.wait_settled("1 failed")
    screen.submit("replace plants by flowers in notes.txt")
    screen.wait_for("Allow? Edit")
    assert "plants" in (place.work / "notes.txt").read_text()
    screen.answer("Allow? Edit", "y")
    screen.wait_settled("+ TODO: water the flowers")
    assert (place.work / "notes.txt").read_text() == "one\nTODO: water the flowers\nthree\n"
