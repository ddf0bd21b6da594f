"""The user's pager: a file by its name, a page that is still being written through a pipe."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest

from tenuto.command.file_commands import open_stream
from tenuto.tui.programs import Page, show_page


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch):
    """A terminal to lend."""
    master, slave = pty.openpty()
    monkeypatch.setattr(os, "ctermid", lambda: os.ttyname(slave))
    yield
    os.close(master)
    os.close(slave)


def pager(tmp_path: Path, script: str) -> dict[str, str]:
    program = tmp_path / "pager"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {**os.environ, "PAGER": str(program)}


async def test_a_file_is_named(tmp_path: Path):
    page = tmp_path / "page.txt"
    page.write_text("all of it\n")
    environ = pager(tmp_path, f'cat "$1" > {tmp_path}/seen')
    assert await show_page(Page(page, passing=True), environ) == ""
    assert (tmp_path / "seen").read_text() == "all of it\n"
    assert not page.exists()


async def test_a_page_in_the_making_is_read_as_far_as_the_pager_wants(tmp_path: Path):
    made: list[int] = []

    def chunks():
        for number in range(100_000):
            made.append(number)
            yield b"a line of %d\n" % number * 50

    path = Path(open_stream(chunks(), ".md"))
    environ = pager(tmp_path, f"head -n 1 > {tmp_path}/seen; echo $# >> {tmp_path}/seen")
    assert await show_page(Page(path, passing=True), environ) == ""
    assert (tmp_path / "seen").read_text() == "a line of 0\n0\n"
    assert not path.exists()
    assert len(made) < 2_000


async def test_without_a_pager_nothing_stays(tmp_path: Path):
    path = Path(open_stream(iter([b"x"]), ".md"))
    problem = await show_page(Page(path, passing=True), {"PATH": str(tmp_path), "PAGER": "/no/such/program"})
    assert "could not be run" in problem
    assert not path.exists()
