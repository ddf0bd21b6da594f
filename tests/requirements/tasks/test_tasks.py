"""Small tasks in real repositories, solved headless by a scripted model that behaves as frontier models do.

It makes their mistakes: calls that are cut off, an `old_string` that is not there, repeated calls, a forgotten check.
The harness has to bring each task to the right end and exit code, on each protocol.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.core.harness import PROTOCOLS, copy_sample
from tests.examples import one_of
from tests.program import TENUTO
from tests.server import Call, Cut, Reply, Request, ServerThread
from tests.server.reply import AnyReply

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
GIT = "git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false"


def bash(command: str, **more: object) -> Reply:
    return Reply(tool_calls=[Call("bash", {"command": command, **more})])


def call(name: str, **arguments: object) -> Reply:
    return Reply(tool_calls=[Call(name, arguments)])


@dataclass
class Play:
    """What the model does, answer by answer, and what it must have been told before each of them (empty: anything)."""

    steps: list[tuple[str, AnyReply]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    done: int = 0

    def step(self, reply: AnyReply, told: str = "") -> Play:
        self.steps.append((told, reply))
        return self

    def answer(self, request: Request) -> AnyReply:
        if self.done >= len(self.steps):
            self.missing.append("nothing was left to do")
            return Reply("Done.")
        told, reply = self.steps[self.done]
        self.done += 1
        if told and told not in "\n".join(item.text for item in request.items[-4:]):
            self.missing.append(f"before step {self.done} the model was not told “{told}”")
        return reply


@dataclass
class Done:
    code: int
    result: dict
    errors: str


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each task over one protocol in every run, by turns, and over all of them with `--full`."""
    number = re.match(r"test_task_(\d+)", metafunc.function.__name__)
    if "protocol" in metafunc.fixturenames and number:
        metafunc.parametrize("protocol", one_of(PROTOCOLS, int(number[1]) % len(PROTOCOLS)))


@pytest.fixture
def perform(tmp_path: Path, protocol: str) -> Callable[..., Done]:
    def run(play: Play, *options: str) -> Done:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        command = [*TENUTO, "-p", "do it", "--mode", "auto", "--model", f"{protocol}/test"]
        with ServerThread(play.answer) as server:
            done = subprocess.run(
                [*command, "--output-format", "json", *options],
                check=False,
                capture_output=True,
                text=True,
                cwd=tmp_path / "work",
                env=environ | server.environ(),
                stdin=subprocess.DEVNULL,
                timeout=120,
            )
        assert play.missing == [], done.stderr
        assert play.done == len(play.steps), f"{done.stdout}\n{done.stderr}"
        return Done(done.returncode, json.loads(done.stdout), done.stderr)

    return run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def shell(command: str, cwd: Path) -> str:
    return subprocess.run(command, shell=True, cwd=cwd, check=False, capture_output=True, text=True).stdout


def test_task_1_a_bug_with_a_failing_test_and_a_forgotten_check(tmp_path, perform):
    work = copy_sample(tmp_path / "work")
    old = "    return round(amount * (1 - discount) * (1 - discount), 2)"
    play = (
        Play()
        .step(bash(PYTEST))
        .step(call("read", path="shop/price.py"), "failed")
        .step(call("edit", path="shop/price.py", old_string=old, new_string=old.replace(" * (1 - discount)", "", 1)))
        .step(Reply("Fixed."), "Edited")
        .step(bash(PYTEST), "No command ran after your last edits (price.py)")
        .step(Reply("Fixed, and all tests pass."), "passed")
    )
    done = perform(play)
    assert (done.code, done.result["result"]) == (0, "Fixed, and all tests pass.")
    assert "failed" not in shell(PYTEST, work)


def test_task_2_a_rename_over_files_with_a_wrong_old_string(work, perform):
    (work / "a.py").write_text("def total(xs):\n    return sum(xs)\n")
    (work / "b.py").write_text("from a import total\n\nprint(total([1, 2]))\nprint(total([3]))\n")
    rename = [{"old_string": "import total", "new_string": "import add_up"}]
    uses = {"old_string": "total(", "new_string": "add_up(", "replace_all": True}
    play = (
        Play()
        .step(Reply(tool_calls=[Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"})]))
        .step(call("edit", path="a.py", old_string="def  total(", new_string="def add_up("))
        .step(call("edit", path="a.py", old_string="def total(", new_string="def add_up("))
        .step(call("edit", path="b.py", edits=[*rename, {**uses, "old_string": "totals("}]), "Edited")
        .step(call("edit", path="b.py", edits=[*rename, uses]), "Edit 2 of 2 failed, so none was made")
        .step(bash(f"{sys.executable} b.py"), "2 edits")
        .step(Reply("Renamed."), "3\n3")
    )
    play.steps[2] = ("", play.steps[2][1])
    assert perform(play).code == 0
    assert "total" not in (work / "a.py").read_text() + (work / "b.py").read_text()


def test_task_3_a_long_file_whose_call_is_cut_off(work, perform):
    lines = "".join(f"row {number}\n" for number in range(400))
    cut = json.dumps({"path": "rows.txt", "content": lines})[:900]
    half = len(lines) // 2
    play = (
        Play()
        .step(Reply(tool_calls=[Call("write", cut)], stop="max_tokens"))
        .step(Reply(tool_calls=[Call("write", cut)], stop="max_tokens"), "cut off at its output limit")
        .step(call("write", path="rows.txt", content=lines[:half]), "append")
        .step(call("write", path="rows.txt", content=lines[half:], append=True), "Created")
        .step(Reply("Written."), "Extended")
    )
    assert perform(play).code == 0
    assert (work / "rows.txt").read_text() == lines


def test_task_4_a_build_in_the_background(work, perform):
    play = (
        Play()
        .step(bash("sleep 1; echo made > artefact; echo BUILD-OK", background=True))
        .step(Reply("I will say when it is built."), "job-1")
        .step(Reply("It is still being built."), "Still running: job-1")
        .step(call("jobs", action="output"), "ended with exit code 0")
        .step(Reply("Built."), "BUILD-OK")
    )
    done = perform(play)
    assert (done.code, done.result["result"]) == (0, "Built.")
    assert (work / "artefact").exists()


def test_task_5_a_flaky_command(work, perform):
    flaky = "echo x >> tries\n[ $(wc -l < tries) -ge 3 ] && echo passed && exit\necho flaked\nexit 1\n"
    (work / "flaky.sh").write_text(flaky)
    play = Play()
    for told in ("", "flaked", "flaked"):
        play.step(bash("sh flaky.sh"), told)
    done = perform(play.step(Reply("It passes, at the third try."), "passed"))
    assert done.code == 0


def test_task_6_a_merge_conflict(work, perform):
    (work / "f.txt").write_text("one\n")
    for command in (
        "git init -q -b main", "git add .", f"{GIT} commit -qm a", "git switch -qc side", "echo side > f.txt",
        f"{GIT} commit -qam b", "git switch -q main", "echo main > f.txt", f"{GIT} commit -qam c",
    ):  # fmt: skip
        shell(command, work)
    play = (
        Play()
        .step(bash(f"{GIT} merge side"))
        .step(call("read", path="f.txt"), "CONFLICT")
        .step(call("write", path="f.txt", content="main\nside\n"), "<<<<<<<")
        .step(bash(f"git add f.txt && {GIT} commit -qm merge && git status --short"), "Replaced")
        .step(Reply("Merged."), "Exit code 0")
    )
    assert perform(play).code == 0
    assert shell("git log --format=%s -1; cat f.txt", work) == "merge\nmain\nside\n"


def test_task_7_an_answer_that_is_cut_off_twice(work, perform):
    play = (
        Play()
        .step(Reply("The reasons are: first, ", stop="max_tokens"))
        .step(Reply("the cache; second, ", stop="max_tokens"), "Go on exactly where it stopped")
        .step(Reply("the clock."), "Go on exactly where it stopped")
    )
    done = perform(play)
    assert (done.code, done.result["result"]) == (0, "The reasons are: first, the cache; second, the clock.")


def test_task_8_a_repeated_call_that_is_given_up_in_time(work, perform):
    (work / "real.txt").write_text("found\n")
    play = Play()
    for _ in range(3):
        play.step(call("read", path="reel.txt"))
    play.step(call("glob", pattern="*.txt"), "3 times in a row")
    done = perform(play.step(Reply("It is called real.txt."), "real.txt"))
    assert done.code == 0


def test_task_9_a_repeated_call_that_is_never_given_up(work, perform):
    play = Play()
    for _ in range(4):
        play.step(call("read", path="reel.txt"))
    done = perform(play)
    assert (done.code, done.result["subtype"]) == (1, "error_during_execution")
    assert "same failing call" in done.result["error"]


def test_task_10_a_file_that_changes_under_the_model(work, perform):
    (work / "conf.ini").write_text("a = 1\nb = 2\n")
    play = (
        Play()
        .step(call("read", path="conf.ini"))
        .step(bash("sed -i 's/a = 1/a = 7/' conf.ini"))
        .step(call("edit", path="conf.ini", old_string="b = 2", new_string="b = 3"))
        .step(call("edit", path="conf.ini", old_string="b = 2", new_string="b = 3"), "has changed since you read it")
        .step(bash("cat conf.ini"), "Edited")
        .step(Reply("Changed."), "b = 3")
    )
    assert perform(play).code == 0
    assert (work / "conf.ini").read_text() == "a = 7\nb = 3\n"


def test_task_11_a_connection_that_drops_in_a_call_runs_it_once(work, perform):
    append = bash("echo once >> log.txt")
    play = (
        Play()
        .step(Cut(append, after_events=3))
        .step(append)
        .step(Reply("Logged."), "Exit code 0")
    )  # fmt: skip
    assert perform(play).code == 0
    assert (work / "log.txt").read_text() == "once\n"


def test_task_12_arguments_that_are_no_json_and_a_tool_that_is_not_there(work, perform):
    play = (
        Play()
        .step(Reply(tool_calls=[Call("write", '{"path": "x.txt", "content": "a')]))
        .step(Reply(tool_calls=[Call("wrte", {"path": "x.txt", "content": "a"})]), "could not be read")
        .step(call("write", path="x.txt", content="a\n"), "Did you mean write?")
        .step(Reply("Written."), "Created")
    )
    assert perform(play).code == 0
    assert (work / "x.txt").read_text() == "a\n"
