"""The folders that sessions are played in: what a kill has left goes, what somebody uses stays."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenuto.evaluation.folders import folder_of, played_in, remove_abandoned

PLAYS = """
import sys
from tenuto.evaluation.folders import played_in
with played_in(sys.argv[1]) as folder:
    (folder / "log").write_text("half a")
    print("plays", flush=True)
    sys.stdin.read()
"""
HOLDS = """
import sys
from pathlib import Path
from tenuto.evaluation.folders import held
with held(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextmanager
def running(script: str, word: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script until it says that it has got so far."""
    command = [sys.executable, "-c", script, word]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        process.kill()


def test_l5_a_folder_goes_when_its_process_was_killed_and_not_before():
    folder = folder_of("000000001")
    with running(PLAYS, "000000001") as process:
        remove_abandoned()
        assert (folder / "log").read_text() == "half a"
        process.kill()
        process.wait()
        assert folder.exists()
        remove_abandoned()
    assert not folder.exists()


def test_l5_a_folder_stays_while_the_child_goes_on_that_the_killed_one_has_started():
    folder = folder_of("000000002")
    with running(PLAYS, "000000002") as maker, running(HOLDS, str(folder)) as child:
        maker.kill()
        maker.wait()
        remove_abandoned()
        assert (folder / "log").exists()
        child.kill()
        child.wait()
        remove_abandoned()
    assert not folder.exists()


def test_l5_what_was_never_held_and_what_only_has_the_name_stays(temporary: Path):
    full, elsewhere, named = folder_of("000000003"), temporary / "elsewhere", folder_of("report")
    for folder in (full, elsewhere, named):
        folder.mkdir()
    (full / "notes").touch()
    (elsewhere / "held").touch()
    folder_of("000000004").symlink_to(elsewhere)
    folder_of("000000005").write_text("a file")
    remove_abandoned()
    assert [path.exists() for path in (full / "notes", elsewhere / "held", named)] == [True, True, True]
    assert folder_of("000000005").read_text() == "a file"


def test_l5_a_folder_goes_whose_maker_was_killed_before_it_held_it():
    """Found on a busy machine: a driver that was killed when a session began left an empty folder for ever."""
    folder_of("000000007").mkdir()
    remove_abandoned()
    assert not folder_of("000000007").exists()


def test_l5_what_cannot_be_removed_at_once_goes_later(monkeypatch: pytest.MonkeyPatch):
    """What a session has started may write there after it."""

    def leave_some(folder: Path, *, ignore_errors: bool) -> None:
        (folder / "held").unlink()
        (folder / "late").touch()

    with monkeypatch.context() as patched, played_in("000000008") as folder:
        patched.setattr(shutil, "rmtree", leave_some)
    assert (folder / "late").exists()
    remove_abandoned()
    assert not folder.exists()


def test_l5_another_run_that_removes_takes_no_folder_of_one_that_begins():
    stopping = threading.Event()

    def remove_all() -> None:
        while not stopping.is_set():
            remove_abandoned()

    others = [threading.Thread(target=remove_all) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for number in range(300):
            with played_in(f"{number:09}") as folder:
                (folder / "log").write_text("here")
                assert (folder / "log").read_text() == "here"
    finally:
        stopping.set()
        for other in others:
            other.join()


def test_l5_a_folder_is_gone_when_its_session_is_over():
    with played_in("000000006") as folder:
        assert folder.is_dir()
    assert not folder.exists()
