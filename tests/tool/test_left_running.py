"""What a killed program left running is found, named and ended, and nothing else is (reliability.md S6)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tenuto.tool.process import left_running
from tenuto.tool.process.left_running import (
    VARIABLE,
    RunningRecord,
    describe_left,
    end_left_commands,
    is_listed,
    session_members,
    start_ticks,
    started_at,
)
from tenuto.tool.process.process import Collector, start_command

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks at /proc")
OWNER = """
import asyncio, os, sys
from pathlib import Path
from tenuto.tool.process.process import Collector
from tenuto.tool.process.process import start_command

async def run():
    folder = Path(sys.argv[1])
    command = start_command(sys.argv[2], folder, os.environ, Collector(lambda: folder / "log"), folder / "running")
    print(command.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(run())
"""


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def killed(folder: Path, command: str, seconds: str, sleepers: int = 1) -> None:
    """Have a process start a command, and kill it without a chance to clean up; and the launcher, which would.

    So many processes of the command sleep before.
    """
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder), command], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    launcher = int(owner.stdout.readline())
    wait_for(lambda: len(named(f"sleep\0{seconds}\0")) == sleepers)
    owner.send_signal(signal.SIGSTOP)
    os.kill(launcher, signal.SIGKILL)
    owner.kill()
    owner.communicate()


def named(mark: str) -> list[int]:
    """Return the live processes in whose arguments a word stands."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes() and is_listed(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("command", "sleepers"),
    [
        ("sleep {n}", 1),
        ("sleep {n} & sleep {n}; true", 2),
        ("(trap '' TERM; sleep {n}; sleep {n}) & exec sleep {n}", 2),
        ("env -i sleep {n}; true", 1),
        ("nohup sleep {n} >/dev/null 2>&1 & sleep {n}", 2),
    ],
)
def test_s6_what_survived_is_named_and_ended_with_its_children(tmp_path, command, sleepers):
    seconds = f"30{os.getpid()}.5"
    killed(tmp_path, command.format(n=seconds), seconds, sleepers)
    assert named(seconds)
    (left,) = end_left_commands(tmp_path / "running")
    assert left.ended
    assert seconds in left.command
    assert named(seconds) == []
    (line,) = describe_left([left])
    assert seconds in line
    assert str(left.pid) in line
    assert end_left_commands(tmp_path / "running") == []
    assert list((tmp_path / "running").iterdir()) == []


def test_s6_the_shell_is_gone_and_its_child_lives(tmp_path):
    seconds = f"31{os.getpid()}.5"
    killed(tmp_path, f"sleep {seconds} & echo", seconds)
    (left,) = end_left_commands(tmp_path / "running")
    assert left.ended
    assert named(seconds) == []


def test_s6_what_went_its_own_way_is_let_go(tmp_path):
    seconds = f"32{os.getpid()}.5"
    killed(tmp_path, f"setsid sleep {seconds} & sleep 0.1", seconds)
    try:
        wait_for(lambda: len(named(seconds)) == 1)
        end_left_commands(tmp_path / "running")
        assert named(seconds)
    finally:
        for pid in named(seconds):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_s6_killed_before_its_process_was_written_down_it_is_found_by_its_word(tmp_path):
    seconds = f"33{os.getpid()}.5"
    killed(tmp_path, f"sleep {seconds} & sleep {seconds}", seconds, 2)
    (path,) = (tmp_path / "running").iterdir()
    first, _, second = path.read_bytes().partition(b"\n")
    for cut in (b"", b"\n", b"\n" + second[:5]):
        path.write_bytes(first + cut)
        assert left_running._read(path)[1] is None
    (left,) = end_left_commands(tmp_path / "running")
    assert left.ended
    assert named(seconds) == []


@pytest.fixture
def stranger():
    """A process of somebody else, in a session of its own."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("ticks", [0, 1, -1])
def test_s6_a_process_that_has_the_number_of_ours_is_left_alone(tmp_path, stranger, ticks):
    record = RunningRecord(tmp_path, "sleep 303")
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(msgspec.json.encode(left_running._Running(stranger.pid, ticks)) + b"\n")
    assert end_left_commands(tmp_path) == []
    assert stranger.poll() is None
    record.remove()


def test_s6_nothing_of_before_a_start_of_the_machine_is_ours(tmp_path, stranger, monkeypatch):
    monkeypatch.setattr(left_running, "boot_id", lambda: "another start")
    RunningRecord(tmp_path, "sleep 303").started(stranger.pid)
    monkeypatch.undo()
    assert end_left_commands(tmp_path) == []
    assert stranger.poll() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"\0" * 60, b"{}", b"[]\n[]", b'{"word":1}', b"\xff\xfe"])
def test_s6_a_damaged_record_harms_nothing(tmp_path, data):
    (tmp_path / "x.json").write_bytes(data)
    assert end_left_commands(tmp_path) == []
    assert end_left_commands(tmp_path / "nothing") == []


def test_s6_where_environments_cannot_be_read_the_start_time_decides(tmp_path, monkeypatch, stranger):
    if started_at(os.getpid()) is None:
        pytest.skip("ps is not installed")
    monkeypatch.setattr(left_running, "_PROC", tmp_path / "none")
    record = RunningRecord(tmp_path, "sleep 600")
    record.started(stranger.pid)
    (left,) = end_left_commands(tmp_path)
    assert left.pid == stranger.pid
    stranger.wait(30)


def test_s6_where_environments_cannot_be_read_another_start_time_is_a_stranger(tmp_path, monkeypatch, stranger):
    monkeypatch.setattr(left_running, "_PROC", tmp_path / "none")
    monkeypatch.setattr(left_running.time, "time", lambda: 1_700_000_000.0)
    RunningRecord(tmp_path, "sleep 600").started(stranger.pid)
    monkeypatch.undo()
    monkeypatch.setattr(left_running, "_PROC", tmp_path / "none")
    assert end_left_commands(tmp_path) == []
    assert stranger.poll() is None


async def test_s6_a_command_that_ends_leaves_no_record_and_one_that_runs_has_one(tmp_path):
    running = tmp_path / "running"
    log = tmp_path / "log"
    done = start_command("echo done", tmp_path, os.environ, Collector(lambda: log), running)
    await asyncio.wait_for(done.exited, 60)
    await asyncio.wait_for(done.drained.wait(), 60)
    assert list(running.iterdir()) == []
    job = start_command(
        "sleep 600 & exec >/dev/null 2>&1; sleep 600", tmp_path, os.environ, Collector(lambda: log), running
    )
    assert len(list(running.iterdir())) == 1
    assert session_members(job.pid)
    assert start_ticks(job.pid)
    await job.end()
    job.close()
    assert list(running.iterdir()) == []


async def test_s6_a_disk_that_takes_no_record_stops_no_command(tmp_path):
    (tmp_path / "running").write_text("in the way")
    command = start_command("exit 7", tmp_path, os.environ, Collector(lambda: tmp_path / "log"), tmp_path / "running")
    assert await asyncio.wait_for(command.exited, 60) == 7


def test_s6_the_variable_is_one_that_no_setting_has():
    assert "__" not in VARIABLE
