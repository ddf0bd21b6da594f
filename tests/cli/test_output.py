"""Standard output that is full, closed, or read by nobody any more: one line or none, an exit code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import in_turn

WAYS = ["--version", "--help", "sessions", "sessions list --json", "sessions --help", "sessions stats", "import --json"]
OFFLINE = "-p hello --model offline/tenuto"
FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that takes nothing")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with sessions, an answer of which is far longer than what a pipe or a buffer holds."""
    done = shell(tmp_path, f'"$0" -m tenuto {OFFLINE}; "$0" -m tenuto {OFFLINE}')
    assert done.returncode == 0, done.stderr
    return tmp_path


def shell(folder: Path, command: str, *, buffered: bool = True) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "TENUTO_HOME": str(folder / "home")}
    environ |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    environ |= {} if buffered else {"PYTHONUNBUFFERED": "1"}
    words = ["/bin/sh", "-c", command, sys.executable]
    return subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


@FULL
@pytest.mark.parametrize(("words", "buffered"), in_turn([*WAYS, OFFLINE, f"{OFFLINE} --json"], [True, False]))
def test_a_full_one_is_said_in_one_line(home: Path, words: str, buffered: bool) -> None:
    done = shell(home, f'exec "$0" -m tenuto {words} > /dev/full', buffered=buffered)
    assert (done.returncode, done.stderr) == (1, "tenuto: standard output: No space left on device\n")


@pytest.mark.parametrize("words", [*WAYS, OFFLINE])
def test_a_closed_one_is_said_in_one_line(home: Path, words: str) -> None:
    done = shell(home, f'exec "$0" -m tenuto {words} >&-')
    assert (done.returncode, done.stderr) == (2, "tenuto: standard output is closed\n")


@pytest.mark.parametrize(("words", "buffered"), in_turn([*WAYS, OFFLINE, f"{OFFLINE} --json"], [False, True]))
def test_one_that_nobody_reads_any_more_is_no_news(home: Path, words: str, buffered: bool) -> None:
    # The reader is gone before anything is written.
    done = shell(home, f'(sleep 0.3; "$0" -m tenuto {words}; echo "code $?" >&2) | true', buffered=buffered)
    assert done.stderr == "code 1\n"


@FULL
@pytest.mark.parametrize("form", ["html", "jsonl", "md"])
def test_an_export_to_a_full_or_unread_output_ends_in_order(home: Path, form: str) -> None:
    (log,) = list(home.glob("home/sessions/*/*/events.jsonl"))[:1]
    words = f"sessions export {log.parent.name} --format {form} --output -"
    done = shell(home, f'exec "$0" -m tenuto {words} > /dev/full')
    assert (done.returncode, done.stderr) == (1, "tenuto: standard output: No space left on device\n")
    done = shell(home, f'("$0" -m tenuto {words}; echo "code $?" >&2) | true')
    assert done.stderr == "code 1\n"


@FULL
def test_errors_that_nobody_can_be_told_of_change_no_exit_code(home: Path) -> None:
    assert shell(home, 'exec "$0" -m tenuto sessions show none 2> /dev/full').returncode == 2
    assert shell(home, 'exec "$0" -m tenuto --nothing 2> /dev/full').returncode == 2
    assert shell(home, f'exec "$0" -m tenuto {OFFLINE} 2> /dev/full').returncode == 0
