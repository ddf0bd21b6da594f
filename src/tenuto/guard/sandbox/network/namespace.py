"""A network namespace that the commands of one session share: its loopback is up, and there is nothing else in it.

No process keeps it: it lasts for as long as Tenuto has a descriptor of it, or a command is in it. So there is nothing
that a command could kill or trace, and nothing is left after `kill -9`. Bubblewrap makes it, as it makes one for one
command: where it may do the one it may do the other.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from tenuto.guard.sandbox.launching.starting import try_command

_OPENER = Path(__file__).with_name("opener.py")
_SECONDS = 10.0
_REASON_CHARS = 200


class SessionNetwork(Struct, eq=False):
    """Descriptors of its namespaces, in the order in which a process enters them, and what listens inside of it."""

    namespaces: tuple[int, ...]
    listener: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port that is listened on inside, 0 for none."""
        return int(self.listener.getsockname()[1]) if self.listener is not None else 0

    def copies(self) -> tuple[int, ...]:
        """Return descriptors for one command, which are the caller's to close. Raises `OSError` once it is closed."""
        if not self.namespaces:
            raise OSError("the session's network is closed")  # without them the command would be in the machine's own
        return tuple(os.dup(one) for one in self.namespaces)

    def close(self) -> None:
        """Let go of it; it is gone when the last command in it is."""
        for descriptor in self.namespaces:
            os.close(descriptor)
        self.namespaces = ()
        if self.listener is not None:
            self.listener.close()


def open_network(bubblewrap: str, *, listens: bool) -> SessionNetwork:
    """Make one, and try it; with `listens` something listens inside. Takes some 50 ms. Raises `OSError`: the reason."""
    network = _make(bubblewrap, listens=listens)
    try:
        _try_entering(network, bubblewrap)
    except OSError:
        network.close()
        raise
    return network


def _make(bubblewrap: str, *, listens: bool) -> SessionNetwork:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = [bubblewrap, "--unshare-net", "--bind", "/", "/", "--"]
        words += [sys.executable or "python3", "-I", "-S", "-E", str(_OPENER)]
        _run([*words, str(theirs.fileno()), str(int(listens))], (theirs.fileno(),))
        ours.setblocking(False)
        _, found, _, _ = socket.recv_fds(ours, 1, 3, socket.MSG_CMSG_CLOEXEC)
    if len(found) != 2 + listens:
        for descriptor in found:
            os.close(descriptor)
        raise OSError("its namespaces were not handed out")
    listener = socket.socket(fileno=found[2]) if listens else None
    if os.path.samestat(os.fstat(found[0]), os.stat("/proc/self/ns/user")):
        os.close(found[0])  # root needs none for it, and one's own cannot be entered
        return SessionNetwork((found[1],), listener)
    return SessionNetwork((found[0], found[1]), listener)


def why_no_network(bubblewrap: str) -> str:
    """Return why the commands of a session cannot share a network here, empty where they can. Tries it."""
    try:
        open_network(bubblewrap, listens=False).close()
    except OSError as error:
        return str(error)
    return ""


def _try_entering(network: SessionNetwork, bubblewrap: str) -> None:
    """Run a command in it, as the launcher does: a bubblewrap that is root's makes what its user may not enter."""
    words = [bubblewrap, "--unshare-pid", "--ro-bind", "/", "/", "--", "/bin/sh", "-c", "exit 0"]
    if fault := try_command(words, _SECONDS, namespaces=network.namespaces):
        raise OSError(fault[:_REASON_CHARS])


def _run(words: list[str], passed: tuple[int, ...]) -> None:
    try:
        ran = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False, pass_fds=passed
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)[:_REASON_CHARS]) from error
    if ran.returncode:
        said = ran.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise OSError((said or f"exit code {ran.returncode}")[:_REASON_CHARS])
