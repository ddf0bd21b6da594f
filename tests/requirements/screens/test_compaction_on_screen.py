"""Compaction as both screens show it, in a real terminal: R-043, R-055, R-057, and the lines of a compaction's life."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

from tests.server import Hang
from tests.terminal.conftest import Workplace
from tests.terminal.screen import Screen
from tests.terminal.test_compaction import WINDOW, Script, at_once, counting, slowly
from tests.tui.inline.test_terminal import submit

pytestmark = pytest.mark.terminal
both_screens = pytest.mark.parametrize("screen_arguments", [(), ("--inline",)], ids=["full", "inline"])


def begin(place: Workplace, arguments: tuple[str, ...], script: Script, rows: int = 40) -> Screen:
    place.serve(script, window=WINDOW)
    return place.start("--mode", "auto", *arguments, columns=100, rows=rows)


def fill(screen: Screen) -> None:
    """Ask until there is enough to compact, but not so much that it happens by itself."""
    for prompt in ("hello", "count 1", "count 2", "count 3"):
        submit(screen, prompt)
        screen.wait_settled(f"Answer to {prompt}.")


def queued_in(place: Workplace) -> list[str]:
    entries = [json.loads(line) for line in place.log.splitlines()]
    return [entry["parts"][0]["text"] for entry in entries if entry["type"] == "queued"]


@both_screens
def test_r043_typed_during_a_compaction_it_is_queued_stored_and_sent_in_order(
    place: Workplace, screen_arguments
) -> None:
    screen = begin(place, screen_arguments, counting(slowly))
    fill(screen)
    submit(screen, "/compact")
    screen.wait_for("Compacting")
    for text in ("typed first", "typed second"):
        submit(screen, text)
        screen.wait_until(lambda _, text=text: text in queued_in(place), f"{text} on disk")
    screen.wait_for("2 queued")
    screen.wait_settled("Answer to typed second.")
    whole = screen.whole() if screen_arguments else screen.capture()
    places = [whole.index(text) for text in ("Compacted ·", "▌ typed first", "▌ typed second", "to typed second.")]
    assert places == sorted(places)
    assert whole.count("▌ typed first") == whole.count("▌ typed second") == 1


@both_screens
def test_r043_killed_during_the_compaction_the_texts_wait_shown_and_go_out_in_order(
    place: Workplace, screen_arguments
) -> None:
    hang = [True]
    screen = begin(place, screen_arguments, counting(lambda: Hang() if hang[0] else at_once()))
    fill(screen)
    submit(screen, "/compact")
    screen.wait_for("Compacting")
    for text in ("typed first", "typed second"):
        submit(screen, text)
        screen.wait_until(lambda _, text=text: text in queued_in(place), f"{text} on disk")
    os.kill(screen.program_pid(), signal.SIGKILL)
    hang[0] = False
    again = place.open()
    again.start("--continue", *screen_arguments)
    again.wait_for("2 queued")
    again.wait_for("typed second")
    again.keys("Enter")
    shown = again.wait_settled("Answer to typed first.", "Answer to typed second.")
    assert shown.index("▌ typed first") < shown.index("▌ typed second")


@both_screens
def test_r055_why_sizes_time_and_summary_are_on_the_screen_and_after_a_resume(
    place: Workplace, screen_arguments
) -> None:
    screen = begin(place, screen_arguments, counting(slowly), rows=50)
    fill(screen)
    submit(screen, "/compact")
    progress = screen.wait_until(lambda shown: re.search(r"Compacting · .*\d+ tokens · \d+s · ", shown), "the progress")
    assert "manual" in progress
    assert re.search(r"Compacting · \S.*, \d+ tokens · \d+s · esc to cancel", progress), "stage, tokens, seconds, Esc"
    check_block(screen, screen.wait_settled("Compacted ·"))
    screen.keys("C-c", "C-c")
    screen.wait_exit()
    screen.start("--continue", *screen_arguments)
    check_block(screen, screen.wait_settled("Compacted ·"))


def check_block(screen: Screen, shown: str) -> None:
    block = re.search(r"Compacted · ~?([\d.]+)k → ~?([\d.]+)k tokens · manual · [^\n]*\d+(\.\d)?s", shown)
    assert block, shown
    assert float(block[1]) > float(block[2])
    assert "/compact undo" in shown, "the block says how it is taken back"
    screen.keys("C-o")
    screen.wait_until(lambda text: "small steps: easier to check" in text and "tokens read" in text, "the summary")


@both_screens
def test_r057_the_older_conversation_stays_on_the_screen(place: Workplace, screen_arguments) -> None:
    screen = begin(place, screen_arguments, counting(at_once), rows=50)
    fill(screen)
    submit(screen, "/compact")
    screen.wait_settled("Compacted ·")
    if screen_arguments:
        whole = screen.whole()
    else:
        whole = screen.capture()
        screen.keys("C-Home")
        whole += screen.wait_for("▌ hello")
    for text in ("▌ hello", "Answer to hello.", "▌ count 1", "Answer to count 3."):
        assert text in whole


@both_screens
def test_esc_cancels_and_the_screen_says_that_nothing_changed(place: Workplace, screen_arguments) -> None:
    screen = begin(place, screen_arguments, counting(Hang))
    fill(screen)
    submit(screen, "/compact")
    screen.wait_for("Compacting")
    screen.keys("Escape")
    screen.wait_settled("Compaction cancelled, nothing changed")
    assert b'"type":"compaction"' not in place.log


@both_screens
def test_a_preview_shows_the_summary_and_what_was_edited_is_what_is_written(place: Workplace, screen_arguments) -> None:
    screen = begin(place, screen_arguments, counting(at_once), rows=60)
    fill(screen)
    submit(screen, "/compact --preview")
    shown = screen.wait_for("Drop it")
    assert "Count the numbers of the house." in shown
    assert "nothing changes" in shown and b'"type":"compaction"' not in place.log
    screen.keys("Down", "Enter")
    # in the prompt: the list, which shows the summary too, is gone by then
    screen.wait_until(lambda text: "**small steps**" in text and "Drop it" not in text, "the summary to be edited")
    screen.type(" Edited by hand.")
    screen.keys("Enter")
    screen.wait_settled("Compacted ·")
    assert b"Edited by hand." in place.log
