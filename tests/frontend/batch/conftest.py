"""What several files of this room use: a repository, tasks, and the program over them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.program import TENUTO
from tests.server import Call, Hang, Reply, Request

MODEL = "openai-chat/test"
PATIENCE = 120.0


class Bench:
    """One repository with one commit, one file of tasks, and runs of `tenuto batch` over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = folder / "repo"
        self.file = folder / "tasks.jsonl"
        self.results_file = folder / "tasks.results.jsonl"
        self.kept = folder / "tasks.results"
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "TENUTO_HOME": str(folder / "home")}
        (self.repo / "inner").mkdir(parents=True)
        (self.repo / "a.txt").write_text("one\n")
        (self.repo / "inner" / "b.txt").write_text("two\n")
        (self.repo / ".gitignore").write_text("ignored\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "first")

    def git(self, *words: str) -> str:
        """Run git in the repository."""
        return subprocess.run(["git", *words], cwd=self.repo, check=True, capture_output=True, text=True).stdout

    def write(self, *tasks: dict[str, Any] | str) -> None:
        """Write the file of tasks."""
        lines = [task if isinstance(task, str) else json.dumps({"model": MODEL, **task}) for task in tasks]
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def start(self, *words: str, server: Any = None, **options: Any) -> subprocess.Popen[str]:
        """Start `tenuto batch` in the repository."""
        environ = self.environ | (server.environ() if server is not None else {})
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
        command = [*TENUTO, "batch", str(self.file), *words]
        return subprocess.Popen(command, cwd=self.repo, env=environ, text=True, **options)

    def run(self, *words: str, server: Any = None, patience: float = 120) -> subprocess.CompletedProcess[str]:
        """Run `tenuto batch` to its end, for so many seconds at most."""
        process = self.start(*words, server=server)
        output, errors = process.communicate(timeout=patience)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The last result of each task."""
        data = self.results_file.read_text() if self.results_file.exists() else ""
        lines = data.split("\n")[:-1]
        return {line["id"]: line for line in map(json.loads, lines)}

    @property
    def worktrees(self) -> list[str]:
        """What git lists beside the repository itself."""
        return self.git("worktree", "list").splitlines()[1:]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def words_of(request: Request) -> str:
    """Return what was said in a request."""
    return "\n".join(item.text for item in request.items if item.kind == "user")


def writes(request: Request) -> Reply:
    """Write a file, then say that it is done."""
    if any(item.kind == "result" for item in request.items):
        return Reply("Done.")
    return Reply(tool_calls=[Call("write", {"path": "new.txt", "content": "made\n"})])


class Slow:
    """A model that answers at once, but for prompts with the word “slow”, on which it hangs as long as it is told."""

    def __init__(self) -> None:
        self.hangs = True
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> Reply | Hang:
        said = words_of(request)
        self.prompts += [word for word in ("quick-1", "quick-2", "slow") if word in said]
        return Hang() if self.hangs and "slow" in said else Reply("Done.")


def wait_until(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait for something that has to come, so many seconds at most."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def agents_of(pid: int) -> list[int]:
    """Return the headless agents below a process."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    below, found = {pid}, list[int]()
    grown = True
    while grown:
        new = {int(row[0]) for row in rows if int(row[1]) in below} - below
        below |= new
        grown = bool(new)
    for row in rows:
        if int(row[0]) in below and " -m tenuto -p " in f"{row[2]} " and "launcher.py" not in row[2]:
            found.append(int(row[0]))
    return found


def is_alive(pid: int) -> bool:
    """Say whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


@pytest.fixture
def ended() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed at the end of the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
