from __future__ import annotations

import os
import pty
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.inline.output import FRAME_CHARACTERS, split_frame
from tenuto.tui.terminal.terminal import Terminal
from tenuto.tui.terminal.writer import STALLED_BYTES, TerminalWriter

PATIENCE = 120.0


class Slow:
    """A terminal that is read only when the test says so."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.writer = TerminalWriter(self.slave)

    def read(self, size: int) -> bytes:
        got = b""
        deadline = time.monotonic() + PATIENCE
        while len(got) < size:
            assert time.monotonic() < deadline
            got += os.read(self.master, 65_536)
        return got

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


def test_a_terminal_that_takes_nothing_keeps_nobody_waiting_and_is_told_of_when_it_has():
    terminal = Slow()
    caught_up = threading.Event()
    terminal.writer.drained = caught_up.set
    text = "".join(f"{number:07} " for number in range(STALLED_BYTES // 4))
    terminal.writer.write(text[:100])
    assert not terminal.writer.stalled
    terminal.writer.write(text[100:])
    assert terminal.writer.stalled
    assert not terminal.writer.drain(0.05)
    assert not caught_up.is_set()
    assert terminal.read(len(text)) == text.encode(), "in order, and nothing is lost"
    assert caught_up.wait(PATIENCE)
    assert not terminal.writer.stalled
    terminal.writer.close(PATIENCE)
    terminal.close()


def test_what_the_terminal_takes_is_written_before_the_call_returns():
    terminal = Slow()
    terminal.writer.write("a frame")
    assert "terminal-output" not in {thread.name for thread in threading.enumerate()}, "nobody has to be woken for it"
    assert terminal.read(7) == b"a frame"
    assert os.get_blocking(terminal.slave), "the descriptor that others share is left as it was"
    terminal.writer.close(PATIENCE)
    terminal.close()


def test_what_is_asked_of_the_terminal_first_makes_no_later_frame_wait():
    slow = Slow()
    with os.fdopen(os.dup(slow.slave), "w") as output:
        terminal = Terminal(output, None)
        terminal.write("a question")
        terminal.writer.write("a frame")
        assert "terminal-output" not in {thread.name for thread in threading.enumerate()}
        assert slow.read(17) == b"a questiona frame"
        terminal.writer.close(PATIENCE)
    slow.close()


def test_what_comes_behind_a_rest_waits_for_its_turn():
    terminal = Slow()
    pieces = [f"{number:05}" * 2_000 for number in range(40)] + [f"<{number}>" for number in range(40)]
    for piece in pieces:
        terminal.writer.write(piece)
    whole = "".join(pieces).encode()
    assert terminal.read(len(whole)) == whole
    terminal.writer.close(PATIENCE)
    terminal.close()


def test_what_is_no_terminal_is_written_to_as_well():
    reading, writing = os.pipe()
    writer = TerminalWriter(writing)
    writer.write("to a pipe")
    assert os.read(reading, 100) == b"to a pipe"
    writer.close(PATIENCE)
    os.close(reading)
    os.close(writing)


def test_the_end_waits_for_what_is_left_but_not_for_ever():
    terminal = Slow()
    terminal.writer.write("x" * 500_000)
    terminal.writer.close(0.05)
    terminal.read(500_000)
    terminal.writer.write("the end")
    terminal.writer.close(PATIENCE)
    assert terminal.read(7) == b"the end"
    terminal.close()


def test_a_terminal_that_somebody_made_non_blocking_gets_everything():
    terminal = Slow()
    os.set_blocking(terminal.slave, False)
    terminal.writer.write("y" * 300_000)
    assert terminal.read(300_000) == b"y" * 300_000
    terminal.writer.close(PATIENCE)
    terminal.close()


def test_a_terminal_that_is_gone_is_told_of_once():
    terminal = Slow()
    gone: list[int] = []
    terminal.writer.gone = lambda: gone.append(1)
    os.close(terminal.master)
    for _ in range(5):
        terminal.writer.write("z")
        terminal.writer.drain(0.2)
    assert gone == [1] and not terminal.writer.stalled
    os.close(terminal.slave)


@given(st.lists(st.integers(0, 20_000), max_size=8))
def test_long_frames_are_parted_between_rows(lengths):
    rows = ["".join(chr(97 + place % 26) for place in range(length)) for length in lengths]
    data = "\r\n".join(rows)
    pieces = list(split_frame(data))
    assert "".join(pieces) == data
    assert all(piece.endswith("\r\n") for piece in pieces[:-1])
    for piece in pieces:
        assert len(piece) <= FRAME_CHARACTERS + 2 or "\r\n" not in piece[:-2]
