"""Starting among somebody else's files runs nothing of them, on both screens: security.md S1 and S2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import in_turn
from tests.guard.repositories import TRAPS, Trap, make_repository
from tests.server import Reply
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.test_raw_bytes import settle

pytestmark = pytest.mark.terminal
SCREENS = [(), ("--inline",)]
NAMES = ("include_on_one_line", "partial_clone", "gitlink", "bare_repository_as_files", "common_directory")
SOME = [trap for trap in TRAPS if trap.name in NAMES]


@pytest.mark.parametrize(("trap", "options"), in_turn(SOME, SCREENS))
def test_s2_start_completion_and_diff_run_nothing(
    place: Workplace, tmp_path: Path, trap: Trap, options: tuple[str, ...]
) -> None:
    make_repository(place.work)
    canary, program = tmp_path / "CANARY", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {canary}\ncat 2>/dev/null\n")
    program.chmod(0o700)
    cwd = trap.build(place.work, str(program)) or place.work
    canary.unlink(missing_ok=True)
    (cwd / ".tenuto").mkdir()
    (cwd / ".tenuto" / "settings.toml").write_text('mode = "auto"\n')
    server = place.serve(lambda _: Reply("Done."))
    environ = {**server.environ(), "TERM": "xterm-256color", "PAGER": "cat"}
    terminal = PseudoTerminal(cwd, place.home, environ, "--model", MODEL, *options)
    try:
        terminal.wait_for("? keys")
        terminal.wait_for(MODEL)
        terminal.wait_for("ignored:")  # a word: where the line wraps depends on the path before it
        settle(terminal, 1.0)
        terminal.write(b"@a")
        settle(terminal, 1.0)
        terminal.write(b"\x1b")
        settle(terminal, 0.5)
        terminal.write(b"\x15/diff\r")
        settle(terminal, 1.5)
    finally:
        terminal.close()
    assert not canary.exists()
