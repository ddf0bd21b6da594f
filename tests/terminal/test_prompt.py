"""The prompt in a real terminal, on both screens: what is being written survives, and goes along as it should."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.server import Reply
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import Screen
from tests.tui.images_of import png

pytestmark = pytest.mark.terminal
SCREENS = pytest.mark.parametrize("inline", [(), ("--inline",)], ids=["full", "inline"])


def start(place: Workplace, *arguments: str) -> Screen:
    screen = place.open()
    screen.start("--model", MODEL, *arguments)
    screen.wait_for(MODEL)
    return screen


@SCREENS
def test_a_draft_survives_kill_9_and_comes_back_with_its_session(place: Workplace, inline: tuple[str, ...]) -> None:
    server = place.serve(lambda _: Reply("Hello."))
    screen = start(place, *inline)
    screen.type("good morning")
    screen.wait_for("❯ good morning")
    screen.keys("Enter")
    screen.wait_settled("Hello.")
    screen.type("a thought that is not sent yet")
    files = place.home.glob
    screen.wait_until(lambda _: any("a thought" in file.read_text() for file in files("drafts/*.json")), "the draft")
    os.kill(screen.program_pid(), signal.SIGKILL)
    again = start(place, *inline, "--continue")
    again.wait_for("a thought that is not sent yet")
    again.wait_for("is back")
    again.keys("Enter")
    again.wait_until(lambda _: len(server.requests) == 2, "the request")
    assert server.requests[-1].last_user.startswith("a thought that is not sent yet")


@SCREENS
def test_a_dropped_image_and_a_mentioned_file_reach_the_model(place: Workplace, inline: tuple[str, ...]) -> None:
    server = place.serve(lambda _: Reply("I see both."))
    (place.folder / "my shot.png").write_bytes(png(820, 600))
    (place.work / "notes of mine.txt").write_text("the words in the file\n")
    screen = start(place, *inline)
    screen.paste(f"'{place.folder}/my shot.png'")
    screen.wait_for("[image 1 my shot.png 820x600")
    screen.type("what about @notes")
    screen.wait_for("notes of mine.txt")
    screen.keys("Tab")
    screen.wait_for('@"notes of mine.txt"')
    screen.keys("Enter")
    screen.wait_settled("I see both.")
    [request] = server.requests
    assert "the words in the file" in request.last_user
    assert sum(item.images for item in request.items) == 1
    assert not server.refusals


@SCREENS
def test_the_editor_gets_the_whole_text_and_a_failing_one_changes_nothing(
    place: Workplace, inline: tuple[str, ...]
) -> None:
    place.serve(lambda _: Reply("Hello."))
    editor = place.folder / "my editor"
    editor.write_text(
        f"#!/bin/sh\nfor last; do :; done\ncp \"$last\" '{place.folder}/seen'\n"
        f"[ -e '{place.folder}/fail' ] && exit 3\nsed -i s/draft/text/ \"$last\"\n"
    )
    editor.chmod(0o755)
    screen = place.open(VISUAL=f"'{editor}' --wait")
    screen.start("--model", MODEL, *inline)
    screen.wait_for(MODEL)
    pasted = "a pasted line\n" * 40
    screen.type("my draft ")
    screen.paste(pasted)
    screen.wait_for("[Pasted text #1 +41 lines]")
    screen.keys("C-x", "C-e")
    screen.wait_for("my text [Pasted text #1 +41 lines]")
    assert (place.folder / "seen").read_text() == f"my draft {pasted}"
    (place.folder / "fail").touch()
    screen.keys("C-g")
    screen.wait_for("exit code 3")
    screen.wait_for("my text [Pasted text #1 +41 lines]")


@contextmanager
def pseudo(place: Workplace, *arguments: str) -> Iterator[PseudoTerminal]:
    assert place.server is not None
    terminal = PseudoTerminal(place.work, place.home, place.server.environ(), "--model", MODEL, *arguments)
    try:
        terminal.wait_for(MODEL)
        yield terminal
    finally:
        terminal.close()


@SCREENS
def test_r099_a_paste_that_a_host_writes_without_marks_is_not_sent_line_by_line(
    place: Workplace, inline: tuple[str, ...]
) -> None:
    server = place.serve(lambda _: Reply("Received."))
    lines = [f"line {number} of a text that somebody has copied" for number in range(12)]
    with pseudo(place, *inline) as terminal:
        terminal.write("\r".join(lines).encode() + b"\r")
        terminal.wait_for(lines[-1])
        pause = time.monotonic() + 0.5
        while time.monotonic() < pause:
            terminal.read()
        assert not server.requests
        terminal.write(b"\x1b[Fend\r")
        terminal.wait_for("Received.")
    assert server.requests[0].last_user.startswith("\n".join(lines) + "\nend")
