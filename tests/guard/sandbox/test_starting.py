"""One process forks what stands over commands: each finds Tenuto as it is now, and nothing of another command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenuto.guard.sandbox.launching import starting
from tenuto.guard.sandbox.limits import command_group
from tenuto.tool.process.left_running import tree_members
from tenuto.tool.process.process import Collector, CommandLimits, start_command
from tests.guard.sandbox.places import KINDS, places

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
PATIENCE = 60.0


async def run(folder: Path, line: str, environ: dict[str, str] | None = None, **how) -> str:
    """Run a line plainly; return its exit code and its output."""
    command = start_command(line, folder, environ or dict(os.environ), Collector(None), folder / "running", **how)
    try:
        code = await asyncio.wait_for(command.exited, PATIENCE)
        await command.settle()
        return f"{code} {command.collector.kept.decode()}"
    finally:
        await command.end()
        command.close()


def starters() -> list[int]:
    """Return the processes below this one that wait for commands."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            facts = (path / "stat").read_text().rpartition(") ")[2].split()
            if int(facts[1]) == os.getpid() and facts[0] != "Z" and b"starter.py" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists() and (Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(autouse=True)
def _own_starter() -> Iterator[None]:
    starting.close_starters()
    yield
    starting.close_starters()


async def test_one_process_waits_however_many_commands_there_are_and_closing_ends_it(tmp_path):
    assert starters() == []
    for number in range(3):
        assert await run(tmp_path, f"echo {number}") == f"0 {number}\n"
    (one,) = starters()
    starting.close_starters()
    assert gone(one)
    assert await run(tmp_path, "echo again") == "0 again\n"
    assert starters() not in ([], [one])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_when_it_dies_alone_the_next_command_works_and_those_that_run_go_on(tmp_path, number):
    slow = start_command(
        "while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3",
        *(tmp_path, os.environ, Collector(None), tmp_path / "running"),
    )
    try:
        (one,) = starters()
        os.kill(one, number)
        assert gone(one)
        assert await run(tmp_path, "echo next") == "0 next\n"
        (tmp_path / "go").touch()
        assert await asyncio.wait_for(slow.exited, PATIENCE) == 3
        await slow.settle()
        assert slow.collector.kept == b"done\n"
    finally:
        await slow.end()
        slow.close()


async def test_one_that_does_not_answer_is_left_and_its_command_never_runs_later(tmp_path):
    await run(tmp_path, "true")
    (one,) = starters()
    starting._starters[0]._channel.settimeout(0.3)
    os.kill(one, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        await run(tmp_path, "touch late")
    assert gone(one)
    assert await run(tmp_path, "echo next; ls late 2>/dev/null") == "2 next\n"


async def test_one_that_is_killed_at_any_moment_loses_no_command_and_runs_none_twice(tmp_path):
    def kill() -> None:
        while not done.is_set():
            for one in starters():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            done.wait(0.02)

    done = threading.Event()
    killer = threading.Thread(target=kill)
    killer.start()
    refused = 0
    try:
        for number in range(40):
            try:
                await run(tmp_path, f"echo {number} >> log")
            except OSError:
                refused += 1
    finally:
        done.set()
        killer.join()
    ran = (tmp_path / "log").read_text().split() if (tmp_path / "log").exists() else []
    assert len(set(ran)) == len(ran)
    assert len(ran) >= 40 - refused
    assert await run(tmp_path, "echo goes on") == "0 goes on\n"


async def test_a_command_of_which_nobody_will_hear_is_ended(tmp_path):
    seen, status = os.pipe()
    reading, output = os.pipe()
    words = ["/bin/sh", "-c", "setsid sleep 600 & echo; sleep 600"]
    environ = dict(os.environ)
    order = starting.Order(words=words, environ=environ, cwd="/", status=status, output=output, errors=output)
    launcher = starting.launch(order)
    try:
        os.close(status)
        assert os.read(reading, 9)
        below = tree_members(launcher.pid)
        assert len(below) >= 3
        os.close(seen)
        assert all(gone(one) for one in below)
    finally:
        for descriptor in (reading, output):
            os.close(descriptor)
        for one in tree_members(launcher.pid):
            os.kill(one, signal.SIGKILL)


def ignored() -> Callable[[], object]:
    old = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    return lambda: signal.signal(signal.SIGUSR2, old)


def masked() -> Callable[[], object]:
    old = os.umask(0o027)
    return lambda: os.umask(old)


def limited() -> Callable[[], object]:
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (old[0] - 1, old[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, old)


def bound() -> Callable[[], object]:
    old = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(old)})
    return lambda: os.sched_setaffinity(0, old)


CHANGES: dict[str, tuple[Callable[[], Callable[[], object]], str]] = {
    "umask": (masked, "umask"),
    "limit of files": (limited, "ulimit -n"),
    "processors": (bound, "cat /proc/self/status | grep Cpus_allowed"),
    "ignored signals": (ignored, "kill -USR2 $$; echo lives"),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_what_tenuto_leaves_to_its_children_is_as_it_is_now(tmp_path, what):
    change, line = CHANGES[what]
    before = await run(tmp_path, line)
    change_back = change()
    try:
        now = await run(tmp_path, line)
        ours = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False).stdout
    finally:
        change_back()
    assert now.partition(" ")[2] == ours
    assert now != before
    assert await run(tmp_path, line) == before


async def test_environment_folder_and_streams_are_each_commands_own(tmp_path):
    (tmp_path / "inner").mkdir()
    show = "echo $ONE $TWO; pwd"
    base = {"PATH": os.environ["PATH"]}
    assert await run(tmp_path, show, {**base, "ONE": "1"}) == f"0 1\n{tmp_path}\n"
    assert await run(tmp_path / "inner", show, {**base, "TWO": "2"}) == f"0 2\n{tmp_path}/inner\n"
    (tmp_path / "given").write_text("from a file")
    with (tmp_path / "given").open("rb") as given:
        assert await run(tmp_path, "cat", base, reads=given.fileno()) == "0 from a file"
    assert await run(tmp_path, "cat; tty", base) == "1 not a tty\n"
    with pytest.raises(FileNotFoundError, match="missing"):
        start_command("true", tmp_path / "missing", base, Collector(None), tmp_path / "running")
    assert list((tmp_path / "running").iterdir()) == []
    (tmp_path / "moved").mkdir()
    first = await run(tmp_path / "moved", "umask 077; ulimit -n 99; cd /; export ONE=x; trap '' TERM; echo $$", base)
    assert first.startswith("0 ")
    lines = "umask; ulimit -n; pwd; echo [$ONE]; trap"
    assert await run(tmp_path, lines, base) == await run(tmp_path, lines, base)
    assert "[]" in await run(tmp_path, lines, base)


async def test_a_command_has_no_descriptor_but_its_own_and_leads_a_session(tmp_path):
    line = "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]* -> .*\\)/\\1/p'; ps -o sid= -p $$; ps -o tty= -p $$"
    code, _, text = (await run(tmp_path, line)).partition(" ")
    assert code == "0"
    listed = [each.split(" -> ") for each in text.splitlines() if " -> " in each]
    assert {int(number) for number, _ in listed} == {0, 1, 2, 3}  # the last one is of `ls` itself
    assert not any("socket" in place for _, place in listed)
    session, terminal = text.split()[-2:]
    assert int(session) not in (os.getsid(0), starters()[0])
    assert terminal == "?"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_held_command_has_no_descriptor_but_its_own(kind):
    with places(kind) as made:
        _, text = await made.run("echo /proc/self/fd/*")
        assert {int(Path(word).name) for word in text.split() if "/fd/" in word} <= {0, 1, 2, 3}


async def test_what_waits_has_nothing_of_a_command_and_nothing_that_leads_to_tenuto(tmp_path):
    await run(tmp_path, "echo", {"PATH": os.environ["PATH"], "SOME_KEY": "canary-7f3a"})
    (one,) = starters()
    if os.geteuid():  # root alone may look
        with pytest.raises(PermissionError):
            os.listdir(f"/proc/{one}/fd")
        return
    held = {os.readlink(path) for path in Path(f"/proc/{one}/fd").iterdir()}
    assert not any(str(tmp_path) in place for place in held)
    assert len(held) <= 3  # nothing, the channel, the pipe that closes with Tenuto
    assert os.readlink(f"/proc/{one}/cwd") == "/"
    assert b"canary" not in Path(f"/proc/{one}/environ").read_bytes()
    assert os.getsid(one) == one
    children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
    assert children == []  # no ended one is left either


@pytest.mark.parametrize("kind", KINDS)
async def test_no_held_command_reaches_what_starts_commands(kind):
    with places(kind) as made:
        await made.run("true")
        (one,) = starters()
        for line in (
            f"cat /proc/{one}/mem > /dev/null",
            f"cat /proc/{one}/environ && ls -l /proc/{one}/fd",
            f"echo x > /proc/{one}/fd/3",
            f"kill -9 {one}",
            'python3 -c "import ctypes, os; '
            f'raise SystemExit(ctypes.CDLL(None).syscall(438, os.pidfd_open({one}), 3, 0) == -1)"',
        ):
            result, text = await made.run(line)
            assert result.is_error, (line, text)
        assert starters() == [one]


@pytest.mark.skipif(not command_group(200), reason="no control groups here")
async def test_a_command_counts_where_its_limits_say_whatever_the_one_before_it_had(tmp_path):
    for processes in (0, 200, 200, 0, 200):
        text = await run(tmp_path, "cat /proc/self/cgroup", limits=CommandLimits(processes=processes))
        assert (f"tenuto-{os.getpid()}" in text) == (processes == 200)
    assert len(starters()) == 1


async def test_commands_of_many_threads_get_what_is_theirs(tmp_path):
    found: dict[int, str] = {}

    def work(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        found[number] = asyncio.run(run(folder, f"cat /dev/null; pwd; exit {number}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {number: f"{number} {tmp_path / str(number)}\n" for number in range(8)}
    assert len(starters()) == 1


OWNER = """
import asyncio, os, sys
from pathlib import Path
from tenuto.tool.process.process import Collector, start_command

async def run():
    folder = Path(sys.argv[1])
    command = start_command("true", folder, os.environ, Collector(None), folder / "running")
    await command.exited
    print(open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read(), flush=True)
    if len(sys.argv) > 2:
        return
    await asyncio.sleep(600)

asyncio.run(run())
"""


@pytest.mark.parametrize("way", ["killed", "terminated", "ended"])
def test_s10_what_waits_is_gone_with_tenuto(tmp_path, way):
    words = [sys.executable, "-c", OWNER, str(tmp_path), *(["end"] if way == "ended" else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as owner:
        try:
            assert owner.stdout is not None
            waiting = [int(word) for word in owner.stdout.readline().split()]
            assert waiting
            match way:
                case "killed":
                    owner.kill()
                case "terminated":
                    owner.terminate()
                case _:
                    pass
            _, errors = owner.communicate(timeout=PATIENCE)
            assert all(gone(one) for one in waiting)
            assert errors == b""
        finally:
            owner.kill()


def test_a_fork_of_tenuto_starts_commands_by_a_process_of_its_own(tmp_path):
    assert asyncio.run(run(tmp_path, "echo one")) == "0 one\n"
    before = starters()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if asyncio.run(run(tmp_path, "echo two")) == "0 two\n" else 2
            starting.close_starters()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert starters() == before
    assert asyncio.run(run(tmp_path, "echo three")) == "0 three\n"
