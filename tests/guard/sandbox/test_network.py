"""The network that the commands of one session share: what it joins, what it keeps apart, what is left of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tenuto.guard.sandbox.machine import find_machine
from tenuto.guard.sandbox.network.namespace import open_network, why_no_network
from tests.guard.sandbox.places import KINDS, Places, need, places

SERVER = (
    "python3 -u -c \"import http.server as h; s = h.HTTPServer(('127.0.0.1', {port}), h.SimpleHTTPRequestHandler); "
    "print('serves', s.server_port); s.serve_forever()\""
)
ASK = (
    'python3 -c "import urllib.request as u; '
    "print(u.build_opener(u.ProxyHandler({{}})).open('http://127.0.0.1:{port}/keep', timeout=5).read())\""
)


def need_shared() -> None:
    """Skip with the reason where commands of a session cannot share a network."""
    need("bubblewrap")
    fault = why_no_network(find_machine("bubblewrap").detail)
    if fault:
        pytest.skip(f"commands of a session cannot share a network here: {fault}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def serve(made: Places, port: int) -> None:
    """Start a server as a background job of the model."""
    result = await made.bench.call("bash", command=SERVER.format(port=port), background=True)
    assert not result.is_error
    (job,) = made.bench.context.jobs.running()
    async with asyncio.timeout(20):
        while "serves" not in job.process.collector.text(1000, 10).text:
            await asyncio.sleep(0.02)


async def test_a_server_of_a_job_is_reached_by_the_next_command_and_from_nowhere_else():
    need_shared()
    port = free_port()
    with places("bubblewrap") as made, places("bubblewrap") as other:
        try:
            await serve(made, port)
            result, text = await made.run(ASK.format(port=port))
            assert not result.is_error, text
            assert "b'a\\n'" in text
            result, text = await other.run(ASK.format(port=port))
            assert result.is_error
            assert "nothing of the user's own" in text, "the model is told what 127.0.0.1 is"
            await serve(other, port)  # the port is free in every session
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
        finally:
            await made.bench.context.jobs.close()
            await other.bench.context.jobs.close()


async def test_what_listens_on_this_machine_is_not_reached_from_a_session_that_shares_a_network():
    need_shared()
    with places("bubblewrap") as made, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0)
        await made.run("true")
        for host in ("127.0.0.1", "::1", "0.0.0.0", "10.0.0.1"):
            line = (
                f"python3 -c \"import socket; socket.create_connection(('{host}', {listening.getsockname()[1]}), 3)\""
            )
            result, _ = await made.run(line)
            assert result.is_error, host
        with pytest.raises(BlockingIOError):
            listening.accept()


async def test_under_landlock_there_is_no_loopback_and_the_model_is_told():
    need("landlock")
    with places("landlock", domains=("example.org",)) as made:
        result, text = await made.run(SERVER.format(port=free_port()))
        assert result.is_error
        assert "there is no network, not even to this machine" in text


async def test_abstract_sockets_are_the_sessions_own():
    need_shared()
    name = f"tenuto-test-{os.getpid()}"
    listen = f"s.bind(chr(0) + '{name}'); s.listen(); print('serves', flush=True); time.sleep(600)"
    with places("bubblewrap") as made, places("bubblewrap") as other:
        head = 'python3 -c "import socket, time; s = socket.socket(socket.AF_UNIX); '
        try:
            await made.bench.call("bash", command=f'{head}{listen}"', background=True)
            (job,) = made.bench.context.jobs.running()
            async with asyncio.timeout(20):
                while "serves" not in job.process.collector.text(1000, 10).text:
                    await asyncio.sleep(0.02)
            line = f"{head}s.connect(chr(0) + '{name}')\""
            assert not (await made.run(line))[0].is_error
            assert (await other.run(line))[0].is_error
        finally:
            await made.bench.context.jobs.close()


async def test_processes_of_another_command_are_not_seen_through_the_shared_network():
    need_shared()
    with places("bubblewrap") as made:
        try:
            await serve(made, free_port())
            _, text = await made.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; kill -9 -1; true")
            assert "HTTPServer" not in text
            assert len(made.bench.context.jobs.running()) == 1
        finally:
            await made.bench.context.jobs.close()


@pytest.mark.parametrize("domains", [(), ("example.org",)])
async def test_a_command_has_no_descriptor_of_the_network(domains):
    need_shared()
    with places("bubblewrap", domains=domains) as made:
        _, text = await made.run("sh -c 'ls -l /proc/$$/fd /proc/1/fd'")
        assert "net:[" not in text
        assert "user:[" not in text
        assert "socket:" not in text


@pytest.mark.parametrize("kind", KINDS)
async def test_what_only_reads_has_a_network_with_nothing_in_it(kind):
    with places(kind, domains=("example.org",)) as made:
        sandbox = made.bench.context.sandbox
        assert sandbox is not None
        strict = sandbox.confine(made.work, made.bench.context.environ, strict=True)
        strict.close()
        assert not strict.policy.loopback
        assert strict.policy.domains == ()
        assert strict.namespaces == ()
        assert "HTTPS_PROXY" not in strict.environ


async def test_where_a_network_cannot_be_shared_each_command_has_its_own(monkeypatch, tmp_path):
    need("bubblewrap")

    def refuse(_program: str, *, listens: bool) -> object:
        raise OSError(f"not here ({listens})")

    monkeypatch.setattr("tenuto.guard.sandbox.network.namespace.open_network", refuse)
    port = free_port()
    with places("bubblewrap", domains=("example.org",)) as made:
        try:
            await serve(made, port)
            result, text = await made.run(ASK.format(port=port))
            assert result.is_error
            assert "there is no network, not even to this machine" in text
            line = f"({SERVER.format(port=port)} & echo $! > pid; sleep 1; {ASK.format(port=port)}; kill $(cat pid))"
            _, text = await made.run(line)
            assert "b'a\\n'" in text
        finally:
            await made.bench.context.jobs.close()


def test_a_machine_that_shares_none_has_a_reason():
    if not shutil.which("false"):
        pytest.skip("there is no program false")
    assert "exit code" in why_no_network(shutil.which("false") or "")
    assert why_no_network("/nonexistent/bwrap")


def test_a_network_that_cannot_be_entered_is_none(tmp_path):
    """As with a bubblewrap that belongs to root and has its rights: it makes what its user may not enter."""
    need_shared()
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\ncase "$1" in --unshare-net) shift 5; exec "$@" ;; *) exit 3 ;; esac\n')
    program.chmod(0o755)
    before = set(os.listdir("/proc/self/fd"))
    assert why_no_network(str(program)) == "exit code 3"
    assert set(os.listdir("/proc/self/fd")) <= before


HOLDER = """
import asyncio, os, sys
from pathlib import Path
from tenuto.config.settings import SandboxSettings
from tenuto.tool.process.process import Collector, start_command
from tenuto.tool.run.confining import make_sandbox

async def run(folder, line):
    wishes = SandboxSettings(kind="bubblewrap", domains=("example.org",))
    sandbox = make_sandbox(wishes, folder / "work", folder / "home", wanted=True)
    for each in ("readlink /proc/self/ns/net", line):
        confined = sandbox.confine(folder / "work", os.environ, strict=False)
        collector = Collector(lambda: folder / "log")
        command = start_command(each, folder / "work", os.environ, collector, folder / "running", confined=confined)
        await asyncio.wait({command.exited}, timeout=5)
        await command.settle()
        print(collector.text(1000, 9).text.strip(), flush=True)
    if "stay" in sys.argv:
        await asyncio.sleep(600)
    sandbox.close()

folder = Path(sys.argv[1])
asyncio.run(run(folder, sys.argv[2]))
"""


def in_network(name: str) -> list[str]:
    """Return what is in a network, or has a descriptor of it."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        for path in (process / "ns" / "net", *_list(process / "fd")):
            try:
                if os.readlink(path) == name:
                    found.append(str(path))
            except OSError:
                continue
    return found


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def test_kill_9_leaves_nothing_of_the_network(tmp_path):
    need_shared()
    (tmp_path / "work").mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), "echo begun; setsid sleep 600 & sleep 600", "stay"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert owner.stdout is not None
        network = owner.stdout.readline().strip()
        assert network.startswith("net:[")
        assert owner.stdout.readline().strip() == "begun"
        assert in_network(network)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        deadline = time.monotonic() + 120
        while in_network(network) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert in_network(network) == []
    finally:
        owner.kill()
        owner.communicate()


def test_a_user_without_rights_has_one_too(tmp_path):
    """Where tests run as root: in a user namespace, in which this user is another one and has no capability."""
    need_shared()
    if os.geteuid() != 0:
        pytest.skip("whoever runs this is such a user: every test here is about one")
    lowly = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    if subprocess.run([*lowly, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine has no user namespaces, or no unshare that knows --map-user")
    (tmp_path / "work").mkdir()
    line = "python3 -c \"import socket; socket.create_server(('127.0.0.1', 8000)); print('listens', end=' ')\"; id -u"
    ran = subprocess.run(
        [*lowly, sys.executable, "-c", HOLDER, str(tmp_path), line], capture_output=True, text=True, check=True
    )
    network, said = ran.stdout.splitlines()
    assert network not in {"", os.readlink("/proc/self/ns/net")}
    assert said == "listens 1000"


def test_closing_lets_go_of_every_descriptor():
    need_shared()
    before = set(os.listdir("/proc/self/fd"))
    for listens in (False, True):
        network = open_network(find_machine("bubblewrap").detail, listens=listens)
        assert bool(network.port) is listens
        network.close()
        with pytest.raises(OSError, match="closed"):
            network.copies()
    assert set(os.listdir("/proc/self/fd")) <= before
