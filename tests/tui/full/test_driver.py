"""What the terminal sends, as keys."""

from __future__ import annotations

import os
import select
import signal
import threading
import time

import pytest
from textual import events

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


def test_a_thread_that_begins_to_read_when_it_is_to_end_ends_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, program = os.openpty()
    driver = TerminalDriver.__new__(TerminalDriver)
    driver.fileno, driver.exit_event = program, threading.Event()
    driver._woken, driver._wake = os.pipe()
    os.set_blocking(driver._woken, False)
    monkeypatch.setattr(driver, "_disable_mouse_support", lambda: time.sleep(0.3))  # the thread gets its turn here

    def begin_late() -> None:
        select.select([driver._woken], [], [])
        driver.run_input_thread()

    driver._key_thread = threading.Thread(target=begin_late, daemon=True)
    driver._key_thread.start()
    key = threading.Timer(5, os.write, (terminal, b"k\n"))
    key.start()
    resized = signal.getsignal(signal.SIGWINCH)
    try:
        driver.disable_input()
        assert key.is_alive(), "it waited for a key"
    finally:
        key.cancel()
        signal.signal(signal.SIGWINCH, resized)
        for descriptor in (terminal, program, driver._woken, driver._wake):
            os.close(descriptor)
