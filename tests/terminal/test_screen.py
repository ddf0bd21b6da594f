"""What the screen does with other sizes, wide characters and very large pastes."""

from __future__ import annotations

import time

import pytest

from tests.server import Reply, Request, scripts
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import READY

pytestmark = pytest.mark.terminal

WINDOW_OF_A_MILLION = f'[models."{MODEL}"]\ncontext_window = 1000000\n'


def markdown(request: Request) -> Reply:
    del request
    return Reply(scripts.markdown(2))


def without_bar(shown: str) -> list[str]:
    """The rows without the scroll bar, which fades."""
    return [line.rstrip("▐ ") for line in shown.split("\n")]


def test_other_sizes_leave_no_garbage_and_keep_the_draft(place: Workplace) -> None:
    place.serve(markdown)
    screen = place.start(columns=100, rows=30)
    screen.submit("go")
    first = screen.wait_settled(scripts.END_MARK)
    screen.type("half a draft")
    screen.wait_for("❯ half a draft")
    for columns, rows in ((60, 20), (140, 40), (34, 9), (100, 30)):
        screen.resize(columns, rows)
        shown = screen.wait_until(
            lambda shown, columns=columns: (
                f"\n{'─' * columns}\n❯ half a draft\nask · {MODEL}" in shown and scripts.END_MARK in shown
            ),
            f"the prompt at {columns} x {rows}",
        )
        lines = without_bar(shown)
        assert len(lines) == rows
        assert shown.count("half a draft") == 1
        assert shown.count(scripts.END_MARK) == 1
        assert sum(line.startswith("────") for line in lines) == 1, "no rule of another size is left behind"
        at_caret = (len("❯ half a draft"), rows - 2)
        screen.wait_until(lambda _, at_caret=at_caret: screen.cursor() == at_caret, f"the cursor at {at_caret}")
    screen.keys("C-u")
    screen.wait_until(lambda shown: READY in shown and without_bar(shown) == without_bar(first), "the first screen")


def test_r100_wide_characters_appear_once_in_order_with_the_cursor_behind_them(place: Workplace) -> None:
    server = place.serve(lambda _: Reply("好的。 🎵 done"))
    screen = place.start()
    screen.type("漢字🎵x")
    screen.wait_until(lambda shown: shown.count("❯ 漢字🎵x") == 1, "the text")
    screen.wait_until(lambda _: screen.cursor()[0] == 2 + 7, "the cursor behind it")
    screen.keys("Left", "Left")
    screen.wait_until(lambda _: screen.cursor()[0] == 2 + 4, "the cursor before the note")
    screen.type("й")
    screen.wait_for("❯ 漢字й🎵x")
    screen.keys("BSpace", "BSpace", "BSpace", "Delete")
    screen.wait_until(lambda shown: "❯ x" in shown and "漢" not in shown, "only the end is left")
    screen.type("字")
    screen.wait_for("❯ 字x")
    screen.keys("Enter")
    shown = screen.wait_settled("好的。 🎵 done", "▌ 字x")
    assert shown.count("字") == 1
    assert server.requests[0].last_user.startswith("字x")


@pytest.mark.parametrize("screen", [(), ("--inline",)], ids=["full", "inline"])
@pytest.mark.parametrize("gap", [0.005, pytest.param(0.05, marks=pytest.mark.full)])
def test_t42_r099_a_paste_of_a_megabyte_in_pieces_arrives_byte_for_byte(
    place: Workplace, screen: tuple[str, ...], gap: float
) -> None:
    server = place.serve(lambda _: Reply("Received."))
    place.settings(WINDOW_OF_A_MILLION)
    line = "{number}\tthe quick brown fox – 漢字 🎵   jumps, and jumps, and jumps over the lazy dog  \n"
    pasted = "".join(line.format(number=number) for number in range(11_000)) + "the end"
    assert len(pasted.encode()) > 1_000_000
    data = b"\x1b[200~" + pasted.replace("\n", "\r").encode() + b"\x1b[201~"
    terminal = PseudoTerminal(place.work, place.home, server.environ(), "--model", MODEL, *screen)
    try:
        terminal.wait_for(MODEL)
        for start in range(0, len(data), 4096):
            terminal.write(data[start : start + 4096])
            pause = time.monotonic() + gap
            while time.monotonic() < pause:
                terminal.read(0.005)
        terminal.wait_for("Pasted text")
        terminal.write(b" and what I typed")
        terminal.wait_for("and what I typed")
        terminal.write(b"\r")
        terminal.wait_for("Received.")
        terminal.write(b"keys still echo")
        terminal.wait_for("keys still echo")
    finally:
        terminal.close()
    assert server.requests[0].last_user.startswith(pasted + " and what I typed")
    assert not server.refusals
