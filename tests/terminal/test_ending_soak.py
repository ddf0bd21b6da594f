"""Signals and closed outputs at every moment of the program's life, on every front-end (daily-user.md F1, S1).

Each seed is one run: a front-end, what it is busy with, and how it is ended. Afterwards the process is gone, nothing
that it started is alive, and every line of the log is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.core.compacting import is_summary_request
from tests.core.harness import reopened
from tests.server import Call, Hang, Reply, Request, ScriptedServer, ServerThread
from tests.terminal.conftest import MODEL
from tests.terminal.pseudo import CommandTerminal
from tests.terminal.screen import BIN
from tests.tool.test_bash import alive
from tests.tui.first_paint.pseudo import SOURCES

HOOK = """
import os, signal, sys, time
class Wait:
    def find_spec(self, name, path, target=None):
        if name == "tenuto.cli.start":
            sys.meta_path.remove(self)
            if os.path.exists({hold!r}):
                open({held!r}, "w").close()
            while os.path.exists({hold!r}):
                time.sleep(0.01)
def stay(*_):
    while True:
        time.sleep(0.01)
sys.meta_path.insert(0, Wait())
signal.signal(signal.SIGUSR1, stay)
"""
"""Holds the import of the program while a file is there, and its event loop from SIGUSR1 on.

That it is held it says by a file of its own: before that the interpreter may still be busy with itself, which ends by a
signal in its own ways (SIGINT in the `site` module: with 1), whatever the program does.
"""
STUBBORN = "trap '' TERM HUP INT; sleep {mark} & sleep {mark}"
PATIENCE = 120.0
"""Seconds; a hang guard on a busy machine, not a measure."""

SCREENS = {"full": (), "inline": ("--inline",), "plain": ("--screen-reader",)}
PRINTS = {"print": (), "json": ("--json",)}
WAYS = {"term": signal.SIGTERM, "hup": signal.SIGHUP, "int": signal.SIGINT, "closed": None}
BUSY = ("starting", "importing", "silent", "streaming", "tool", "compaction", "closing", "stuck")


def is_possible(front: str, busy: str, way: str) -> bool:
    if (front, way) == ("plain", "int"):
        return False  # Ctrl+C there ends a line or what runs
    return (busy, way) != ("stuck", "closed")  # nobody is told: it ends when it comes to itself


COMBINATIONS = [one for one in product((*SCREENS, *PRINTS, "reading"), BUSY, WAYS) if is_possible(*one)]
random.Random(912).shuffle(COMBINATIONS)
SEEDS = range(int(os.environ.get("SOAK_FROM", "0")), int(os.environ.get("SOAK_TO", "200")))
"""For a longer soak, by hand: others."""
ALWAYS = 20


class Pseudo(CommandTerminal):
    """A terminal that can be closed before the program has ended."""

    is_closed = False
    code: int | None = None

    def hang_up(self) -> None:
        os.close(self.descriptor)
        self.is_closed = True

    def poll(self) -> int | None:
        if not self.is_closed:
            self.read(0)
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def close(self) -> None:
        if not self.is_closed:
            os.close(self.descriptor)


class Piped:
    """The program between pipes."""

    def __init__(self, cwd: Path, environ: dict[str, str], command: list[str], stdin: int) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environ, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.pid = self.process.pid
        self.poll = self.process.poll
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = b""

    def read(self) -> None:
        """Take what is written, so that nothing blocks."""
        with contextlib.suppress(BlockingIOError, ValueError, TypeError):
            self.output += self.process.stdout.read() or b""
        time.sleep(0.01)

    def hang_up(self) -> None:
        self.process.stdout.close()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Round:
    """One run of the program and its end."""

    def __init__(self, folder: Path, seed: int, server: ScriptedServer) -> None:
        self.front, self.busy, self.way = COMBINATIONS[seed % len(COMBINATIONS)]
        self.source = random.Random(seed)
        self.folder, self.server = folder, server
        self.mark = f"8{os.getpid()}{seed:04d}"
        self.hold, self.held = folder / "hold", folder / "held"
        self.is_screen = self.front in SCREENS
        self.run = self.start()

    def __str__(self) -> str:
        return f"{self.front} {self.busy} {self.way}\n{self.run.output[-2_000:].decode(errors='replace')}"

    def start(self) -> Pseudo | Piped:
        hook = self.folder / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(HOOK.format(hold=str(self.hold), held=str(self.held)))
        if self.busy == "importing":
            self.hold.touch()
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TENUTO_HOME": str(self.folder / "home"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": f"{hook}:{SOURCES}",
            **self.server.environ(),
        }
        command = [str(BIN / "tenuto"), "--model", MODEL, "--mode", "auto"]
        if self.busy == "compaction":
            command.append("-c")
        if self.is_screen:
            return Pseudo(self.folder / "work", environ, [*command, *SCREENS[self.front]])
        if self.front == "reading" and self.busy in ("starting", "importing"):  # of a pipe that nobody writes to
            return Piped(self.folder / "work", environ, [*command, "-p"], subprocess.PIPE)
        options = PRINTS.get(self.front, ())
        prompt = "/compact" if self.busy == "compaction" else self.prompt
        return Piped(self.folder / "work", environ, [*command, *options, "-p", prompt], subprocess.DEVNULL)

    @property
    def prompt(self) -> str:
        return f"please do {self.busy} {self.mark}"

    def read(self) -> None:
        if isinstance(self.run, Pseudo):
            self.run.read(0.02)
        else:
            self.run.read()

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n{self}"
            assert self.run.poll() is None, f"it ended by itself before: {what}\n{self}"
            self.read()

    def pause(self, most: float) -> None:
        deadline = time.monotonic() + self.source.uniform(0, most)
        while time.monotonic() < deadline:
            self.read()

    def get_busy(self) -> None:
        """Come to the moment at which it is ended."""
        if self.busy == "starting":
            self.pause(2.0)
            return
        if self.busy == "importing":
            self.until(self.held.exists, "the import")
            self.pause(1.0)
            return
        if self.is_screen:
            self.until(lambda: MODEL.encode() in self.run.output or self.front == "plain", "the model")
            self.until(lambda: b"> " in self.run.output or self.front != "plain", "a prompt")
            self.pause(0.3)
            text = "/compact" if self.busy == "compaction" else self.prompt
            self.run.write(text.encode())
            self.pause(0.3)
            self.run.write(b"\r")
        self.until(self.is_busy, "being busy")
        if self.busy == "closing" and self.is_screen:
            self.pause(1.0)
            self.run.write(b"/exit")
            self.pause(0.3)
            self.run.write(b"\r")
        if self.busy == "stuck":
            os.kill(self.run.pid, signal.SIGUSR1)
        self.pause(0.7)

    def is_busy(self) -> bool:
        asked = self.server.requests
        match self.busy:
            case "silent" | "stuck":
                return bool(asked)
            case "streaming":
                return b"word" in self.run.output or (bool(asked) and self.front in ("plain", "print", "reading"))
            case "tool":
                return bool(alive(f"sleep {self.mark}"))
            case "compaction":
                return any(is_summary_request(request) for request in asked)
            case _:
                return len(asked) > 1

    def end(self) -> int:
        number = WAYS[self.way]
        if number is None:
            self.run.hang_up()
        elif self.run.poll() is None:
            os.kill(self.run.pid, number)
        if self.way == "closed":
            self.hold.unlink(missing_ok=True)  # it has to come to where it would notice
            if isinstance(self.run, Piped) and self.run.process.stdin is not None:
                self.run.process.stdin.close()
        deadline = time.monotonic() + PATIENCE
        while (code := self.run.poll()) is None:
            assert time.monotonic() < deadline, f"it does not end\n{self}"
            if self.way != "closed":
                self.read()
            time.sleep(0.01)
        return code


def answer(request: Request) -> Reply | Hang:
    if is_summary_request(request) and "question" in str(request.body):
        return Hang(600)
    words = next((line for line in request.last_user.splitlines() if "please do" in line), "")
    busy, _, mark = words.partition("please do ")[2].partition(" ")
    if busy == "streaming":
        return Reply("word " * 3_000, chunk_size=10, delay_per_event=0.02)
    if busy == "tool":
        return Reply(tool_calls=[Call("bash", {"command": STUBBORN.format(mark=mark)})])
    if busy == "closing" and not any("left" in item.text for item in request.items if item.kind == "result"):
        return Reply(tool_calls=[Call("bash", {"command": f"(trap '' TERM HUP; sleep {mark}) & echo left"})])
    return Reply("done") if busy == "closing" else Hang(600)


async def talk_before(folder: Path) -> None:
    """A session that is long enough to be compacted."""
    async with ScriptedServer(lambda _request: Reply("fine " * 900)) as server, reopened(folder, server) as running:
        for number in range(9):
            await running.ask(f"question {number} " + "because " * 900)


@pytest.mark.terminal
@pytest.mark.parametrize(
    "seed", [pytest.param(one, marks=[pytest.mark.full] if one >= ALWAYS else []) for one in SEEDS]
)
def test_f1_s1_whenever_it_is_ended_it_ends_and_leaves_nothing_but_a_whole_log(tmp_path: Path, seed: int) -> None:
    (tmp_path / "work").mkdir()
    if COMBINATIONS[seed % len(COMBINATIONS)][1] == "compaction":
        asyncio.run(talk_before(tmp_path))
    with ServerThread(answer) as server:
        one = Round(tmp_path, seed, server)
        try:
            one.get_busy()
            code = one.end()
        finally:
            with contextlib.suppress(ProcessLookupError):
                if one.run.poll() is None:
                    os.kill(one.run.pid, signal.SIGKILL)
            one.run.close()
        number = WAYS[one.way]
        ended_itself = one.busy in ("starting", "closing") and code in (0, 1, 2)
        assert number is None or ended_itself or code in (128 + number, -number, 130), f"exit code {code}\n{one}"
        assert b"Traceback" not in one.run.output, one
        assert alive(one.mark) == [], one
        logs = list((tmp_path / "home").glob("sessions/*/*/events.jsonl"))
        for log in logs:
            data = log.read_bytes()
            assert data.endswith(b"\n"), one
            assert all(isinstance(json.loads(line), dict) for line in data.splitlines()), one
        said = b"".join(log.read_bytes() for log in logs)
        assert one.busy in ("starting", "importing", "compaction") or one.mark.encode() in said, one


def test_the_soak_comes_to_every_moment_on_every_front_end() -> None:
    first = COMBINATIONS[:ALWAYS]
    assert {(front in SCREENS, busy) for front, busy, _ in first} == set(product((True, False), BUSY))
    assert {way for _, _, way in first} == set(WAYS)
    assert {front for front, _, _ in first} == {*SCREENS, *PRINTS, "reading"}
    assert len(COMBINATIONS) <= 200, "all of them in a full run"
