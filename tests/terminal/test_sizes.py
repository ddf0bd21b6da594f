"""R-100 on both screens: widths in cells, the cursor at the caret; other sizes, also in the middle of a stream."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.server import Reply, Request, scripts
from tests.server.reply import Script
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


FRAME = re.compile(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", re.DOTALL)
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]")


def painting_frames(written: bytes) -> list[str]:
    """What is painted, frame by frame (synchronised output); a frame that only moves the cursor is none."""
    assert written.count(b"\x1b[?2026h") == written.count(b"\x1b[?2026l")
    assert not CONTROL.sub(b"", FRAME.sub(b"", written)), "nothing is painted outside of a frame"
    return [frame.decode() for frame in FRAME.findall(written) if CONTROL.sub(b"", frame)]


@contextmanager
def pseudo_terminal(place: Workplace, script: Script, *arguments: str) -> Iterator[PseudoTerminal]:
    server = place.serve(script)
    terminal = PseudoTerminal(place.work, place.home, server.environ(), "--model", MODEL, *arguments)
    try:
        terminal.wait_for("? keys")
        yield terminal
    finally:
        terminal.close()


def send(terminal: PseudoTerminal, text: str, answered: str) -> None:
    terminal.write(text.encode())
    terminal.wait_for(text)
    terminal.write(b"\r")
    terminal.wait_for(answered)


def resize(terminal: PseudoTerminal, *sizes: tuple[int, int], apart: float = 0.0) -> bytes:
    """Give the terminal these sizes, so many seconds apart; return what is written until all is quiet."""
    begin = len(terminal.output)
    for columns, rows in sizes:
        terminal.resize(columns, rows)
        deadline = time.monotonic() + apart
        while (left := deadline - time.monotonic()) > 0:
            terminal.read(left)
    terminal.read_until_quiet()
    return terminal.output[begin:]


def painted_anew(terminal: PseudoTerminal) -> list[str]:
    """The screen as it is when the terminal forgets everything and the program paints all of it."""
    terminal.screen.reset()
    terminal.write(b"\x0c")
    terminal.read_until_quiet()
    return list(terminal.screen.display)


@both_screens
def test_r100_a_resize_is_painted_in_one_frame(place: Workplace, screen_arguments) -> None:
    with pseudo_terminal(place, answer, *screen_arguments) as terminal:
        send(terminal, "plain", "done")
        terminal.write(b"the draft")
        terminal.wait_for("the draft")
        terminal.read_until_quiet()
        for size in ((70, 30), (90, 30), (90, 18), (100, 30)):
            (painted,) = painting_frames(resize(terminal, size))
            assert terminal.text().count("the draft") == painted.count("the draft") == 1
            # A printed answer belongs to the terminal, which wraps it by itself.
            assert painted.count("done") == painted.count("plain") == (0 if screen_arguments else 1)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [(b"/mo", "/model"), (b"/mode\r", "type to filter"), (b"?", "type to search"), (b"word " * 90, "word word")],
    ids=["completion", "picker", "help", "long draft"],
)
def test_r100_what_is_open_is_fitted_in_the_same_frame(place: Workplace, typed: bytes, shown: str) -> None:
    with pseudo_terminal(place, answer) as terminal:
        send(terminal, "fill", "line 44")
        terminal.write(typed.rstrip(b"\r"))
        terminal.read_until_quiet()
        terminal.write(typed[len(typed.rstrip(b"\r")) :])
        terminal.wait_for(shown)
        terminal.read_until_quiet()
        for size in ((60, 30), (60, 14), (110, 40), (100, 30)):
            assert len(painting_frames(resize(terminal, size))) == 1
            display = list(terminal.screen.display)
            assert display == painted_anew(terminal)


@pytest.mark.parametrize("apart", [0.0, 0.01], ids=["at once", "in 200 ms"])
def test_r100_sizes_in_quick_succession_end_in_a_whole_frame_of_the_last(place: Workplace, apart: float) -> None:
    with pseudo_terminal(place, answer) as terminal:
        send(terminal, "fill", "line 44")
        terminal.write(b"the draft")
        terminal.wait_for("the draft")
        terminal.read_until_quiet()
        sizes = [(60 + 2 * number, 20 + number % 7) for number in range(20)]
        for end in ((77, 24), (100, 30), (100, 30)):  # the last: away, and back to what it was
            frames = painting_frames(resize(terminal, *sizes, end, apart=apart))
            assert 1 <= len(frames) <= len(sizes) + 1
            assert frames[-1].count("the draft") == 1
            display = list(terminal.screen.display)
            assert display == painted_anew(terminal)


def test_a_terminal_that_is_looked_away_from_loses_the_caret_and_nothing_else_is_painted(place: Workplace) -> None:
    with pseudo_terminal(place, answer) as terminal:
        send(terminal, "fill", "line 44")
        terminal.write(b"the draft")
        terminal.wait_for("the draft")
        terminal.read_until_quiet()
        caret = (28, 2 + len("the draft"))
        for report, shows in ((b"\x1b[O", False), (b"\x1b[I", True), (b"\x1b[O", False)):
            begin = len(terminal.output)
            terminal.write(report)
            terminal.read_until_quiet()
            (painted,) = painting_frames(terminal.output[begin:])
            assert "line" not in painted
            assert terminal.screen.buffer[caret[0]][caret[1]].reverse == shows
        terminal.write(b" goes on")
        terminal.wait_for("the draft goes on")


@pytest.mark.full
def test_r100_three_hundred_sizes_while_an_answer_streams_leave_what_a_fresh_paint_shows(place: Workplace) -> None:
    def long_answer(request: Request) -> Reply:
        text = scripts.markdown(8)
        return Reply(f"{text}\n\nthe end of it", chunk_size=12, delay_per_event=12.0 / (len(text) / 12))

    chance = random.Random(300)
    with pseudo_terminal(place, long_answer) as terminal:
        terminal.write(b"go\r")
        terminal.wait_for("esc to ")
        terminal.write(b"the draft")
        for _ in range(300):
            terminal.resize(chance.randint(30, 140), chance.randint(9, 50))
            terminal.read(chance.choice((0.0, 0.002, 0.01, 0.03, 0.06)))
        resize(terminal, (100, 40))
        terminal.wait_for("the end of it")
        terminal.read_until_quiet()
        display = list(terminal.screen.display)
        assert sum("the draft" in row for row in display) == 1
        assert display == painted_anew(terminal)
