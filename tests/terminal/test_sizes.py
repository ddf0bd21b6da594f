"""R-100 on both screens: widths in cells, the cursor at the caret; other sizes, also in the middle of a stream."""

from __future__ import annotations

import re

import pytest

from tests.server import Reply, Request
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import Screen
from tests.tui.inline.test_terminal import submit

pytestmark = pytest.mark.terminal
both_screens = pytest.mark.parametrize("screen_arguments", [(), ("--inline",)], ids=["full", "inline"])
WORDS = [f"word{number:03}" for number in range(90)]
WIDE = "漢字🎵x"
"""Cells: two and two, two, one."""


def answer(request: Request) -> Reply:
    if said(request) == "slow":
        return Reply(" ".join(WORDS), delay_per_event=0.06, chunk_size=16)
    if said(request) == "fill":
        return Reply("\n".join(f"line {number}" for number in range(45)))
    if said(request) == "plain":
        return Reply("It is **done**.")
    return Reply("好的。 **naïve** 👩‍👩‍👧 done\n\n| 名前 | n |\n|---|--:|\n| ベータ | 22 |")


def whole(screen: Screen, arguments: tuple[str, ...]) -> str:
    return screen.whole() if arguments else screen.capture()


@both_screens
def test_r100_wide_characters_in_prompt_and_transcript_with_the_cursor_at_the_caret(
    place: Workplace, screen_arguments
) -> None:
    place.serve(answer)
    screen = place.start(*screen_arguments)
    screen.type(WIDE)
    screen.wait_until(lambda shown: shown.count(f"❯ {WIDE}") == 1, "the text")
    for presses, column in ((0, 2 + 7), (1, 2 + 6), (1, 2 + 4), (1, 2 + 2)):
        for _ in range(presses):
            screen.keys("Left")
        screen.wait_until(lambda _, column=column: screen.cursor()[0] == column, f"the cursor in cell {column}")
    screen.type("й")
    screen.wait_for("❯ 漢й字🎵x")
    screen.keys("BSpace", "End", "Enter")
    shown = screen.wait_settled("好的。", "ベータ")
    assert f"▌ {WIDE}" in shown
    table = [row for row in shown.split("\n") if "│" in row]
    assert len(table) == 2
    cells = [sum(2 if ord(character) > 0x2E80 else 1 for character in row.partition("│")[0]) for row in table]
    assert cells[0] == cells[1], "columns stand below each other in cells"


@both_screens
def test_r100_another_size_in_the_middle_of_a_stream_loses_and_doubles_nothing(
    place: Workplace, screen_arguments
) -> None:
    place.serve(answer)
    screen = place.start(*screen_arguments, columns=90, rows=40)
    # tmux moves rows off a screen that is not full yet when it wraps them: nobody can erase them there.
    submit(screen, "fill")
    screen.wait_settled("line 44")
    submit(screen, "slow")
    for word, columns in (("word005", 60), ("word025", 110), ("word045", 45), ("word065", 80)):
        screen.wait_for(word)
        screen.resize(columns, 40)
    screen.type("a draft")
    screen.wait_until(lambda shown: "word089" in shown and "esc to " not in shown and "❯ a draft" in shown, "the end")
    found = re.findall(r"word\d{3}", whole(screen, screen_arguments))
    # What the terminal wrapped into its scrollback meanwhile may stand there twice; the answer is whole below it.
    assert found[-len(WORDS) :] == WORDS
    if not screen_arguments:
        assert found == WORDS


@both_screens
def test_a_list_is_filtered_and_picked_from_after_a_resize(place: Workplace, screen_arguments) -> None:
    place.serve(answer)
    screen = place.start(*screen_arguments)
    submit(screen, "/mode")
    screen.wait_for("type to filter")
    screen.resize(50, 20)
    screen.type("pla")
    screen.wait_until(lambda shown: re.search(r"❯ plan\b", shown), "the row that is left")
    screen.keys("Enter")
    screen.wait_until(lambda shown: shown.rstrip().split("\n")[-1].startswith("plan · "), "the mode in the last line")


@both_screens
def test_r100_a_resize_paints_what_shows_and_is_quiet(place: Workplace, screen_arguments) -> None:
    """Counted in the bytes that reach the terminal, the full screen's in whole frames (synchronised output)."""
    server = place.serve(answer)
    terminal = PseudoTerminal(place.work, place.home, server.environ(), *screen_arguments, "--model", MODEL)
    try:
        terminal.wait_for("? keys")
        terminal.write(b"plain")
        terminal.wait_for("plain")
        terminal.write(b"\r")
        terminal.wait_for("done")
        terminal.write(b"the draft")
        terminal.wait_for("the draft")
        terminal.read_until_quiet()
        for columns in (70, 90):
            terminal.resize(columns, 30)
            written = terminal.read_until_quiet().decode("utf-8", "replace")
            assert terminal.text().count("the draft") == 1
            assert terminal.text().count("plain") == 1
            if screen_arguments:
                assert "done" not in written, "a printed answer belongs to the terminal, which wraps it by itself"
                assert written.count("the draft") == 1
            else:
                # One frame for the new layout and one for what fits it; nothing in between is painted.
                assert 1 <= written.count("done") <= 2
                assert written.count("\x1b[?2026h") == written.count("\x1b[?2026l")
    finally:
        terminal.close()
