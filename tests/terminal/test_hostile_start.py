"""Starting among somebody else's files runs nothing of them, on both screens: security.md S1 and S2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.hostile import make_hostile, relative_path
from tests.examples import in_turn
from tests.guard.repositories import TRAPS, Trap, make_repository
from tests.server import Reply
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.test_raw_bytes import settle

pytestmark = pytest.mark.terminal
SCREENS = [(), ("--inline",)]
NAMES = ("include_on_one_line", "partial_clone", "gitlink", "bare_repository_as_files", "common_directory")
EVERY = [
    pytest.param(*param.values, marks=param.marks if param.values[0].name in NAMES else pytest.mark.full)
    for param in in_turn(sorted(TRAPS, key=lambda trap: trap.name not in NAMES), SCREENS)
]


@pytest.mark.parametrize(
    ("trap", "options"), EVERY, ids=lambda one: one.name if isinstance(one, Trap) else "".join(one) or "full"
)
def test_s2_r085_start_completion_and_diff_run_nothing(
    place: Workplace, tmp_path: Path, trap: Trap, options: tuple[str, ...]
) -> None:
    make_repository(place.work)
    canaries, program = tmp_path / "canaries", tmp_path / "program"
    canaries.mkdir()
    program.write_text(f"#!/bin/sh\n/usr/bin/touch {canaries / 'git'}\ncat 2>/dev/null\n")
    program.chmod(0o700)
    cwd = trap.build(place.work, str(program)) or place.work
    make_hostile(cwd, lambda name: f"/usr/bin/touch {canaries / name}")
    (canaries / "git").unlink(missing_ok=True)
    server = place.serve(lambda _: Reply("Done."))
    environ = {**server.environ(), "TERM": "xterm-256color", "PAGER": "cat", "PATH": relative_path(os.environ["PATH"])}
    terminal = PseudoTerminal(cwd, place.home, environ, "--model", MODEL, *options)
    try:
        terminal.wait_for(MODEL)
        terminal.wait_for("This project brings ")
        settle(terminal, 0.5)
        terminal.write(b"@a")  # it gives way
        settle(terminal, 1.0)
        terminal.write(b"\x1b")
        settle(terminal, 0.5)
        terminal.write(b"\x15/diff\r")
        settle(terminal, 1.5)
    finally:
        terminal.close()
    assert sorted(file.name for file in canaries.iterdir()) == []
