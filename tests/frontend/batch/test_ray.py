"""`tenuto batch --engine ray` on a local Ray cluster of three nodes, of which some are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.engine.cluster import NOT_INSTALLED, RayCluster, agents_on, is_ray_installed, three_nodes, worker_over_some
from tests.frontend.batch.conftest import Bench, Slow, is_alive, wait_until
from tests.server import ServerThread

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(not is_ray_installed(), reason=NOT_INSTALLED),
]


@contextmanager
def ray_cluster(bench: Bench, model: Any) -> Iterator[RayCluster]:
    """Begin three nodes, and a server that answers as the model."""
    with ServerThread(model) as server:
        bench.environ |= server.environ()
        with three_nodes(bench.environ) as nodes:
            yield nodes


@pytest.fixture
def cluster(bench: Bench) -> Iterator[tuple[RayCluster, Slow]]:
    model = Slow()
    with ray_cluster(bench, model) as nodes:
        yield nodes, model


LONG = 600
"""Seconds: each process of a cluster imports Ray, three nodes share this machine."""
TASKS = [{"id": name, "prompt": name} for name in ("quick-1", "quick-2")]
SLOW = [{"id": f"s{number}", "prompt": "slow"} for number in range(3)]


def test_l5_a_lost_node_and_a_lost_worker_lose_no_finished_task_and_theirs_run_again(bench: Bench, cluster, ended):
    nodes, model = cluster
    bench.write(*TASKS, *SLOW)
    process = bench.start("--engine", "ray")
    ended.append(process)
    wait_until(lambda: len(bench.results) == 2 and model.prompts.count("slow") == 3, LONG)
    wait_until(lambda: len(set(agents_on(nodes).values())) == 3, LONG)
    agents = {raylet: agent for agent, raylet in agents_on(nodes).items()}
    first, second = nodes.others
    (head,) = {*agents} - {first, second}
    model.hangs = False
    nodes.kill_node(first)
    wait_until(lambda: not is_alive(agents[first]), LONG)
    os.kill(worker_over_some(lambda: [agents[second]], LONG), signal.SIGKILL)
    wait_until(lambda: not is_alive(agents[second]), LONG)
    os.kill(agents[head], signal.SIGKILL)
    output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, output + errors
    assert {one["outcome"] for one in bench.results.values()} == {"done"}
    assert (model.prompts.count("quick-1"), model.prompts.count("quick-2")) == (1, 1)
    assert (len(bench.results), errors.count(": again, ")) == (5, 3)
    assert len(output.splitlines()) == 5 + 1, output  # Ray's own words about the node are not among them


def test_l5_a_driver_on_ray_that_is_killed_leaves_no_agent_and_a_second_run_goes_on(bench: Bench, cluster, ended):
    nodes, model = cluster
    bench.write(*TASKS, SLOW[0])
    process = bench.start("--engine", "ray")
    ended.append(process)
    wait_until(lambda: len(bench.results) == 2 and "slow" in model.prompts, LONG)
    agents = agents_on(nodes)
    assert len(agents) == 1
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_alive(agent) for agent in agents), LONG)
    model.hangs = False
    done = bench.run("--engine", "ray", "--json", patience=LONG)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    assert (model.prompts.count("quick-1"), model.prompts.count("quick-2")) == (1, 1)
    assert bench.worktrees == []


def test_l5_ctrl_c_ends_agents_on_ray_in_order(bench: Bench, cluster, ended):
    nodes, model = cluster
    bench.write(SLOW[0])
    process = bench.start("--engine", "ray")
    ended.append(process)
    wait_until(lambda: "slow" in model.prompts, LONG)
    agents = agents_on(nodes)
    assert len(agents) == 1
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 130, output + errors
    wait_until(lambda: not any(is_alive(agent) for agent in agents), LONG)
    wait_until(lambda: any("Interrupted before" in one.read_text() for one in bench.folder.rglob("events.jsonl")), LONG)
