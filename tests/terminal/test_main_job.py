"""The job that the README promises: read the project, ask, edit files, run commands, and have it all again later.

Headless, and in a pseudo-terminal on both screens. It is part of the matrix, so it needs nothing but Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.core.harness import PROTOCOLS, copy_sample
from tests.examples import one_of
from tests.server import ScriptedServer, ServerThread, scripts
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import BIN, GRACE, PATIENCE

pytestmark = [pytest.mark.terminal, pytest.mark.matrix]
JOB = "fix the failing tests"
DONE = "all tests pass now"


def environ(server: ScriptedServer) -> dict[str, str]:
    return {**server.environ(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def passes(work: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=work, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
def test_headless(tmp_path: Path, protocol: str) -> None:
    work = copy_sample(tmp_path / "work")
    with ServerThread(scripts.fix_tests) as server:
        done = subprocess.run(
            [BIN / "tenuto", "-p", JOB, "--mode", "auto", "--model", f"{protocol}/test"],
            cwd=work,
            env={**environ(server), "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert DONE in done.stdout
        assert not server.refusals
    assert passes(work)


@pytest.mark.parametrize("arguments", [(), ("--inline",)], ids=["full", "inline"])
def test_in_a_terminal(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    work, home = copy_sample(tmp_path / "work"), tmp_path / "home"
    home.mkdir()
    with ServerThread(scripts.fix_tests) as server:
        terminal = PseudoTerminal(work, home, environ(server), "--model", "openai-chat/test", *arguments)
        try:
            terminal.wait_for("? keys")
            terminal.write(JOB.encode())
            terminal.wait_for(JOB)
            terminal.write(b"\r")
            for title in ("Allow? Bash", "Allow? Edit", "Allow? Bash"):
                terminal.wait_for(title)
                time.sleep(GRACE)
                terminal.write(b"y")
                terminal.wait_until_gone(title)
            terminal.wait_for(DONE)
            terminal.write(b"/exit\r")
            assert terminal.wait_end() == 0
        finally:
            terminal.close()
        assert not server.refusals
        asked = len(server.requests)
        again = PseudoTerminal(work, home, environ(server), "--continue", *arguments)
        try:
            again.wait_for(DONE)
        finally:
            again.close()
        assert len(server.requests) == asked
    assert passes(work)
