"""What is piped in is taken whole or refused, and never cut (reliability.md S2)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.cli.start import MAX_STDIN_BYTES
from tenuto.session.catalog import list_sessions
from tenuto.session.log import LOG_NAME

SOURCES = Path(__file__).parents[2] / "src"
END = b" ENDMARK"


def run(home: Path, stdin: object, *words: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TENUTO_HOME": str(home), "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-m", "tenuto", "--model", "offline/tenuto", *words]
    given = {"input": data} if data is not None else {"stdin": stdin}
    return subprocess.run(command, cwd=home.parent, env=environ, capture_output=True, timeout=300, check=False, **given)


@pytest.mark.parametrize("words", [("-p", "-"), ("-p", "sum it up"), ()])
@pytest.mark.parametrize("more", [1, 3_000_000])
def test_s2_what_is_too_long_is_refused_before_anything_is_sent(tmp_path, words, more):
    data = b"x" * (MAX_STDIN_BYTES + more - len(END)) + END
    done = run(tmp_path / "home", None, *words, data=data)
    assert done.returncode == 2
    assert b"more than 10,000,000 bytes" in done.stderr
    assert done.stdout == b""
    assert list_sessions(tmp_path / "home") == []


def test_s2_what_just_fits_is_in_the_log_to_its_end(tmp_path):
    data = b"word " * 100_000
    done = run(tmp_path / "home", None, "-p", "-", data=data[: 400_000 - len(END)] + END)
    (summary,) = list_sessions(tmp_path / "home")
    assert END in (summary.directory / LOG_NAME).read_bytes(), done


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here whose reading fails")
def test_s2_an_input_that_fails_is_refused(tmp_path):
    memory = os.open("/proc/self/mem", os.O_RDONLY)  # nothing is mapped at its beginning
    try:
        done = run(tmp_path / "home", memory, "-p", "-")
    finally:
        os.close(memory)
    assert done.returncode == 2
    assert b"cannot be read to its end" in done.stderr
