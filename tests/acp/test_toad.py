"""Toad, a client with a screen of its own, in a pseudo-terminal: prompt, permission, diff, undo and cancel."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acp.client import environment
from tests.acp.test_acpx import FOLDER
from tests.core.compacting import SUMMARY, is_summary_request
from tests.server import Call, Reply, Request, ServerThread
from tests.terminal.pseudo import CommandTerminal
from tests.terminal.screen import PATIENCE, frame

TOAD = FOLDER / "toad" / "bin" / "toad"
BEFORE = "".join(f"line {number}\n" for number in range(30))
LONG = "A very long answer about lighthouses. " * 60

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(not TOAD.exists(), reason="Toad is not there: scripts/acp-clients installs it (Python 3.14)"),
]


def answer(request: Request) -> Reply:
    if is_summary_request(request):
        return Reply(SUMMARY)
    if request.items[-1].kind == "result":
        return Reply("It is done.")
    said = [item.text for item in request.items if item.kind == "user"][-1]
    if "change it" in said:
        edit = Call("edit", {"path": "a.txt", "old_string": "line 10\n", "new_string": "ten\n"})
        return Reply("I change a line.", thinking="Hm, a line.", tool_calls=[edit])
    if "make it" in said:
        return Reply("I make a file.", tool_calls=[Call("write", {"path": "b.txt", "content": "brand new\n"})])
    if "slowly" in said:
        return Reply("word " * 400, delay_per_event=0.3)
    return Reply(f"{''.join(re.findall('part .', said)[-1:])} is told. {LONG}")


@pytest.fixture
def toad(tmp_path: Path) -> Iterator[CommandTerminal]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text(BEFORE)
    with ServerThread(answer) as server:
        environ = {**environment(tmp_path, server), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environ |= {"LANG": "C.UTF-8", "TENUTO_COMPACTION__KEEP_RECENT_TOKENS": "500"}
        agent = shlex.join([sys.executable, "-m", "tenuto", "acp"])
        terminal = CommandTerminal(work, environ, [TOAD, "acp", agent, "--title", "Tenuto", "--project-dir", str(work)])
        terminal.resize(160, 45)
        try:
            terminal.wait_for("How can I help you")
            terminal.wait_for("Ask")  # the mode of the session, which is there by now
            yield terminal
        finally:
            terminal.close()


def say(toad: CommandTerminal, text: str) -> None:
    """Type a prompt and send it; the list of commands that a slash opens is put away first."""
    toad.write(text.encode())
    toad.wait_for(text)
    if text.startswith("/"):
        toad.wait_for("summarise the older part now")
        toad.write(b"\x1b")
        toad.wait_until_gone("summarise the older part now")
    toad.write(b"\r")
    toad.wait_for("How can I help you")


def wait_for_row(toad: CommandTerminal, *parts: str) -> str:
    """Wait for a row of the screen with all the parts in it."""
    deadline = time.monotonic() + PATIENCE
    while not (rows := [row for row in toad.text().splitlines() if all(part in row for part in parts)]):
        assert time.monotonic() < deadline, f"never came: {parts}\n{frame(toad.text())}"
        toad.read()
    return rows[0]


def test_toad_goes_from_a_prompt_through_permission_to_the_diff_and_back(toad, tmp_path):
    say(toad, "change it")
    toad.wait_for("the following changes")
    row = wait_for_row(toad, "line 10", "ten ")
    assert row.count("11") == 2  # the line's place in the file, and not in a piece of it
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE
    toad.write(b"\r")
    toad.wait_for("It is done.")
    assert "I change a line." in toad.text() and "Hm, a line." in toad.text()
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE.replace("line 10\n", "ten\n")
    say(toad, "/undo")
    toad.wait_for("Restored 1 file: a.txt")
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE
    say(toad, "make it")
    toad.wait_for("brand new")  # of a new file there is a diff as well
    toad.write(b"r")
    toad.wait_for("did not allow")
    assert not (tmp_path / "work" / "b.txt").exists()


def test_toad_compacts_undoes_and_cancels(toad):
    for number in range(4):
        say(toad, f"tell me more, part {number}")
        toad.wait_for(f"part {number} is told.")
    say(toad, "/compact")
    toad.wait_for("compacted (manual):")  # in words: it does not ask for compactions
    say(toad, "/compact undo")
    toad.wait_for("Undone: ")
    say(toad, "answer slowly")
    toad.wait_for("word word")
    toad.write(b"\x1b")
    toad.wait_for("again")
    toad.write(b"\x1b")
    toad.wait_for("Turn cancelled")
