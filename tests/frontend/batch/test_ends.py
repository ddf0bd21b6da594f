"""Ends of a batch that nobody planned: a killed worker, a killed driver, Ctrl+C once and twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.engine.conductor import Conductor, run_conductor
from tenuto.engine.display import LineDisplay, Standing
from tenuto.engine.engine import WorkerLostError
from tenuto.frontend.batch.conduct import Batch, Limits, Places
from tenuto.frontend.batch.results import Attempt, open_results
from tenuto.frontend.batch.tasks import Task
from tenuto.frontend.batch.worker import AgentJob
from tenuto.frontend.batch.worktree import Worktree
from tests.frontend.batch.conftest import Bench, Slow, agents_of, is_alive, wait_until
from tests.program import TENUTO
from tests.server import ServerThread

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
TASKS = (
    {"id": "quick-1", "prompt": "quick-1"},
    {"id": "quick-2", "prompt": "quick-2"},
    {"id": "slow", "prompt": "slow"},
)


def ps() -> str:
    return subprocess.run(["ps", "-ww", "-eo", "args="], capture_output=True, text=True, check=True).stdout


def is_all_but_slow(bench: Bench) -> bool:
    return set(bench.results) == {"quick-1", "quick-2"}


def test_l5_a_worker_that_is_killed_loses_its_own_task_only_and_that_runs_again(bench: Bench, ended):
    bench.write(*TASKS)
    model = Slow()
    with ServerThread(model) as server:
        process = bench.start("--jobs", "2", server=server)
        ended.append(process)
        wait_until(lambda: is_all_but_slow(bench) and "slow" in model.prompts)
        (agent,) = agents_of(process.pid)
        model.hangs = False
        os.kill(agent, signal.SIGKILL)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert {name: (one["outcome"], one["attempts"]) for name, one in bench.results.items()} == {
        "quick-1": ("done", 1),
        "quick-2": ("done", 1),
        "slow": ("done", 2),
    }
    assert bench.worktrees == []


def test_l5_what_git_knows_of_a_worktree_goes_although_its_files_are_gone_already(bench: Bench):
    """A run that is killed while it takes a worktree away."""
    bench.write({"id": "quick-1", "prompt": "quick-1"})
    places = bench.folder / ".cache" / "tenuto" / "worktrees"
    with ServerThread(Slow()) as server:
        bench.run(server=server)  # makes the folder for the worktrees of this file
        (place,) = places.iterdir()
        (place / "quick-1@dead" / "scratch").mkdir(parents=True)
        bench.git("worktree", "add", "-q", "--detach", str(place / "quick-1@dead" / "repo"))
        shutil.rmtree(place / "quick-1@dead" / "repo")
        assert len(bench.worktrees) == 1
        bench.run("--again", "done", server=server)
    assert (bench.worktrees, list(places.glob("*/*"))) == ([], [])


def test_l5_a_driver_that_is_killed_leaves_no_agent_and_a_second_run_goes_on(bench: Bench, ended):
    bench.write(*TASKS)
    model = Slow()
    with ServerThread(model) as server:
        process = bench.start("--jobs", "2", server=server)
        ended.append(process)
        wait_until(lambda: is_all_but_slow(bench) and "slow" in model.prompts)
        (agent,) = agents_of(process.pid)
        process.kill()
        process.wait()
        wait_until(lambda: not is_alive(agent))
        with bench.results_file.open("ab") as file:
            file.write(b'{"id":"slow","outcome":"done"')
        model.hangs = False
        done = bench.run("--json", server=server)
    assert done.returncode == 0, done.stderr
    assert (model.prompts.count("quick-1"), model.prompts.count("quick-2")) == (1, 1)
    assert [name for name in bench.results if f'"id":"{name}"' in done.stdout] == ["slow"]
    assert bench.worktrees == []
    assert list((bench.folder / ".cache" / "tenuto" / "worktrees").glob("*/*")) == []


def test_l5_ctrl_c_ends_agents_in_order_and_says_what_is_left(bench: Bench, ended):
    bench.write(*TASKS, {"id": "slow-2", "prompt": "slow"})
    model = Slow()
    with ServerThread(model) as server:
        process = bench.start("--jobs", "2", server=server)
        ended.append(process)
        running = min(2, len(os.sched_getaffinity(0)))
        wait_until(lambda: is_all_but_slow(bench) and model.prompts.count("slow") == running)
        agents = agents_of(process.pid)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 130, errors
        assert "left, the same command goes on" in output
        assert [agent for agent in agents if is_alive(agent)] == []
        assert bench.worktrees == []
        environ = bench.environ | server.environ()
        listed = subprocess.run(
            [*TENUTO, "sessions", "list"],
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "slow" in listed
        logs = [path.read_text() for path in (bench.folder / "home").rglob("events.jsonl")]
        assert sum("Interrupted before there was an answer" in log for log in logs) == running
        model.hangs = False
        assert bench.run(server=server).returncode == 0
    assert set(bench.results) == {"quick-1", "quick-2", "slow", "slow-2"}


def test_l5_a_second_ctrl_c_ends_at_once_and_leaves_no_process(bench: Bench, ended):
    mark, asked = bench.folder / "begun", bench.folder / "asked"
    stubborn = f"trap 'touch {asked}' TERM INT; touch {mark}; while :; do sleep 0.1; done"
    bench.write({"id": "one", "prompt": "look", "setup": stubborn})
    with ServerThread(Slow()) as server:
        process = bench.start(server=server)
        ended.append(process)
        wait_until(mark.exists)
        process.send_signal(signal.SIGINT)
        wait_until(asked.exists)  # of two signals in a row the system may tell one
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode in (-signal.SIGINT, 130)
    assert "1 left, the same command goes on" in output.splitlines()[-1]
    wait_until(lambda: str(mark) not in ps())
    assert bench.results == {}


FORCED = """
import signal
from tenuto.ending import end_by_force
from tenuto.engine.display import LineDisplay, Standing
display = LineDisplay(Standing(3, "task"))
with display.told(lambda: display.standing.describe_end(1.0, "the same command goes on")):
    end_by_force(signal.SIGINT)
"""


def test_l5_an_end_by_force_says_how_to_go_on():
    done = subprocess.run([sys.executable, "-c", FORCED], capture_output=True, text=True, check=False)
    assert done.stdout == "0 of 3 tasks, 1.0s; 3 left, the same command goes on\n", done.stderr


def test_l5_a_second_batch_over_the_same_tasks_is_refused(bench: Bench, ended):
    bench.write({"id": "slow", "prompt": "slow"})
    model = Slow()
    with ServerThread(model) as server:
        process = bench.start(server=server)
        ended.append(process)
        wait_until(lambda: "slow" in model.prompts)
        second = bench.run(server=server)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert (second.returncode, process.returncode) == (2, 143)
    assert "another tenuto" in second.stderr


class LosesOne:
    """An engine that loses its first job, which makes its worktree only after the next try has begun."""

    jobs = 1

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.seen: list[AgentJob] = []

    async def run(self, job: AgentJob) -> Attempt:
        self.seen.append(job)
        if len(self.seen) == 1:
            raise WorkerLostError("gone")
        Worktree(self.repo, self.seen[0].folder, "HEAD", os.environ)
        return Attempt("done", answer={"result": "done"})

    def close(self) -> None:
        return


def test_l5_a_lost_worker_that_went_on_for_a_while_leaves_nothing_behind(bench: Bench):
    engine = LosesOne(bench.repo)
    places = Places(bench.folder / "places", bench.kept)
    task = Task(id="t", prompt="p", repo=str(bench.repo))
    with contextlib.closing(open_results(bench.results_file)) as results:
        batch = Batch([task], results, Limits(), places, sandboxed=False)
        assert run_conductor(Conductor(engine, batch, LineDisplay(Standing(1, "task")))) == 0
    assert (bench.results["t"]["outcome"], len(engine.seen)) == ("done", 2)
    assert (bench.worktrees, list(places.worktrees.glob("*"))) == ([], [])
