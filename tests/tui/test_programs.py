"""The user's pager: a file by its name, a page that is still being written through a pipe."""

from __future__ import annotations

import os
import pty
import re
from pathlib import Path

import pytest

from tenuto.command.file_commands import open_stream
from tenuto.tui.paint import Paint
from tenuto.tui.programs import Page, page_of, show_page
from tenuto.tui.render.theme import DARK
from tests.tui.render import samples


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


@pytest.mark.parametrize("size", [0, 999_990, 1_000_000])
async def test_s19_the_pager_gets_a_stored_output_without_what_a_terminal_obeys(tmp_path: Path, size: int):
    """Also where a sequence lies across two pieces of the copy."""
    hostile = "\x1b]52;c;aGk=\x07\x1b[2J\x1bc\x9b6n\x1bP1$r\x1b\\\u202e"
    stored = tmp_path / "output"
    stored.write_text(f"{'x' * size}{hostile}\x1b[31mred\x1b[0m\n")
    before = stored.read_bytes()
    environ = pager(tmp_path, f'cat "$1" > {tmp_path}/seen; echo "$1" > {tmp_path}/name')
    item = samples.tool("bash", result=samples.result("bash", "red", output_path=str(stored)))
    assert await show_page(page_of(item, Paint(DARK, "256"), 80), environ) == ""
    seen = (tmp_path / "seen").read_text()
    assert seen.startswith("x" * size) and "\x1b[31mred\x1b[0m\n" in seen
    assert not re.search(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202e]|\x1b(?!\[\d+m)", seen)
    assert stored.read_bytes() == before
    assert not Path((tmp_path / "name").read_text().strip()).exists()


async def test_an_output_that_is_gone_is_said(tmp_path: Path):
    assert "could not be read" in await show_page(Page(tmp_path / "gone", passing=False), pager(tmp_path, "true"))


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
