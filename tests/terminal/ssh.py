"""A real ssh server of our own on a loopback port, and a line to it that takes its time.

The server runs as whoever runs the tests, root or not, with its own keys and configuration; nobody can log in but with
the key that was made for the test.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from queue import SimpleQueue

from tests.terminal.screen import PATIENCE

PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Where a server that root runs wants an empty directory."""
CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
UseDNS no
"""


def find_server() -> str | None:
    """Return the ssh server's absolute path, by which it has to be called; `None` where it or the client is not."""
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin")
    return found if found and shutil.which("ssh") and shutil.which("ssh-keygen") else None


class SshServer:
    """A server with a key for its one client. Raises `OSError` when it cannot be started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        folder.mkdir(mode=0o700, parents=True)
        for name in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "key.pub", folder / "authorized_keys")
        self.port = free_port()
        (folder / "config").write_text(CONFIG.format(port=self.port, folder=folder))
        if os.geteuid() == 0:
            PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        server = find_server()
        assert server is not None
        command = [server, "-D", "-f", str(folder / "config"), "-E", str(folder / "log")]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            self._wait_listening()
            self._try_terminal()
        except BaseException:
            self.close()
            raise

    def _wait_listening(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            if self.process.poll() is not None:
                raise OSError((self.folder / "log").read_text())
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), PATIENCE):
                return
            if time.monotonic() > deadline:
                raise OSError("the ssh server does not listen")
            time.sleep(0.02)

    def _try_terminal(self) -> None:
        """A server of an ordinary user can hand out terminals only where they are the group's from the start."""
        tried = subprocess.run(
            self.client("true"), env=self.environ(), capture_output=True, timeout=PATIENCE, check=False
        )
        if tried.returncode:
            raise OSError(f"{tried.stderr.decode()}{(self.folder / 'log').read_text()}".strip())

    def close(self) -> None:
        """End the server; its sessions end with their clients."""
        self.process.terminate()
        self.process.wait()

    def client(self, *remote: str, port: int = 0) -> list[str]:
        """Return the command that runs these words on the other side, in a terminal; without any, a login shell."""
        options = {
            "IdentityFile": self.folder / "key",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "StrictHostKeyChecking": "no",
            "BatchMode": "yes",
            "LogLevel": "ERROR",
            "Port": port or self.port,
        }
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", "-F", "/dev/null", "-tt", *given, f"{self.user}@127.0.0.1", shlex.join(remote)]

    def environ(self, **environ: str) -> dict[str, str]:
        """Return what the client's side of the line knows; `TERM` is all of it that the server hears of."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TERM": "xterm-256color", **environ}


class Relay:
    """Takes `delay` seconds for every byte on its way to the server and back; `port` is where it listens."""

    def __init__(self, target: int, delay: float) -> None:
        self._target, self._delay = target, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    queue: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
                    threading.Thread(target=self._take, args=(one, queue), daemon=True).start()
                    threading.Thread(target=self._give, args=(other, queue), daemon=True).start()

    def _take(self, source: socket.socket, queue: SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"?"
        while data:
            try:
                data = source.recv(65_536)
            except OSError:
                data = b""
            queue.put((time.monotonic() + self._delay, data))

    def _give(self, target: socket.socket, queue: SimpleQueue[tuple[float, bytes]]) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, data = queue.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)

    def close(self) -> None:
        """Cut the line."""
        for one in (self._listener, *self._open):
            one.close()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
