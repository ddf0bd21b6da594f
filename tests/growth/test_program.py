"""The program under a terminal: what a key costs it, told by the kernel and by the bytes that come out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenuto.session.session import Session
from tests.growth.counting import LARGE, SMALL
from tests.session.long import write_session
from tests.terminal.pseudo import PseudoTerminal

KEYS = "abcdefghijklmnopqrst"
IO = Path("/proc/self/io")


def io_of(pid: int) -> int:
    """Return how many times a program has read or written since it began."""
    lines = (line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return sum(int(value) for name, value in lines if name in ("syscr", "syscw"))


def with_index(directory: Path) -> None:
    """Make the index of its words now: the program would do that while the keys are typed."""
    session = Session.open(directory)
    done, whole = 0, 1
    while done < whole:
        done, whole = session.grow_search()
    session.close()


@pytest.mark.skipif(not os.access(IO, os.R_OK), reason="the kernel does not count what a program reads and writes")
@pytest.mark.parametrize("screen", [(), ("--inline",)], ids=["full", "inline"])
def test_system_calls_and_bytes_of_a_key(tmp_path: Path, screen: tuple[str, ...]):
    """Each key is waited for, so that none shares a frame with another."""
    costs = {}
    for entries in (SMALL, LARGE):
        home, work = tmp_path / f"home{entries}", tmp_path / f"work{entries}"
        work.mkdir()
        directory = write_session(home, work, entries, entries * 300, "offline/tenuto")
        with_index(directory)
        terminal = PseudoTerminal(work, home, {}, "--resume", directory.name, *screen)
        try:
            terminal.wait_for(f"Answer {entries}")
            terminal.read_until_quiet(1.5)
            calls, written = io_of(terminal.pid), len(terminal.output)
            for number in range(1, len(KEYS) + 1):
                terminal.write(KEYS[number - 1].encode())
                terminal.wait_for(KEYS[:number])
                terminal.read_until_quiet(0.1)
            costs[entries] = (io_of(terminal.pid) - calls) / len(KEYS), (len(terminal.output) - written) / len(KEYS)
        finally:
            terminal.close()
    for calls, written in costs.values():
        assert calls < 12, "the key is read, the frame is written, and the threads tell each other of it"
        assert written < 400
    assert costs[LARGE][0] < costs[SMALL][0] + 3
    assert costs[LARGE][1] < costs[SMALL][1] + 40
