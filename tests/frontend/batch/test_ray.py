"""`tenuto batch --engine ray` on a local Ray cluster of three nodes, of which some are killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.engine.cluster import RayCluster, listed, raylets_over, three_nodes
from tests.frontend.batch.conftest import Bench, Slow, is_alive, wait_until, words_of
from tests.server import Call, Reply, Request, ServerThread

pytest.importorskip("ray", reason="Ray is not installed (pip install 'tenuto[batch]'; 240 MB)")


@contextmanager
def ray_cluster(bench: Bench, model: Any) -> Iterator[RayCluster]:
    """Begin three nodes, and a server that answers as the model."""
    with ServerThread(model) as server:
        bench.environ |= server.environ()
        with three_nodes(bench.environ) as nodes:
            yield nodes


def raylets_with_agents(cluster: int) -> dict[int, int]:
    """Return the agents below a cluster, and the raylet over each."""
    return raylets_over(" -m tenuto -p ", cluster)


@pytest.fixture
def cluster(bench: Bench) -> Iterator[tuple[RayCluster, Slow]]:
    model = Slow()
    with ray_cluster(bench, model) as nodes:
        yield nodes, model


LONG = 150
"""Seconds: each process of a cluster imports Ray, three nodes share this machine."""
TASKS = [{"id": name, "prompt": name} for name in ("quick-1", "quick-2")]
SLOW = [{"id": f"s{number}", "prompt": "slow"} for number in range(3)]


@pytest.mark.full
def test_l5_a_lost_node_and_a_lost_worker_lose_no_finished_task_and_theirs_run_again(bench: Bench, cluster, ended):
    nodes, model = cluster
    bench.write(*TASKS, *SLOW)
    process = bench.start("--engine", "ray")
    ended.append(process)
    wait_until(lambda: len(bench.results) == 2 and model.prompts.count("slow") == 3, LONG)
    wait_until(lambda: len(set(raylets_with_agents(nodes.process.pid).values())) == 3)
    agents = {raylet: agent for agent, raylet in raylets_with_agents(nodes.process.pid).items()}
    table = listed()
    first, second = nodes.others
    (head,) = {*agents} - {first, second}
    model.hangs = False
    nodes.kill_node(first)
    wait_until(lambda: not is_alive(agents[first]))
    worker = table[table[agents[second]][0]][0]
    assert "ray::" in table[worker][1]
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not is_alive(agents[second]))
    os.kill(agents[head], signal.SIGKILL)
    output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, output + errors
    assert {one["outcome"] for one in bench.results.values()} == {"done"}
    assert (model.prompts.count("quick-1"), model.prompts.count("quick-2")) == (1, 1)
    assert (len(bench.results), errors.count(": again, ")) == (5, 3)
    assert len(output.splitlines()) == 5 + 1, output  # Ray's own words about the node are not among them


@pytest.mark.full
def test_l5_a_driver_on_ray_that_is_killed_leaves_no_agent_and_a_second_run_goes_on(bench: Bench, cluster, ended):
    nodes, model = cluster
    bench.write(*TASKS, SLOW[0])
    process = bench.start("--engine", "ray")
    ended.append(process)
    wait_until(lambda: len(bench.results) == 2 and "slow" in model.prompts, LONG)
    agents = raylets_with_agents(nodes.process.pid)
    assert len(agents) == 1
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_alive(agent) for agent in agents))
    model.hangs = False
    done = bench.run("--engine", "ray", "--json")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    assert (model.prompts.count("quick-1"), model.prompts.count("quick-2")) == (1, 1)
    assert bench.worktrees == []


@pytest.mark.full
def test_l5_ctrl_c_ends_agents_on_ray_in_order(bench: Bench, cluster, ended):
    nodes, model = cluster
    bench.write(SLOW[0])
    process = bench.start("--engine", "ray")
    ended.append(process)
    wait_until(lambda: "slow" in model.prompts, LONG)
    agents = raylets_with_agents(nodes.process.pid)
    assert len(agents) == 1
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    wait_until(lambda: not any(is_alive(agent) for agent in agents))
    wait_until(lambda: any("Interrupted before" in one.read_text() for one in bench.folder.rglob("events.jsonl")))


MANY = 200


def writes_its_own(prompts: Counter[str]) -> Callable[[Request], Reply]:
    """Return a model that has each agent write a file of its own, and counts how often each task was begun."""

    def answer(request: Request) -> Reply:
        name = words_of(request).split()[0]
        if any(item.kind == "result" for item in request.items):
            return Reply("Done.")
        prompts[name] += 1
        return Reply(tool_calls=[Call("write", {"path": f"{name}.txt", "content": f"{name}\n"})])

    return answer


@pytest.mark.full
@pytest.mark.timeout(1_200)
def test_l5_of_200_tasks_none_is_lost_when_a_worker_a_node_and_the_driver_are_killed(bench: Bench, ended):
    prompts: Counter[str] = Counter()
    with ray_cluster(bench, writes_its_own(prompts)) as nodes:
        names = [f"t{number}" for number in range(MANY)]
        bench.write(*({"id": name, "prompt": f"{name} please", "mode": "edits"} for name in names))
        process = bench.start("--engine", "ray")
        ended.append(process)
        wait_until(lambda: len(bench.results) >= 20, LONG)
        os.kill(worker_of_some_agent(nodes), signal.SIGKILL)
        wait_until(lambda: len(bench.results) >= 50, LONG)
        nodes.kill_node(nodes.others[0])
        wait_until(lambda: len(bench.results) >= 90, LONG)
        process.kill()
        _output, errors = process.communicate()
        finished, begun = {*bench.results}, prompts.copy()
        assert 0 < errors.count(": again, ") <= 2 * 3
        done = bench.run("--engine", "ray", "--json", patience=10 * LONG)
        assert done.returncode == 0, done.stderr
        assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {*names} - finished
        assert bench.results.keys() == {*names}
        assert {one["outcome"] for one in bench.results.values()} == {"done"}
        assert {name: prompts[name] for name in finished} == {name: begun[name] for name in finished}  # not once more
        assert sum(prompts.values()) - MANY <= 3 * 3  # no more than what ran when something was killed
        for name in names:
            assert f"+{name}\n" in (bench.kept / f"{name}.patch").read_text()
        assert bench.worktrees == []


def worker_of_some_agent(nodes: RayCluster) -> int:
    """Return the process of Ray's that has an agent below it at this moment."""
    found: list[int] = []

    def look() -> bool:
        table = listed()
        for agent in raylets_with_agents(nodes.process.pid):
            above = agent
            while above in table and not table[above][1].startswith("ray::"):
                above = table[above][0]
            if above in table:
                found.append(above)
        return bool(found)

    wait_until(look)
    return found[0]
