"""A page that is written while it is read: nobody waits for what he does not look at."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tenuto.command.file_commands import open_stream
from tenuto.session.errors import SessionUnreadable


class Chunks:
    """Counts what was asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.made = 0

    def __iter__(self) -> Iterator[bytes]:
        for number in range(self.count):
            self.made = number + 1
            yield b"%08d\n" % number * 100


def wait_until_nobody_writes() -> None:
    for _ in range(1_000):
        if not any(thread.name == "page" for thread in threading.enumerate()):
            return
        time.sleep(0.01)
    raise AssertionError("the writer goes on")


def test_a_page_is_made_as_far_as_it_is_read():
    chunks = Chunks(100_000)
    path = Path(open_stream(iter(chunks), ".md"))
    try:
        assert path.is_fifo()
        assert path.stat().st_mode & 0o777 == 0o600
        assert chunks.made == 0
        with path.open("rb") as page:
            assert page.readline() == b"00000000\n"
        wait_until_nobody_writes()
        assert chunks.made < 1_000
    finally:
        path.unlink()


def test_all_of_it_can_be_read():
    path = Path(open_stream(iter(Chunks(300)), ".md"))
    lines = path.read_bytes().split()
    path.unlink()
    assert len(lines) == 30_000
    assert lines[-1] == b"00000299"


def test_a_page_that_is_removed_unread_is_not_waited_for():
    Path(open_stream(iter(Chunks(10)), ".md")).unlink()
    wait_until_nobody_writes()


def test_what_cannot_be_read_any_more_is_said_in_its_place():
    def chunks() -> Iterator[bytes]:
        yield b"the beginning\n"
        raise SessionUnreadable(Path("/gone"), "No such file or directory")

    path = Path(open_stream(chunks(), ".md"))
    text = path.read_text()
    path.unlink()
    assert text.startswith("the beginning\n")
    assert "No such file" in text
