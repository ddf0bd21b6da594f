"""`tenuto eval compaction --engine ray` on a local Ray cluster of three nodes, one of which is killed."""

from __future__ import annotations

import os
import signal

import pytest

from tests.engine.cluster import NOT_INSTALLED, is_ray_installed, raylets_over, three_nodes, worker_over_some
from tests.evaluation.test_many import LONG, WORKER, cases, lines, runs  # noqa: F401 - a fixture
from tests.evaluation.times import without_times
from tests.frontend.batch.conftest import wait_until

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(not is_ray_installed(), reason=NOT_INSTALLED),
]
SESSIONS = 30


def test_l5_of_30_sessions_on_ray_none_is_lost_when_a_worker_a_node_and_the_driver_are_killed(runs, tmp_path):  # noqa: F811
    one, out, serial = runs(SESSIONS), tmp_path / "out", tmp_path / "serial"
    with three_nodes(one.environ) as nodes:
        process = one.start(out, "--engine", "ray")
        wait_until(lambda: len(lines(out)) >= 3, LONG)
        os.kill(worker_over_some(lambda: raylets_over(WORKER, nodes.process.pid), LONG), signal.SIGKILL)
        wait_until(lambda: len(lines(out)) >= 8, LONG)
        nodes.kill_node(nodes.others[0])
        wait_until(lambda: len(lines(out)) >= 14, LONG)
        process.kill()
        _, errors = process.communicate()
        assert 1 <= errors.count(b": again, ") <= 2 * 3, errors
        kept = [line for line in lines(out) if line.endswith(b"\n")]
        assert len({*cases(kept)}) == len(kept) < SESSIONS
        wait_until(lambda: not raylets_over(WORKER, nodes.process.pid), LONG)
        one.run(out, "--engine", "ray")
    assert lines(out)[: len(kept)] == kept
    assert len(lines(out)) == len({*cases(lines(out))}) == SESSIONS
    one.run(serial)
    assert sorted(map(without_times, lines(out))) == sorted(map(without_times, lines(serial)))
    assert len({without_times((folder / "report.json").read_bytes()) for folder in (out, serial)}) == 1
