"""What a command in the sandbox cannot read, reach or become."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.guard.sandbox.places import KINDS, SECRET, SECRET_FILES, places

WEAKER = {
    "landlock": {
        "setsid": "Landlock has no process namespace: what calls setsid is ended by the launcher (test_ending)",
        "other processes": "Landlock has no process namespace: names of other programs can be seen, nothing of them",
    }
}
"""What a kind does not promise, and why; docs/security.md says the same."""


def skip_weaker(kind: str, what: str) -> None:
    reason = WEAKER.get(kind, {}).get(what)
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("kind", KINDS)
async def test_s22_no_secret_place_can_be_read(kind):
    assert len(SECRET_FILES) >= 12
    with places(kind) as made:
        (made.own_home / "auth.json").write_text(SECRET)
        for path in (*(made.home / name for name in SECRET_FILES), made.own_home / "auth.json"):
            for line in (
                f"cat {path}",
                f"head -c 9 {path}",
                f"grep -r . {path.parent}; false",
                f"cp {path} copied; cat copied",
            ):
                result, text = await made.run(line)
                assert SECRET not in text, line
                assert result.is_error, line
        for line in (
            f"ln -s {made.home} h; cat h/.netrc",
            "find ~ -type f -exec cat {} + | grep -a canary",
            "tar -cf - ~ 2>/dev/null | grep -a canary",
        ):
            _, text = await made.run(line)
            assert SECRET not in text, line


@pytest.mark.parametrize("folder", ["skills", "plugins"])
@pytest.mark.parametrize("kind", KINDS)
async def test_s22_scripts_of_the_users_own_skills_run_and_the_rest_of_the_home_stays_hidden(kind, folder):
    with places(kind) as made:
        script = made.own_home / folder / "notes" / "scripts" / "collect.sh"
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\necho collected\n")
        script.chmod(0o755)
        (made.own_home / "auth.json").write_text(SECRET)
        result, text = await made.run(f"{script}; cat {made.own_home}/auth.json; echo x > {script.parent}/more.sh")
        assert "collected" in text
        assert SECRET not in text
        assert result.is_error
        assert not (script.parent / "more.sh").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_full_outputs_that_the_model_is_pointed_to_can_be_read(kind):
    with places(kind) as made:
        made.bench.context.outputs.mkdir(parents=True, exist_ok=True)
        (made.bench.context.outputs / "x.txt").write_text("all of it")
        _, text = await made.run(f"cat {made.bench.context.outputs / 'x.txt'}")
        assert "all of it" in text


@contextmanager
def listening(family: int, address: object) -> Iterator[list[object]]:
    """Listen, and note who came."""
    came: list[object] = []
    server = socket.socket(family)
    server.bind(address)
    server.listen()

    def accept() -> None:
        while True:
            try:
                came.append(server.accept())
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield came
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


CONNECT = (
    "python3 -c \"import socket; s = socket.socket({family}); s.settimeout(5); s.connect({address}); print('in')\""
)


@pytest.mark.parametrize("kind", KINDS)
async def test_s22_no_connection_leaves(kind, tmp_path):
    with places(kind) as made:
        port = socket.socket()
        port.bind(("127.0.0.1", 0))
        number = port.getsockname()[1]
        port.close()
        unix = str(made.outside / "agent.sock")
        for family, address, word in (
            (socket.AF_INET, ("127.0.0.1", number), repr(("127.0.0.1", number))),
            (socket.AF_UNIX, unix, repr(unix)),
            (socket.AF_UNIX, f"\0tenuto-test-{os.getpid()}", f"chr(0) + 'tenuto-test-{os.getpid()}'"),
        ):
            with listening(family, address) as came:
                result, text = await made.run(CONNECT.format(family=int(family), address=word.replace('"', "'")))
                assert result.is_error, word
                assert "in\n" not in text
                assert came == []
        _, text = await made.run("getent hosts example.org || exit 1")
        assert "sandbox may have blocked" in text or result.is_error


@pytest.mark.parametrize("kind", KINDS)
async def test_no_way_to_agents_is_in_the_environment(kind):
    with places(kind) as made:
        context = made.bench.context
        context.environ = {
            **context.environ,
            "SSH_AUTH_SOCK": "/x",
            "DBUS_SESSION_BUS_ADDRESS": "unix:/x",
            "DOCKER_HOST": "y",
        }
        _, text = await made.run("env | grep -E '^(SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS|DOCKER_HOST)'")
        assert "=/x" not in text
        assert "=unix" not in text
        assert "=y" not in text


# None of these changes anything of the machine where it does not fail: a file is opened and not written.
PROBES = {
    "environment of the first process": "tr '\\0' '\\n' < /proc/1/environ | grep TENUTO_TEST_OUTER",
    "environment of the parent": "cat /proc/{owner}/environ | tr '\\0' '\\n' | grep TENUTO_TEST_OUTER",
    "memory of the parent": "head -c 1 /proc/{owner}/mem",
    "tracing": 'python3 -c "import ctypes; c = ctypes.CDLL(None); print(c.ptrace(16, {owner}, 0, 0)); '
    'raise SystemExit(c.ptrace(16, {owner}, 0, 0) != 0)"',
    "signals": "kill -0 {owner} && kill -WINCH {owner}",
    "mount": "mount -t tmpfs x /mnt || mount --bind /tmp /mnt",
    "user namespace": "unshare -U true || unshare -Ur true",
    "mount namespace": "unshare -m true",
    "clone with a user namespace": 'python3 -c "import ctypes; '
    'raise SystemExit(ctypes.CDLL(None).syscall({clone}, 0x10000011, 0, 0, 0, 0) == -1)"',
    "keyring": 'python3 -c "import ctypes; raise SystemExit(ctypes.CDLL(None).syscall({keyctl}, 0, -3, 1) == -1)"',
    "typing into the terminal": "python3 -c \"import fcntl, pty; fcntl.ioctl(pty.openpty()[1], 0x5412, b'x')\"",
    "io_uring": 'python3 -c "import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(425, 1, 0) == -1)"',
    "vsock": 'python3 -c "import socket; socket.socket(40, 1)"',
    "packets": 'python3 -c "import socket; socket.socket(17, 3, 0)"',
    "interfaces": 'python3 -c "import fcntl, socket, struct; '
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 0))\"",
    "the network of the machine": "nsenter --net=/proc/1/ns/net true || nsenter --net=/proc/{owner}/ns/net true",
    "a network of its own": "unshare -n true",
    "raw packets of the internet": 'python3 -c "import socket; socket.socket(2, 3, 1)"',
    "a low port": "python3 -c \"import socket; socket.socket().bind(('127.0.0.1', 80))\"",
    "kernel settings": "exec 3>>/proc/sys/kernel/core_pattern",
    "disks": "python3 -c \"import os, stat; os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(8, 0))\"",
    "shadow": "cat /etc/shadow",
    "host name": 'hostname "$(hostname)"',
}
NUMBERS = {"x86_64": (56, 250), "aarch64": (220, 219)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROBES)
async def test_s22_probes_fail(kind, name, monkeypatch):
    clone, keyctl = NUMBERS.get(os.uname().machine, (0, 0))
    if not clone:
        pytest.skip(f"the system calls of {os.uname().machine} are not known here")
    monkeypatch.setenv("TENUTO_TEST_OUTER", SECRET)
    # The environment that a process was started with is what /proc shows: a process of ours has the variable.
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with places(kind) as made:
            environ = dict(made.bench.context.environ)
            environ.pop("TENUTO_TEST_OUTER", None)
            made.bench.context.environ = environ
            result, text = await made.run(PROBES[name].format(owner=owner.pid, clone=clone, keyctl=keyctl))
            assert result.is_error, text
            assert SECRET not in text
            assert not os.path.exists(made.work / "disk")
    finally:
        owner.kill()
        owner.communicate()


@pytest.mark.parametrize("kind", KINDS)
async def test_other_processes_are_not_seen(kind):
    skip_weaker(kind, "other processes")
    with places(kind) as made:
        _, text = await made.run("ls /proc | grep -cE '^[0-9]+$'")
        assert int(text.split()[0]) < 10


@pytest.mark.parametrize("kind", KINDS)
async def test_what_only_reads_writes_nothing_and_has_no_network(kind):
    with places(kind, network=True) as made:
        sandbox = made.bench.context.sandbox
        assert sandbox is not None
        loose = sandbox.confine(made.work, made.bench.context.environ, strict=False)
        strict = sandbox.confine(made.work, made.bench.context.environ, strict=True)
        loose.close()
        strict.close()
        assert loose.policy.network
        assert not strict.policy.network
        assert strict.policy.writable == ()


@pytest.mark.parametrize("kind", KINDS)
async def test_added_places_can_be_written_and_read(kind, tmp_path):
    with places(kind, writable=("~/new",), readable=("~/.netrc",), hidden=("~/keep",)) as made:
        (made.home / "new").mkdir()
        result, text = await made.run("echo x > ~/new/x && cat ~/.netrc")
        assert not result.is_error, text
        assert SECRET in text
        result, _ = await made.run("cat ~/keep")
        assert result.is_error
