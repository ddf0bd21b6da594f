"""`kill -9` at any moment, in whatever phase: nothing is lost, and the next start works (R-062, R-044, R-078).

A round is a run of the program that is killed at a random moment, and one that goes on. Old bytes are a prefix of the
new file, no line but a torn last one is bad, seq rises, a prompt is on the disk before the server sees it, the next
`-c -p` exits with 0, and no command of the killed run lives on.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.session.paths import SESSIONS
from tests.core.compacting import SUMMARY, is_summary_request
from tests.server import Call, Reply, Request, ServerThread
from tests.server.scripts import steps
from tests.tui.first_paint.pseudo import SOURCES, Pseudo

MODEL = "openai-chat/test"
ALWAYS, ALL = 1, int(os.environ.get("KILL_ROUNDS", "56"))
"""Rounds of a phase in every run, and with `--full`."""
LATEST = float(os.environ.get("KILL_LATEST", "3"))
"""Seconds after which at the latest a run is killed."""
SETTINGS = '[models."openai-chat/test"]\ncontext_window = 16384\nmax_output_tokens = 1024\n'
LONG = "a long answer that fills the window with words " * 900


class Scene:
    """A home, a directory and a server for the rounds of one phase."""

    def __init__(self, folder: Path, phase: str) -> None:
        self.folder, self.phase = folder, phase
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.home / "settings.toml").write_text(SETTINGS)
        self.too_early: list[str] = []
        self.mark = ""
        self.server: ServerThread | None = None
        self.environ: dict[str, str] = {}

    # --- the server ---

    def answer(self, request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY, delay_per_event=0.02)
        said = request.last_user
        if self.mark and self.mark in said and not any(self.mark.encode() in log for log in self.logs().values()):
            self.too_early.append(said)
        if "next " in said:  # also behind a prompt that was killed before its answer: nothing is begun again
            return Reply(LONG if self.fills else "fine")
        if "[stream]" in said:
            return Reply("word " * 400, chunk_size=10, delay_per_event=0.01)
        if "[tool]" in said and request.items[-1].kind != "result":
            command = f"sleep {self.seconds} & sleep {self.seconds}"
            return Reply("Let me wait.", tool_calls=[Call("bash", {"command": command})])
        if "[job]" in said and request.items[-1].kind != "result":
            call = Call("bash", {"command": f"sleep {self.seconds}", "background": True})
            return Reply("In the background.", tool_calls=[call])
        if "[job]" in said:
            return Reply("word " * 400, chunk_size=10, delay_per_event=0.01)
        if "[steps]" in said:
            return steps(30)(request)
        return Reply(LONG if self.fills else "fine")

    @property
    def fills(self) -> bool:
        """Whether the phase is about a full window."""
        return self.phase in ("threshold", "compact", "undo")

    # --- the disk and the processes ---

    def logs(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (self.home / SESSIONS).glob("*/*/events.jsonl")}

    def check(self, before: dict[Path, bytes]) -> None:
        now = self.logs()
        for path, old in before.items():
            assert now[path].startswith(old), f"{path} is not what it was"
        for path, data in now.items():
            *whole, last = data.split(b"\n")
            del last  # a torn one, or nothing
            highest = 0
            torn = 0
            for line in whole:
                try:
                    fields = json.loads(line)
                except ValueError:
                    torn += 1  # a last line of an earlier round that was closed off
                    continue
                if fields["type"] != "header":
                    assert fields["seq"] > highest, path
                    highest = fields["seq"]
            assert torn <= self.kills, path

    kills = 0

    @property
    def seconds(self) -> str:
        """A time to sleep by which the processes of this scene are known."""
        return f"47{os.getpid()}.{self.kills + 1}"

    def living(self) -> list[bytes]:
        listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, check=False)
        return [line for line in listing.stdout.splitlines() if b"sleep 47%d." % os.getpid() in line]

    # --- runs ---

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "tenuto", "--model", MODEL, "--mode", "auto", *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.work,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def kill_run(self, words: list[str], after: float) -> None:
        process = subprocess.Popen(
            words, cwd=self.work, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=-3
        )
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill_screen(self, words: list[str], after: float) -> None:
        environ = {name: value for name, value in self.environ.items() if name not in ("PATH", "HOME")}
        with Pseudo(self.work, words, **environ) as program:
            program.read_until(MODEL.encode())
            program.type(f"{self.mark} [stream]\r".encode())
            program.read(after / 3)
            for word in ("second", "third"):
                program.type(f"{word} {self.mark}\r".encode())
                program.read(after / 3)
            os.kill(program.pid, signal.SIGKILL)
            program.wait()


def prompt(kind: str) -> Callable[[Scene, float], None]:
    return lambda scene, after: scene.kill_run(scene.command("-c", "-p", f"{scene.mark} [{kind}]"), after)


def words(*more: str) -> Callable[[Scene, float], None]:
    return lambda scene, after: scene.kill_run(scene.command(*more), after)


def bring(scene: Scene, after: float) -> None:
    """An import of a log of another agent."""
    source = scene.folder / "theirs.jsonl"
    lines: list[dict[str, object]] = []
    for number in range(600):
        text = f"line {number} " + "of what was said there " * 20
        role = "assistant" if number % 2 else "user"
        lines.append(
            {
                "type": role,
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": "11111111-2222-3333-4444-555555555555",
                "cwd": str(scene.work),
                "timestamp": "2026-01-02T03:04:05.000Z",
                "version": "2.0.0",
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            }
        )
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    scene.kill_run([sys.executable, "-m", "tenuto", "import", "--force", str(source)], after)


PHASES: dict[str, Callable[[Scene, float], None]] = {
    "streaming": prompt("stream"),
    "tool": prompt("tool"),
    "job": prompt("job"),
    "steps": prompt("steps"),
    "threshold": prompt("stream"),
    "compact": words("-c", "-p", "/compact"),
    "fork": words("-c", "--fork", "-p", "[stream]"),
    "undo": words("-c", "-p", "/compact undo"),
    "rewind": words("-c", "-p", "/rewind 5 talk"),
    "import": bring,
    "screen": lambda scene, after: scene.kill_screen(scene.command("-c"), after),
}


def tell(scene: Scene, done: subprocess.CompletedProcess[str]) -> str:
    return f"{scene.phase}, round {scene.kills}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def play(folder: Path, phase: str, rounds: range) -> None:
    source = random.Random(f"{phase} {rounds}")
    scene = Scene(folder, phase)
    with ServerThread(scene.answer, window=16_384) as server:
        known = {"PATH": os.environ["PATH"], "HOME": str(folder), "TENUTO_HOME": str(scene.home)}
        scene.environ = {**known, "PYTHONPATH": str(SOURCES), **server.environ()}
        assert scene.run("-p", "begin").returncode == 0
        for number in rounds:
            scene.mark = f"prompt-{phase}-{number}"
            before = scene.logs()
            PHASES[phase](scene, source.uniform(0.1, LATEST))
            scene.kills += 1
            scene.check(before)
            assert not scene.too_early, "the server saw a prompt that was not on the disk"
            before = scene.logs()
            done = scene.run("-c", "-p", f"next {number}")
            assert done.returncode == 0, tell(scene, done)
            # Who ended a command, its launcher or this start, is a race: test_left_running.py has each by itself.
            assert not scene.living(), f"lives on: {scene.living()}\n{tell(scene, done)}"
            scene.check(before)


@pytest.mark.parametrize("phase", PHASES)
def test_r062_killed_at_any_moment_nothing_is_lost_and_the_next_start_works(tmp_path, phase):
    play(tmp_path, phase, range(ALWAYS))


@pytest.mark.full
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("phase", PHASES)
def test_r062_killed_five_hundred_times(tmp_path, phase):
    play(tmp_path, phase, range(ALWAYS, ALL))
