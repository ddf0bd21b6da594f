"""`tenuto batch` over a folder of Harbor tasks, through the command of Harbor's own (`scripts/harbor` installs it)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frontend.batch.conftest import is_alive, wait_until
from tests.frontend.harbor.tasks import Task, bash
from tests.frontend.harbor.test_tasks import FOLDER, ROOT
from tests.program import TENUTO
from tests.server import Call, Hang, HttpError, Reply, Request, ServerThread

BIN = FOLDER / "venv" / "bin"
MODEL = "anthropic/claude-opus-5-5"


class Model:
    """Writes answer.txt: what the task asks for, but 41 where it says “wrong”. It hangs on “slow” as it is told."""

    def __init__(self) -> None:
        self.hangs = True
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> Reply | Hang | HttpError:
        said = "\n".join(item.text for item in request.items if item.kind == "user")
        name = next(word for word in NAMES if f"task {word}." in said)
        if any(item.kind == "result" for item in request.items):
            return Reply("", tool_calls=[bash("cat answer.txt")]) if name == "endless" else Reply("Done.")
        self.prompts.append(name)
        if name == "flaky" and self.prompts.count(name) == 1:
            return HttpError(400, "no")
        if name == "slow" and self.hangs:
            return Hang()
        return Reply(
            "", tool_calls=[Call("write", {"path": "answer.txt", "content": "41" if name == "wrong" else "42"})]
        )


NAMES = ("right", "wrong", "flaky", "endless", "slow")


class DataSet:
    """Tasks of Harbor's in a folder, whose containers are folders, and runs of `tenuto batch` over them."""

    def __init__(self, folder: Path, server: ServerThread, *names: str) -> None:
        self.folder = folder / "data-1.0"
        for name in names:
            Task(name, f"This is task {name}. Write the answer.", [], 'test "$(cat answer.txt)" = 42').write(
                self.folder
            )
        self.config = folder / "trial.json"
        self.config.write_text(json.dumps({"environment": {"import_path": "tests.frontend.harbor.folders:Folders"}}))
        self.environ = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "TENUTO_TEST_BIN": str(Path(sys.executable).parent),
            "HARBOR_TELEMETRY": "0",
            **server.environ(),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [*TENUTO, "batch", str(self.folder), "-m", MODEL]
        command += ["--harbor-config", str(self.config), *words]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=self.environ, cwd=self.config.parent, text=True, **pipes)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        try:
            output, errors = process.communicate(timeout=200)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        file = self.folder.with_name("data-1.0.results.jsonl")
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        return {line["id"]: line for line in map(json.loads, lines)}

    @property
    def kept(self) -> Path:
        return self.folder.with_name("data-1.0.results")

    @property
    def trials(self) -> list[str]:
        """The folders of trials, without what tells tries apart; those that are hidden too."""
        return sorted(path.name.rpartition("__")[0] for path in (self.kept / "trials").iterdir())

    def harbor_of(self, name: str) -> int:
        """Return the process of Harbor's that runs a task, 0 if there is none."""
        listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
        for pid, args in (line.split(None, 1) for line in listed.splitlines()):
            if f"/trials/.{name}__" in args and str(self.kept) in args and args.split()[1].endswith("/harbor"):
                return int(pid)
        return 0


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[ServerThread]:
    if (
        not (BIN / "harbor").exists()
        or subprocess.run([BIN / "harbor", "--version"], check=False, capture_output=True).returncode
    ):
        pytest.skip("Harbor's command is not there: scripts/harbor installs it (Python 3.12)")
    if (
        shutil.which("bwrap") is None
        or subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False).returncode
    ):
        pytest.skip("bubblewrap cannot be used here")
    with ServerThread(model) as running:
        yield running


def test_l5_tasks_of_harbors_are_jobs_with_limits_tries_results_and_a_report(tmp_path: Path, server, model: Model):
    data = DataSet(tmp_path, server, "right", "wrong", "flaky", "endless")
    done = data.run("--max-turns", "4", "--retries", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    found = data.results
    assert {name: (one["outcome"], one["reward"], one["attempts"]) for name, one in found.items()} == {
        "right": ("done", 1.0, 1),
        "wrong": ("check_failed", 0.0, 1),
        "flaky": ("done", 1.0, 2),
        "endless": ("limit_reached", 1.0, 1),
    }
    assert found["right"]["num_turns"] == 2
    assert found["endless"]["num_turns"] == 4
    assert all(one["usage"]["output_tokens"] > 0 and one["session_id"] for one in found.values())
    assert (Path(found["right"]["trial"]) / "agent" / "trajectory.json").exists()
    report = (data.kept / "report.md").read_text()
    assert "Mean reward 0.750 over 4 trials." in report
    assert f"tenuto -r {found['right']['session_id']}" in report
    before = list(model.prompts)
    assert data.run("--max-turns", "4").returncode == 1
    assert model.prompts == before
    (data.folder / "right" / "instruction.md").write_text("This is task right. Write it again.")
    again = data.run("--max-turns", "4", "--json", "--again", "check_failed")
    assert sorted(json.loads(line)["id"] for line in again.stdout.splitlines()) == ["right", "wrong"]


def test_l5_a_killed_trial_is_tried_again_and_a_killed_run_goes_on_with_the_rest(tmp_path: Path, server, model: Model):
    data = DataSet(tmp_path, server, "right", "slow")
    process = data.start("--jobs", "2")
    try:
        wait_until(lambda: "right" in data.results and "slow" in model.prompts, 120)
        first = data.harbor_of("slow")
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: model.prompts.count("slow") == 2, 120)
        second = data.harbor_of("slow")
        assert is_alive(second) and second != first
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not is_alive(second))
    assert {*data.results} == {"right"}
    model.hangs = False
    done = data.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert (model.prompts.count("right"), model.prompts.count("slow")) == (1, 3)
    assert {name: one["outcome"] for name, one in data.results.items()} == {"right": "done", "slow": "done"}
    assert data.trials == ["right", "slow"]
