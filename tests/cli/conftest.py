"""What several files of this room use."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.program import TENUTO


@pytest.fixture
def run(tmp_path):
    work = tmp_path / "work"
    work.mkdir()

    def start(*arguments, server=None, environ=None, program=TENUTO, **options):
        values = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        if server is not None:
            values |= server.environ()
        values |= environ or {}
        options = {"stdin": subprocess.DEVNULL, "cwd": work, **options}
        if "input" in options:
            del options["stdin"]
        return subprocess.run(
            [*program, *arguments], check=False, capture_output=True, text=True, env=values, timeout=60, **options
        )

    start.work = work
    return start
