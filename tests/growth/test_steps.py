"""A headless run of tool steps: what the program does between an answer and the next request, as counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import ServerThread
from tests.server.any_agent import note_name, note_text, read_steps

PROBE = """
import json, os, sys, threading
from asyncio.base_events import BaseEventLoop
from concurrent.futures import ThreadPoolExecutor

counts = dict.fromkeys(("turns", "threads", "looks", "syncs", "calls"), 0)

def count(owner, name, as_name):
    real = getattr(owner, name)
    def counted(*arguments, **named):
        counts[as_name] += 1
        return real(*arguments, **named)
    setattr(owner, name, counted)

count(BaseEventLoop, "_run_once", "turns")
count(ThreadPoolExecutor, "submit", "threads")
count(threading.Thread, "start", "threads")
for name in ("stat", "lstat"):
    count(os, name, "looks")
count(os, "fsync", "syncs")

def note(frame, event, argument):
    if event == "call":
        counts["calls"] += 1

def leave(code):
    sys.setprofile(None)
    print("COUNTS", json.dumps(counts), file=sys.stderr, flush=True)
    raise SystemExit(code)

real_exit, os._exit = os._exit, leave
sys.argv = ["tenuto", *sys.argv[1:]]
from tenuto.cli.main import main
sys.setprofile(note)
try:
    main()
finally:
    real_exit(0)
"""
STEPS = (20, 60, 160)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, int]]:
    """What runs of so many steps did, each reading another file of one folder."""
    return {steps: run(tmp_path_factory.mktemp(f"steps{steps}"), steps) for steps in STEPS}


def run(place: Path, steps: int) -> dict[str, int]:
    work = place / "work"
    (work / "notes").mkdir(parents=True)
    for number in range(steps):
        (work / note_name(number)).write_text(note_text(number))
    with ServerThread(read_steps(steps)) as server:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(place), **server.environ()}
        arguments = ["-p", "hello", "--model", "openai-chat/test", "--mode", "auto"]
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *arguments],
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        )
        assert len([one for one in server.requests if one.tools]) == steps + 1
    line = next(line for line in done.stderr.splitlines() if line.startswith("COUNTS "))
    return json.loads(line.removeprefix("COUNTS "))


def rates(counted: dict[int, dict[str, int]], what: str) -> tuple[float, float]:
    """Return how often something is done for each of the first steps, and for each of the last."""
    first, middle, last = (counted[steps][what] for steps in STEPS)
    return (middle - first) / (STEPS[1] - STEPS[0]), (last - middle) / (STEPS[2] - STEPS[1])


@pytest.mark.parametrize(
    ("what", "most"),
    [("threads", 2.1), ("syncs", 0.1), ("calls", 4_600.0)],
)
def test_what_a_step_does(counted: dict[int, dict[str, int]], what: str, most: float):
    """Threads that do something, waits for the disk, functions of Python on the loop: the last steps do hardly more
    than the first."""
    early, late = rates(counted, what)
    assert late < most
    assert late < 1.6 * early + 1  # what grew with the session would be 2.75 times as much


def test_turns_of_the_loop(counted: dict[int, dict[str, int]]):
    """A turn takes as many pieces of an answer as have come, so a busy machine has others: 10 a step, up to 15."""
    assert rates(counted, "turns")[1] < 25  # what grew with the session would be 27 and more


def test_looks_at_the_disk(counted: dict[int, dict[str, int]], tmp_path: Path):
    """A real path takes a look at each folder above, so their number depends on where the project lies."""
    early, late = rates(counted, "looks")
    assert late < 25 + 8 * len((tmp_path / "work").parts)
    assert late < 1.3 * early + 2
