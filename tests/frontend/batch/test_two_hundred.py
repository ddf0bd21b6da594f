"""200 tasks over several repositories: whatever is killed on the way, what comes out is that of a run left alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_models import MODELS
from tests.cli.test_models import environ as gateway
from tests.engine.cluster import NOT_INSTALLED, agents_on, is_ray_installed, three_nodes, worker_over_some
from tests.frontend.batch.conftest import Bench, agents_of, is_alive, wait_until, words_of
from tests.server import Call, Reply, Request, ServerThread
from tests.server.reply import Tokens
from tests.server.server import NO_SANDBOX

TASKS, REPOSITORIES = 200, 5
PRICED = "anthropic/claude-opus-5-5"
LONG = 1_500
"""Seconds to wait at most: the machine may be busy."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(3 * LONG),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]


class Many:
    """The tasks, what a run that nobody disturbed has made of them, and how often each was begun since."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.names = [f"t{number}" for number in range(TASKS)]
        self.repositories = [folder / f"repo-{number}" for number in range(REPOSITORIES)]
        self.begun: Counter[str] = Counter()
        for place in self.repositories:
            shutil.copytree(self.bench.repo, place)
        self.bench.write(
            *(
                {
                    "id": name,
                    "prompt": f"{name} please",
                    "mode": "edits",
                    "model": PRICED,
                    "repo": str(self.repositories[number % REPOSITORIES]),
                    "check": f"grep -q {name} {name}.txt",
                }
                for number, name in enumerate(self.names)
            )
        )
        self.calm: list[dict[str, Any]] = []
        self.report = ""

    def answer(self, request: Request) -> Reply:
        """Have each agent write a file of its own, at a price of its own."""
        name = words_of(request).split()[0]
        usage = Tokens(input=1_000 + int(name[1:]), output=10)
        if any(item.kind == "result" for item in request.items):
            return Reply("Done.", usage=usage)
        self.begun[name] += 1
        return Reply(tool_calls=[Call("write", {"path": f"{name}.txt", "content": f"{name}\n"})], usage=usage)

    def begin_anew(self) -> None:
        """Forget what was done."""
        self.begun.clear()
        self.bench.results_file.unlink(missing_ok=True)
        shutil.rmtree(self.bench.kept, ignore_errors=True)

    def lines(self) -> list[dict[str, Any]]:
        """Return the results in the order of the tasks, without what no two runs have in common."""
        rows = [json.loads(line) for line in self.bench.results_file.read_bytes().splitlines()]
        assert all(row.pop("session_id") and row.pop("duration_ms") for row in rows)
        return sorted(rows, key=lambda row: int(row["id"][1:]))

    def read_report(self) -> str:
        """Return the report, without times and names of sessions."""
        text = (self.bench.kept / "report.md").read_text()
        return re.sub(r"\b\d+h \d+m\b|\b\d+m( \d+s)?\b|\b[\d.]+s\b|-r [0-9a-f]+-\d+-\d+", "*", text)

    def agents(self) -> list[int]:
        """Return the agents of these tasks that run, whoever started them."""
        listed = subprocess.run(["ps", "-eo", "pid="], capture_output=True, text=True, check=True).stdout.split()
        mark, found = os.fsencode(self.bench.folder), list[int]()
        for pid in map(int, listed):
            try:
                words, environ = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
            except OSError:
                continue
            if b"\0tenuto\0-p\0" in words and mark in environ:
                found.append(pid)
        return found

    def check(self, finished: set[str], begun: Counter[str], done: subprocess.CompletedProcess[str], lost: int) -> None:
        """Assert that all is done, nothing of what was finished again, and that it came out as in calm.

        `lost` is how many tries can have come to nothing.
        """
        assert done.returncode == 0, done.stderr
        assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {*self.names} - finished
        assert {name: self.begun[name] for name in finished} == {name: begun[name] for name in finished}
        assert TASKS <= sum(self.begun.values()) <= TASKS + lost
        rows = self.lines()
        assert [row["id"] for row in rows] == self.names
        assert sum(row["attempts"] - 1 for row in rows) <= lost
        assert [row | {"attempts": 1} for row in rows] == self.calm
        assert self.read_report() == self.report
        for name in self.names:
            assert f"+{name}\n" in (self.bench.kept / f"{name}.patch").read_text()
        self.check_nothing_is_left()

    def check_nothing_is_left(self) -> None:
        """Assert that no agent, worktree or temporary folder is there."""
        assert self.agents() == []
        for place in self.repositories:
            listed = subprocess.run(["git", "worktree", "list"], cwd=place, capture_output=True, text=True, check=True)
            assert listed.stdout.count("\n") == 1, listed.stdout
        assert list((self.bench.folder / ".cache" / "tenuto" / "worktrees").glob("*/*")) == []
        assert list(self.temporary.glob("tenuto*")) == []


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    one = Many(tmp_path_factory.mktemp("many"))
    with ServerThread(one.answer, listed_window=0, models=MODELS, keep_bodies=False) as server:
        one.bench.environ |= gateway(one.bench.folder, server) | {"TMPDIR": str(one.temporary)}
        one.bench.environ |= {name: value for name, value in os.environ.items() if name == NO_SANDBOX}
        begun = time.monotonic()
        done = one.bench.run("--json", patience=LONG)
        assert done.returncode == 0, done.stdout + done.stderr
        tell(begun, "left alone", len(one.bench.results))
        one.calm, one.report = one.lines(), one.read_report()
        assert {(row["outcome"], row["attempts"], row["total_cost_usd"] > 0) for row in one.calm} == {("done", 1, True)}
        assert len({row["total_cost_usd"] for row in one.calm}) == TASKS
        one.check_nothing_is_left()
        yield one


def tell(begun: float, what: str, finished: int) -> None:
    """Print how far a run is: `-s` shows it."""
    print(f"{time.monotonic() - begun:6.1f} s, {finished:3} of {TASKS} finished: {what}")


def kill_some(candidates: Callable[[], list[int]]) -> None:
    """Kill -9 one process while it runs: it is held first, so that it cannot come to its end meanwhile."""

    def kill() -> bool:
        for pid in candidates():
            try:
                os.kill(pid, signal.SIGSTOP)
                held = is_alive(pid)
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            if held:
                return True
        return False

    wait_until(kill, LONG)


def test_l5_of_200_tasks_here_none_is_lost_when_an_agent_and_the_driver_are_killed(many: Many, ended):
    many.begin_anew()
    bench, begins = many.bench, time.monotonic()
    process = bench.start()
    ended.append(process)
    wait_until(lambda: len(bench.results) >= 20, LONG)
    kill_some(lambda: agents_of(process.pid))
    tell(begins, "kill -9 of an agent", len(bench.results))
    wait_until(lambda: len(bench.results) >= 90, LONG)
    process.kill()
    _output, errors = process.communicate()
    finished, begun = {*bench.results}, many.begun.copy()
    tell(begins, f"kill -9 of the driver, {len(many.agents())} agents still there", len(finished))
    wait_until(lambda: many.agents() == [], LONG)
    assert errors.count(": again, ") == 1
    done = bench.run("--json", patience=LONG)
    tell(begins, f"resumed and done, {sum(many.begun.values()) - TASKS} tries lost", len(bench.results))
    many.check(finished, begun, done, lost=1 + len(os.sched_getaffinity(0)))


@pytest.mark.skipif(not is_ray_installed(), reason=NOT_INSTALLED)
def test_l5_of_200_tasks_on_ray_none_is_lost_when_a_worker_a_node_and_the_driver_are_killed(many: Many, ended):
    many.begin_anew()
    bench = many.bench
    with three_nodes(bench.environ) as nodes:
        begins = time.monotonic()
        process = bench.start("--engine", "ray")
        ended.append(process)
        wait_until(lambda: len(bench.results) >= 20, LONG)
        os.kill(worker_over_some(lambda: agents_on(nodes), LONG), signal.SIGKILL)
        tell(begins, "kill -9 of a worker", len(bench.results))
        wait_until(lambda: len(bench.results) >= 50, LONG)
        nodes.kill_node(nodes.others[0])
        tell(begins, "kill -9 of a node", len(bench.results))
        wait_until(lambda: len(bench.results) >= 90, LONG)
        process.kill()
        _output, errors = process.communicate()
        finished, begun = {*bench.results}, many.begun.copy()
        tell(begins, f"kill -9 of the driver, {len(many.agents())} agents still there", len(finished))
        assert 0 < errors.count(": again, ") <= 2 * 3
        wait_until(lambda: many.agents() == [], LONG)
        done = bench.run("--engine", "ray", "--json", patience=LONG)
        tell(begins, f"resumed and done, {sum(many.begun.values()) - TASKS} tries lost", len(bench.results))
        many.check(finished, begun, done, lost=3 * 3)
