"""Whatever a command started is gone when its time is over, also where Tenuto is killed without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.guard.sandbox.places import KINDS, need

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
    await asyncio.wait({command.exited}, timeout=0.7)
    print("started", flush=True)
    if len(sys.argv) > 4:
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
SECONDS = 3.0


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


def gone_in_time(mark: str) -> bool:
    deadline = time.monotonic() + SECONDS * 4  # a machine under load
    while named(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def start(tmp_path: Path, kind: str, way: str, mark: str, *more: str) -> subprocess.Popen[bytes]:
    if kind != "none":
        need(kind)
    if not Path("/proc/self/stat").exists():
        pytest.skip("looks at /proc")
    (tmp_path / "work").mkdir()
    line = WAYS[way].replace("{n}", mark)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), kind, line, *more], stdout=subprocess.PIPE, start_new_session=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"started\n"
    return owner


@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("way", WAYS)
def test_s10_kill_9_leaves_nothing(tmp_path, kind, way):
    mark = f"77{os.getpid()}.{list(WAYS).index(way)}{['none', *KINDS].index(kind)}"
    owner = start(tmp_path, kind, way, mark)
    assert named(mark) or (kind == "bubblewrap" and way == "the shell is gone")
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    try:
        assert gone_in_time(mark)
    finally:
        for pid in named(mark):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("way", WAYS)
def test_r078_an_ended_command_leaves_nothing(tmp_path, kind, way):
    mark = f"78{os.getpid()}.{list(WAYS).index(way)}{['none', *KINDS].index(kind)}"
    owner = start(tmp_path, kind, way, mark, "end")
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ended\n"
        assert gone_in_time(mark)
    finally:
        owner.kill()
        owner.communicate()
        for pid in named(mark):
            os.kill(pid, signal.SIGKILL)


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
        words = [sys.executable, "-m", "tenuto", "-p", "go", "--mode", "auto", "--model", "openai-chat/test"]
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
            deadline = time.monotonic() + 60
            while len(named(mark)) < 3 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(named(mark)) == 3
            run.send_signal(signal.SIGKILL)
            run.wait()
            assert gone_in_time(mark)
        finally:
            run.kill()
            run.wait()
            for pid in named(mark):
                os.kill(pid, signal.SIGKILL)
