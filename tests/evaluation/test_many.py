"""`tenuto eval compaction` over many processes: what is killed loses nothing, and nothing is measured twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tenuto.evaluation.driving import Case, Figures, measure
from tenuto.evaluation.jobs import CaseJob
from tenuto.evaluation.store import SESSIONS
from tests.evaluation.times import without_times
from tests.frontend.batch.conftest import is_alive, wait_until
from tests.program import TENUTO

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
LONG = 250.0
"""Seconds to wait at most: the machine may be busy."""
WORKER = "-m tenuto.evaluation.jobs "


class Runs:
    """Runs of one evaluation, whose sessions are played in a folder of this test."""

    def __init__(self, folder: Path, sessions: int) -> None:
        self.played = folder / "played"
        self.played.mkdir()
        self.words = ("--windows", "8192", "--rounds", "1", "--summarisers", "lossy", "--seeds", str(sessions))
        self.environ = {**os.environ, "TENUTO_HOME": str(folder / "home"), "TMPDIR": str(self.played)}
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, out: Path | None, *words: str) -> subprocess.Popen[bytes]:
        command = [*TENUTO, "eval", "compaction", *self.words, *words]
        command += ["--out", str(out)] if out else []
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env=self.environ, **pipes)
        self.started.append(process)
        return process

    def run(self, out: Path | None, *words: str) -> tuple[bytes, bytes]:
        output, errors = self.start(out, *words).communicate(timeout=LONG)
        assert output.startswith(b"seeds "), errors
        return output, errors


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Callable[[int], Runs]]:
    made: list[Runs] = []

    def make(sessions: int) -> Runs:
        made.append(Runs(tmp_path, sessions))
        return made[-1]

    yield make
    for process in (process for one in made for process in one.started):
        if process.poll() is None:
            process.kill()
        process.communicate()


def workers_of(played: Path) -> list[int]:
    """Return the processes that measure a session below a folder: neither their launchers nor their shells."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 1) for line in listed.splitlines())
    return [
        int(pid)
        for pid, args in rows
        if WORKER in args and str(played) in args and "launcher.py" not in args and " -c " not in args
    ]


def kill_a_worker(played: Path) -> None:
    """Kill one while it measures: it is held first, so that it cannot come to its end meanwhile."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        for pid in workers_of(played):
            try:
                os.kill(pid, signal.SIGSTOP)
                held = is_alive(pid)
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            if held:
                return
        time.sleep(0.01)
    pytest.fail("no session was measured")


def played(one: Runs) -> list[str]:
    """Return the folders that sessions have left."""
    return [path.name for path in one.played.iterdir() if path.name.startswith("tenuto-eval-")]


def lines(out: Path) -> list[bytes]:
    """Return the whole lines of what was measured."""
    file = out / SESSIONS
    return file.read_bytes().splitlines(keepends=True) if file.exists() else []


def cases(data: list[bytes]) -> list[Case]:
    return [msgspec.json.decode(line, type=Figures).case for line in data if line.endswith(b"\n")]


@pytest.mark.parametrize("sessions", [8, pytest.param(30, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
def test_l5_a_killed_worker_and_a_killed_driver_lose_no_session_and_none_is_measured_twice(runs, tmp_path, sessions):
    one, out, serial = runs(sessions), tmp_path / "out", tmp_path / "serial"
    process = one.start(out)
    wait_until(lambda: len(lines(out)) >= 1, LONG)
    kill_a_worker(one.played)
    said = b""
    assert process.stderr is not None
    while b": again, its process ended with 137" not in said:
        said = process.stderr.readline()
        assert said, "the driver has ended"
    wait_until(lambda: len(lines(out)) >= sessions // 3, LONG)
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in workers_of(one.played)))
    kept = [line for line in lines(out) if line.endswith(b"\n")]
    assert len({*cases(kept)}) == len(kept) < sessions
    one.run(out)
    assert lines(out)[: len(kept)] == kept
    assert len(lines(out)) == len({*cases(lines(out))}) == sessions
    one.run(serial, "--jobs", "1")
    assert sorted(map(without_times, lines(out))) == sorted(map(without_times, lines(serial)))
    reports = ((folder / "report.json").read_bytes() for folder in (out, serial))
    assert len({*map(without_times, reports)}) == 1
    assert played(one) == []


def test_l5_ctrl_c_ends_sessions_in_order_and_keeps_the_finished(runs, tmp_path):
    one, out = runs(40), tmp_path / "out"
    process = one.start(out)
    wait_until(lambda: len(lines(out)) >= 2 and workers_of(one.played), LONG)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONG)
    assert process.returncode == 130, errors
    assert b"left, the same command goes on" in errors
    assert workers_of(one.played) == []
    assert played(one) == []
    assert 2 <= len(lines(out)) == len(cases(lines(out))) < 40


def test_l5_jobs_are_bounded_by_the_cores(runs):
    _, errors = runs(1).run(None, "--jobs", "9999")
    assert f"--jobs 9999: {len(os.sched_getaffinity(0))} at the same time".encode() in errors


async def test_l5_a_job_measures_what_is_measured_in_this_process(tmp_path):
    case = Case(seed=1, window=8_192, rounds=2, summariser="lossy")
    job = CaseJob(case, str(tmp_path), "123456789")
    there = await job.run(os.environ)
    assert not job.folder.exists()
    zero = {"seconds": 0.0, "compacting_seconds": 0.0}
    here = [msgspec.structs.replace(await measure(case), **zero) for _ in range(2)]
    assert here[0] == here[1] == msgspec.structs.replace(there, **zero)


async def test_l5_a_session_that_cannot_be_measured_is_named_with_the_reason(tmp_path):
    from tenuto.evaluation.jobs import CaseFailedError

    case = Case(seed=0, window=8_192, rounds=1, recorded="nowhere.jsonl")
    with pytest.raises(CaseFailedError, match=r"nowhere.*nowhere\.jsonl"):
        await CaseJob(case, str(tmp_path), "000000001").run(os.environ)
