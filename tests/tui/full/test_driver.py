"""What the terminal sends, as keys."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
import tty
from collections.abc import Iterator

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

from tenuto.tui.full.driver import PASTE_SILENCE, InputReader, TerminalDriver


def read(data: bytes) -> list[str]:
    reader = InputReader()
    messages = reader.feed(data)
    for _ in range(8):
        time.sleep(0.025)
        messages += reader.idle()
    return [message.key if isinstance(message, events.Key) else type(message).__name__ for message in messages]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\x1b\r", ["alt+enter"]),
        (b"\x1b[27;2;13~", ["shift+enter"]),
        (b"\x1b[13;2u", ["shift+enter"]),
        (b"\n", ["ctrl+j"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b", ["escape", "escape"]),
        (b"\x1bp", ["alt+p"]),
        (b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\a", ["a", "BackgroundHeard"]),
        (b"\x1b]10;rgb:00/00/00\x07\x1b[?62;22cb", ["b"]),
        (b"\x1b[<35;NaN;NaNMc", ["c"]),
        (b"a\xffb", ["a", "replacement_character", "b"]),
    ],
)
def test_keys(data: bytes, keys: list[str]) -> None:
    assert read(data) == keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\x1b[A" * 5, ["shift+up"] * 5),  # kitty
        (b"\x1bOB" * 3, ["shift+down"] * 3),  # alacritty
        (b"\x1b[A\x1b[A", ["up", "up"]),
        (b"a" + b"\x1b[B" * 3 + b"b", ["a", *["shift+down"] * 3, "b"]),
    ],
)
def test_the_wheel_scrolls_where_the_terminal_has_the_mouse(data: bytes, keys: list[str]) -> None:
    reader = InputReader()
    reader.has_mouse = lambda: False
    assert [message.key for message in reader.feed(data) if isinstance(message, events.Key)] == keys
    assert [key.replace("shift+", "") for key in keys] == read(data)


@pytest.mark.parametrize(
    "pieces", [(b"\x1b[?62;", b"22c"), (b"\x1b[?2026;2$", b"y"), (b"\x1b]11;rgb:1e1e/2", b"020/2424\x1b\\")]
)
def test_an_answer_in_two_pieces_on_a_slow_line_is_no_text(pieces: tuple[bytes, bytes]) -> None:
    reader = InputReader()
    messages = reader.feed(pieces[0])
    for _ in range(15):
        time.sleep(0.02)
        messages += reader.idle()
    messages += reader.feed(pieces[1] + b"a")
    assert [message.key for message in messages if isinstance(message, events.Key)] == ["a"]


def test_a_character_in_two_reads_is_one_key() -> None:
    reader = InputReader()
    first, second = "字".encode()[:2], "字".encode()[2:]
    messages = reader.feed(first) + reader.feed(second)
    assert [message.character for message in messages if isinstance(message, events.Key)] == ["字"]


def test_r099_a_paste_without_an_end_does_not_swallow_the_keys_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InputReader()
    assert reader.feed(b"\x1b[200~half") == []
    now = time.monotonic()
    monkeypatch.setattr("tenuto.tui.full.driver.time.monotonic", lambda: now + PASTE_SILENCE + 0.1)
    [paste] = reader.idle()
    assert isinstance(paste, events.Paste)
    assert paste.text == "half"
    [key] = reader.feed(b"k")
    assert isinstance(key, events.Key)
    assert key.key == "k"


def test_a_reader_that_was_kept_waiting_does_not_take_half_a_sequence_for_keys() -> None:
    reader = InputReader()
    fed_at = time.monotonic()
    assert reader.feed(b"\x1b[") == []
    time.sleep(0.2)
    assert reader.idle(fed_at + 0.02) == []
    [key] = reader.feed(b"C")
    assert isinstance(key, events.Key)
    assert key.key == "right"


def test_letters_and_digits_are_what_textuals_parser_makes_of_them() -> None:
    letters = [chr(code) for code in range(0x20, 0x3000) if chr(code).isalnum()]
    theirs = [key for letter in letters for key in XTermParser().feed(letter) if isinstance(key, events.Key)]
    ours = [key for letter in letters for key in InputReader().feed(letter.encode()) if isinstance(key, events.Key)]
    assert [(key.key, key.character) for key in ours] == [(key.key, key.character) for key in theirs]


class Heard(TerminalDriver):
    """Reads one end of a pseudo-terminal, and keeps what it heard."""

    def __init__(self, descriptor: int) -> None:
        self.fileno, self._input, self._loop = descriptor, None, asyncio.get_running_loop()
        self._mouse, self._app = True, object()
        self.keys: asyncio.Queue[str] = asyncio.Queue()

    def process_message(self, message: Message) -> None:
        self.send_message(message)

    def send_message(self, message: Message) -> None:
        self.keys.put_nowait(message.key if isinstance(message, events.Key) else type(message).__name__)


@contextlib.contextmanager
def reading() -> Iterator[tuple[int, Heard]]:
    terminal, program = os.openpty()
    tty.setraw(program)
    driver, resized = Heard(program), signal.getsignal(signal.SIGWINCH)
    driver._begin_reading()
    try:
        yield terminal, driver
    finally:
        driver.disable_input()
        signal.signal(signal.SIGWINCH, resized)
        for descriptor in (terminal, program):
            with contextlib.suppress(OSError):
                os.close(descriptor)


async def test_keys_are_read_in_the_loop_with_no_thread_beside_it() -> None:
    with reading() as (terminal, driver):
        threads = threading.active_count()
        os.write(terminal, b"a\x1b[A")
        assert [await driver.keys.get(), await driver.keys.get()] == ["a", "up"]
        assert threading.active_count() == threads


async def test_a_lone_escape_is_a_key_when_nothing_follows() -> None:
    with reading() as (terminal, driver):
        os.write(terminal, b"\x1b")
        assert await driver.keys.get() == "escape"


async def test_a_sequence_whose_end_came_while_the_loop_had_no_turn_is_one_key() -> None:
    with reading() as (terminal, driver):
        os.write(terminal, b"\x1b[")
        while driver._waiting is None:
            await asyncio.sleep(0)
        os.write(terminal, b"C")
        time.sleep(0.3)  # the timer is due by far
        driver._take_input(waited=True)
        assert await driver.keys.get() == "right"
        assert driver.keys.empty()


async def test_a_reader_that_is_woken_for_what_another_has_read_does_not_wait() -> None:
    with reading() as (_, driver):
        driver._take_input()
        assert driver.keys.empty()


async def test_what_is_typed_after_the_end_stays_for_who_reads_next() -> None:
    with reading() as (terminal, driver):
        os.write(terminal, b"a\x1b")
        assert await driver.keys.get() == "a"
        driver.disable_input()
        os.write(terminal, b"b")
        await asyncio.sleep(0)
        assert driver.keys.empty()
        assert driver._waiting is None
        assert os.read(driver.fileno, 10) == b"b"


async def test_a_terminal_that_is_gone_is_told_once() -> None:
    with reading() as (terminal, driver):
        os.close(terminal)
        assert await driver.keys.get() == "HungUp"
        for _ in range(3):
            await asyncio.sleep(0)
        assert driver.keys.empty()
