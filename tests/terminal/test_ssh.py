"""The program behind a real ssh server: from the first key to a line that breaks."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shlex
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.core.harness import copy_sample
from tests.server import Call, Reply, Request, ServerThread
from tests.terminal.conftest import MODEL, said
from tests.terminal.pseudo import ANSWERS, CommandTerminal
from tests.terminal.screen import BIN, PATIENCE, source_path
from tests.terminal.ssh import Relay, SshServer, find_server

pytestmark = pytest.mark.terminal
SCREENS = pytest.mark.parametrize("screen", [(), ("--inline",)], ids=["full", "inline"])
NO_SERVER = "openssh-server is not installed: the tests over ssh are skipped"
KEY_BYTES = 100
"""A key's echo; on a slow line each counts."""
LIGHT = {**ANSWERS, b"\x1b]11;?\x07": b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", b"\x1b[?2048$p": b"\x1b[?2048;2$y"}
"""A terminal with a light background, which answers everything that it is asked."""
LONG = "\n\n".join(f"Paragraph {number} of a long answer that fills the buffers." for number in range(4_000))


def answer(request: Request) -> Reply:
    match said(request):
        case "run" if not any(item.kind == "result" for item in request.turn):
            return Reply("I run.", tool_calls=[Call("bash", {"command": "echo begun; sleep 600"})])
        case "long":
            return Reply(f"{LONG}\n\nThe very end.")
        case _:
            return Reply("See `calc.py:2`. An **answer**: “ü 你好” ✓")


class Place:
    """A workplace on the other side of the line."""

    def __init__(self, folder: Path, ssh: SshServer, stack: ExitStack) -> None:
        self.folder = folder
        self.ssh = ssh
        self.home = folder / "home"
        self.home.mkdir()
        self.work = copy_sample(folder / "work")
        self.server = stack.enter_context(ServerThread(answer))
        self._stack = stack

    def words(self, command: str, **environ: str) -> list[str]:
        """What makes the other side run a line of shell, in the environment that it gives and in the workplace."""
        known = {
            **self.server.environ(),
            **source_path(),
            "TENUTO_HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            **environ,
        }
        return ["env", *(f"{name}={value}" for name, value in known.items()), "sh", "-c", f"cd {self.work}; {command}"]

    def tenuto(self, *options: str) -> str:
        """A line of shell that runs the program, and leaves its process id in a file."""
        return f"echo $$ > {self.folder}/pid; exec {shlex.join(['tenuto', '--model', MODEL, *options])}"

    def open(self, words: list[str], *, relay: Relay | None = None, term: str = "xterm-256color") -> CommandTerminal:
        """Run words on the other side, in a terminal of this one."""
        client = self.ssh.client(*words, port=relay.port if relay else 0)
        terminal = CommandTerminal(self.folder, self.ssh.environ(TERM=term), client)
        self._stack.callback(terminal.close)
        return terminal

    def relay(self, delay: float) -> Relay:
        """A line that takes `delay` seconds each way."""
        relay = Relay(self.ssh.port, delay)
        self._stack.callback(relay.close)
        return relay

    def wait_gone(self) -> None:
        """Wait until the program on the other side has ended, by itself."""
        program = int((self.folder / "pid").read_text())
        deadline = time.monotonic() + PATIENCE
        with contextlib.suppress(ProcessLookupError):
            while True:
                os.kill(program, 0)
                assert time.monotonic() < deadline, "it outlives its terminal"
                time.sleep(0.02)

    @property
    def log(self) -> bytes:
        """The log of the one session, once there is one."""
        return b"".join(log.read_bytes() for log in self.home.glob("sessions/*/*/events.jsonl"))


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A server, where there is one; else the tests are skipped, and say so."""
    try:
        server = SshServer(tmp_path_factory.mktemp("ssh") / "server") if find_server() else None
        reason = NO_SERVER
    except OSError as error:
        server, reason = None, f"the ssh server does not start, the tests over ssh are skipped: {error}"
    if server is None:
        warnings.warn(reason, stacklevel=1)
        pytest.skip(reason)
    with contextlib.closing(server):
        yield server


@pytest.fixture
def place(tmp_path: Path, ssh: SshServer) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(tmp_path, ssh, stack)


@SCREENS
@pytest.mark.parametrize("term", ["xterm-256color", "xterm-ghostty"])
def test_what_is_typed_at_once_is_there_without_a_locale_and_with_any_terminal(place, screen, term):
    environ = {"LANG": "", "LC_ALL": "", "LC_CTYPE": ""}
    terminal = place.open(place.words(place.tenuto(*screen), **environ), term=term)
    terminal.write("höll".encode())
    terminal.wait_for("❯ höll")
    terminal.write(b"o\r")
    terminal.wait_for("An answer: “ü 你好” ✓")
    assert "▌ höllo" in terminal.text()
    terminal.wait_for("? keys")
    terminal.read_until_quiet()
    before = len(terminal.output)
    terminal.write(b"a")
    terminal.wait_for("❯ a\n")
    terminal.read_until_quiet(0.3)
    assert len(terminal.output) - before < KEY_BYTES
    terminal.resize(60, 20)
    terminal.wait_for("❯ a")
    terminal.read_until_quiet()
    rows = terminal.text().split("\n")
    assert [row for row in rows if row.startswith("❯")] == ["❯ a"], rows
    assert any(row.startswith("ask") and MODEL in row for row in rows)


@SCREENS
def test_t34_r080_a_line_that_breaks_under_a_login_shell_loses_nothing(place, screen):
    """The kernel tells the program, and so does the shell, while it is ending."""
    job = shlex.join(["sh", "-c", place.tenuto("--mode", "auto", *screen)])
    words = place.words(shlex.join(["exec", "bash", "--norc", "--noprofile", "-i", "-c", f"{job}; exit"]))
    terminal = place.open(words)
    terminal.wait_for("? keys")
    terminal.write(b"run\r")
    terminal.wait_for("begun")
    terminal.write(b"a queued prompt\r")
    terminal.wait_for("1 queued")
    terminal.write("a draft: ü".encode())
    terminal.wait_for("❯ a draft: ü")
    os.kill(terminal.pid, signal.SIGKILL)
    place.wait_gone()
    assert b'"tool_result"' in place.log, "the running call has its result"
    again = place.open(place.words(place.tenuto("--continue", *screen)))
    again.wait_for("❯ a draft: ü")
    again.wait_for("1 queued")
    assert "interrupted" in again.text()


@SCREENS
def test_answers_that_come_late_are_no_keys_and_not_for_the_shell(place, screen):
    after = place.folder / "after"
    keep = f"stty raw -echo; timeout 1 cat > {after}; stty sane; echo done"
    command = f"{shlex.join(['tenuto', '--model', MODEL, *screen])}; echo code=$?; {keep}"
    terminal = place.open(place.words(command), relay=place.relay(0.15))
    terminal.answers = LIGHT
    terminal.wait_for("Ask for something")
    terminal.write(b"ab")
    terminal.wait_for("❯ ab")
    terminal.write(b"\x15")
    terminal.wait_for("? keys")
    terminal.write(b"/exit")
    terminal.wait_for("❯ /exit")
    terminal.write(b"\r")
    terminal.wait_for("done")
    assert "code=0" in terminal.text()
    assert after.read_bytes() == b""
    assert "rgb:" not in terminal.text() and "^[" not in terminal.text()


@SCREENS
def test_a_client_that_stands_still_stops_no_work_and_shows_all_when_it_goes_on(place, screen):
    terminal = place.open(place.words(place.tenuto(*screen)))
    terminal.wait_for("? keys")
    os.kill(terminal.pid, signal.SIGSTOP)
    terminal.write(b"long\r")
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.wait_for("▌ long")
    os.kill(terminal.pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while b"The very end." not in place.log:
        assert time.monotonic() < deadline, "the work waits for the line"
        time.sleep(0.05)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.wait_for("The very end.")
    os.kill(terminal.pid, signal.SIGSTOP)
    os.kill(terminal.pid, signal.SIGKILL)
    place.wait_gone()


def test_without_a_terminal_it_says_what_it_waits_for(place):
    client = [word for word in place.ssh.client(*place.words(place.tenuto())) if word != "-tt"]
    terminal = CommandTerminal(place.folder, place.ssh.environ(), client)
    try:
        terminal.wait_for("there is no terminal (ssh -t gives one)")
        terminal.write(b"hello\r\x04")
        terminal.wait_for("An **answer**")
    finally:
        terminal.close()


def test_copies_go_to_the_users_own_clipboard_and_links_name_the_host(place):
    tools = place.folder / "tools"
    tools.mkdir()
    (tools / "xclip").write_text(f"#!/bin/sh\ncat > {tools}/taken\n")
    (tools / "xclip").chmod(0o755)
    environ = {"PATH": f"{tools}:{BIN}:{os.environ['PATH']}", "DISPLAY": ":0"}
    terminal = place.open(place.words(place.tenuto("--inline"), **environ))
    terminal.wait_for("? keys")
    terminal.write(b"hello\r")
    link = f"file://{socket.gethostname()}{place.work}/calc.py".encode()
    terminal.wait_until(lambda: link in terminal.output, "the link")  # what still streams has none
    terminal.write(b"/copy\r")
    terminal.wait_for("to the terminal's clipboard (OSC 52)")
    (copied,) = re.findall(rb"\x1b\]52;c;([^\x07]*)\x07", terminal.output)
    assert base64.b64decode(copied).decode() == "See `calc.py:2`. An **answer**: “ü 你好” ✓"
    assert not (tools / "taken").exists()
