"""Going back in a real terminal: another way, back to the first one, Esc and kill -9 while notes are written."""

from __future__ import annotations

import os
import signal

import pytest

from tests.core.compacting import is_summary_request
from tests.server import Call, Hang, Reply, Request
from tests.terminal.conftest import Workplace, said
from tests.terminal.screen import Screen

pytestmark = pytest.mark.terminal

NOTES = "## Goal\nNOTES-NONCE\n\n## Next Steps\n1. Wait for what the user says next, and say it again."


def talk(request: Request) -> Reply | Hang:
    if is_summary_request(request):
        return Reply(NOTES)
    if any(item.kind == "result" for item in request.turn):
        return Reply("It is written.")
    text = said(request).rpartition("\n")[2]  # notes on a branch go along with what is said next
    if text.startswith("write"):
        return Reply(tool_calls=[Call("write", {"path": "made.txt", "content": "made"})])
    return Reply(f"You said {text}.")


def say(screen: Screen, text: str) -> None:
    screen.submit(text)
    screen.wait_settled(f"You said {text}.")


def pick(screen: Screen, line: str, filter_text: str, row: str) -> None:
    """Open a list, filter it, take the row that is left."""
    screen.submit(line)
    screen.wait_for("type to filter")
    screen.type(filter_text)
    screen.wait_until(lambda shown: f"❯ {row}" in " ".join(shown.replace("│", " ").replace("●", " ").split()), row)
    screen.keys("Enter")


def test_another_way_and_back_to_the_first_one_and_back_again(place: Workplace):
    place.serve(talk)
    screen = place.start("--mode", "auto", rows=40)
    for text in ("one", "two", "three"):
        say(screen, text)
    pick(screen, "/tree", "you: two", "You: two")
    screen.wait_for("and what is left?")
    screen.keys("Enter")
    screen.wait_for_all("❯ two", "Continuing from before “two”", without="You said three")
    screen.keys("C-u")
    say(screen, "other")
    screen.submit("/tree")
    screen.wait_for("2 ways on")
    screen.type("said three")
    screen.wait_for("on a branch that was left")
    screen.keys("Enter")
    screen.wait_for("and what is left?")
    screen.keys("Down", "Enter")
    shown = screen.wait_settled("Notes on what was left", "You said three.")
    assert "You said other." not in shown
    say(screen, "further")
    assert "NOTES-NONCE" in place.server.requests[-1].raw.decode()
    before = place.log
    pick(screen, "/tree", "said other", "Model: You said other.")
    screen.wait_for("and what is left?")
    screen.keys("Enter")
    shown = screen.wait_settled("You said other.", "Continuing from entry")
    assert "You said further." not in shown
    assert place.log.startswith(before)
    assert not any(request.refused for request in place.server.requests)


def test_esc_esc_goes_back_with_the_files(place: Workplace):
    place.serve(talk)
    screen = place.start("--mode", "auto", rows=40)
    say(screen, "one")
    screen.submit("write it")
    screen.wait_settled("It is written.")
    assert (place.work / "made.txt").read_text() == "made"
    screen.keys("Escape")
    screen.wait_for("Esc again to go back")
    screen.keys("Escape")
    screen.wait_for("1 file changed")
    screen.keys("Enter")
    screen.wait_for("The conversation and the files")
    screen.keys("Enter")
    screen.wait_for_all("❯ write it", "Removed 1 file", without="It is written.")
    assert not (place.work / "made.txt").exists()


def test_esc_and_then_kill_while_the_notes_are_written(place: Workplace):
    hanging = True

    def script(request: Request) -> Reply | Hang:
        return Hang() if hanging and is_summary_request(request) else talk(request)

    place.serve(script)
    screen = place.start("--mode", "auto", rows=40)
    say(screen, "one")
    say(screen, "two")
    before = place.log
    row = next(line for line in before.splitlines() if b'"type":"user"' in line and b"two" in line)
    seq = int(row.partition(b'"seq":')[2].partition(b",")[0])
    screen.submit(f"/tree {seq} summary")
    screen.wait_for("summarising what is left")
    screen.keys("Escape")
    screen.wait_settled("nothing has moved", "You said two.")
    assert place.log == before
    screen.submit(f"/tree {seq} summary")
    screen.wait_until(lambda shown: "summarising what is left" in shown and "nothing has moved" in shown, "again")
    os.kill(screen.program_pid(), signal.SIGKILL)
    screen.wait_for("exitcode=137")
    assert place.log == before
    hanging = False
    screen = place.start("--mode", "auto", "-c", rows=40)
    screen.wait_settled("You said two.")
    screen.submit(f"/tree {seq} summary")
    screen.wait_for_all("Notes on what was left", without="You said two.")
