"""What is piped in is taken whole or refused, and never cut (reliability.md S2)."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from tenuto.cli.start import MAX_STDIN_BYTES, Patience, read_input
from tenuto.session.library.catalog import list_sessions
from tenuto.session.log.log import LOG_NAME
from tests.program import TENUTO

SOURCES = Path(__file__).parents[2] / "src"
END = b" ENDMARK"


def run(home: Path, stdin: object, *words: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TENUTO_HOME": str(home), "PYTHONPATH": str(SOURCES)}
    command = [*TENUTO, "--model", "offline/tenuto", *words]
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


class Pipe:
    """A pipe, both of whose ends are ours."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.said: list[str] = []

    def read(self, patience: Patience) -> str:
        return read_input("sum it up", self.said.append, self.reading, patience)

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


@pytest.fixture
def pipe():
    made = Pipe()
    yield made
    made.close()


SHORT = Patience(first=0.01, rest=0.01)


def test_r081_a_pipe_that_stays_silent_is_left_out_and_that_is_said(pipe):
    assert pipe.read(SHORT) == ""
    (said,) = pipe.said
    assert "nothing came on standard input" in said and "tenuto -p -" in said


def test_r081_a_pipe_that_goes_silent_is_taken_as_far_as_it_came_and_that_is_said(pipe):
    os.write(pipe.writing, b"first lines")
    assert pipe.read(SHORT) == "first lines"
    assert "still open" in pipe.said[0] and "the 11 bytes that came are sent" in pipe.said[1]


def test_r081_a_pause_shorter_than_the_patience_loses_nothing(pipe):
    """Tests print a head, then nothing for a while."""
    os.write(pipe.writing, b"head\n")
    rest = threading.Event()

    def say(text: str) -> None:
        pipe.said.append(text)
        rest.set()

    def go_on() -> None:
        rest.wait()
        os.write(pipe.writing, b"tail\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), pipe.writing)

    writer = threading.Thread(target=go_on)
    writer.start()
    found = read_input("sum it up", say, pipe.reading, Patience(first=0.01, rest=60))
    writer.join()
    assert found == "head\ntail\n"
    assert len(pipe.said) == 1 and "waiting" in pipe.said[0]


def test_r081_the_program_goes_on_without_a_silent_pipe_and_says_so(tmp_path):
    reading, writing = os.pipe()
    try:
        done = run(tmp_path / "home", reading, "-p", "what can you do?")
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 0
    assert done.stderr.count(b"nothing came on standard input") == 1
