"""Whatever a command started is gone when its time is over, also where Tenuto is killed without a word."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.sandbox.places import KINDS, need
from tests.program import PYTHON, TENUTO

OWNER = """
import asyncio, os, sys
from pathlib import Path
from tenuto.config.settings import SandboxSettings
from tenuto.tool.process.process import Collector, start_command
from tenuto.tool.run.confining import make_sandbox

async def run():
    folder, kind, line = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    confined = None
    if kind != "none":
        sandbox = make_sandbox(SandboxSettings(kind=kind), folder / "work", folder / "home", wanted=True)
        confined = sandbox.confine(folder / "work", os.environ, strict=False)
    command = start_command(
        line, folder / "work", os.environ, Collector(lambda: folder / "log"), folder / "running", confined=confined
    )
    command.exited.add_done_callback(lambda _: print("exited", flush=True))
    await asyncio.to_thread(sys.stdin.readline)
    await command.end()
    print("ended", flush=True)
    await asyncio.sleep(600)

asyncio.run(run())
"""
WAYS = {
    "plain": "sleep {n}",
    "background": "sleep {n} & sleep {n}",
    "setsid": "setsid sleep {n} & sleep {n}",
    "setsid without an environment": "env -i setsid sleep {n} & sleep {n}",
    "nohup": "nohup sleep {n} >/dev/null 2>&1 & sleep {n}",
    "double fork": "python3 -c 'import os, time\n"
    "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  os.closerange(0, 9)\n"
    '  os.execvp("sleep", ["sleep", "{n}"])\n'
    "' & sleep {n}",
    "ignores signals": "trap '' TERM HUP INT; (trap '' TERM; sleep {n}) & sleep {n}",
    "asks the supervisor all the time": "sh -c 'while :; do chmod 700 .; done' {n} & sleep {n}",
    "the shell is gone": "setsid sleep {n} >/dev/null 2>&1 &",
}
PATIENCE = 120.0
"""Seconds; a hang guard, not a measure."""


def named(mark: str) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            state = (path / "stat").read_text().rpartition(") ")[2][0]
        except OSError:
            continue
        if mark.encode() in words and state not in "ZX":
            found.append(int(path.name))
    return found


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill(mark: str) -> None:
    for pid in named(mark):
        with contextlib.suppress(ProcessLookupError):  # it may be about to end
            os.kill(pid, signal.SIGKILL)


def start(tmp_path: Path, kind: str, way: str, mark: str) -> subprocess.Popen[bytes]:
    """Start a process that has started a command, of which all is running, or nothing any more."""
    if kind != "none":
        need(kind)
    if not Path("/proc/self/stat").exists():
        pytest.skip("looks at /proc")
    (tmp_path / "work").mkdir()
    line = WAYS[way].replace("{n}", mark)
    owner = subprocess.Popen(
        [PYTHON, "-c", OWNER, str(tmp_path), kind, line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    said = [owner.stdout]
    wait_until(lambda: len(named(mark)) == WAYS[way].count("{n}") or select.select(said, [], [], 0)[0])
    return owner


@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("way", WAYS)
def test_s10_kill_9_leaves_nothing(tmp_path, kind, way):
    mark = f"77{os.getpid()}.{list(WAYS).index(way)}{['none', *KINDS].index(kind)}"
    owner = start(tmp_path, kind, way, mark)
    try:
        assert named(mark) or (kind == "bubblewrap" and way == "the shell is gone")
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
        wait_until(lambda: not named(mark))
    finally:
        owner.kill()
        owner.communicate()
        kill(mark)


@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("way", WAYS)
def test_r078_an_ended_command_leaves_nothing(tmp_path, kind, way):
    mark = f"78{os.getpid()}.{list(WAYS).index(way)}{['none', *KINDS].index(kind)}"
    owner = start(tmp_path, kind, way, mark)
    try:
        assert owner.stdin is not None and owner.stdout is not None
        owner.stdin.write(b"end\n")
        owner.stdin.flush()
        while owner.stdout.readline() != b"ended\n":
            assert owner.poll() is None
        wait_until(lambda: not named(mark))
    finally:
        owner.kill()
        owner.communicate()
        kill(mark)


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock", "none"])
def test_s10_kill_9_of_a_whole_run_leaves_nothing(tmp_path, sandbox):
    from tests.server import Call, Reply, ServerThread

    if sandbox != "none":
        need(sandbox)
    (tmp_path / "work").mkdir()
    mark = f"79{os.getpid()}.{len(sandbox)}"
    line = f"env -i setsid sleep {mark} & setsid sleep {mark} & sleep {mark}"
    with ServerThread([Reply(tool_calls=[Call("bash", {"command": line})]), Reply("done")]) as server:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        environ |= {"TENUTO_SANDBOX__KIND": "auto" if sandbox == "none" else sandbox, **server.environ()}
        words = [*TENUTO, "-p", "go", "--mode", "auto", "--model", "openai-chat/test"]
        more = ["--no-sandbox"] if sandbox == "none" else []
        run = subprocess.Popen(
            [*words, *more],
            cwd=tmp_path / "work",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: len(named(mark)) == 3)
            run.send_signal(signal.SIGKILL)
            run.wait()
            wait_until(lambda: not named(mark))
        finally:
            run.kill()
            run.wait()
            kill(mark)
