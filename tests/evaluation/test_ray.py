"""`tenuto eval compaction --engine ray` on a local Ray cluster of three nodes, one of which is killed."""

from __future__ import annotations

import os
import signal

import pytest

from tests.engine.cluster import listed, raylets_over, three_nodes
from tests.evaluation.test_many import LONG, WORKER, cases, lines, runs  # noqa: F401 - a fixture
from tests.evaluation.times import without_times
from tests.frontend.batch.conftest import wait_until

pytest.importorskip("ray", reason="Ray is not installed (pip install 'tenuto[batch]'; 240 MB)")
SESSIONS = 30


@pytest.mark.full
@pytest.mark.timeout(1_200)
def test_l5_of_30_sessions_on_ray_none_is_lost_when_a_worker_a_node_and_the_driver_are_killed(runs, tmp_path):  # noqa: F811
    one, out, serial = runs(SESSIONS), tmp_path / "out", tmp_path / "serial"
    with three_nodes(one.environ) as nodes:
        process = one.start(out, "--engine", "ray")
        wait_until(lambda: len(lines(out)) >= 3, LONG)
        os.kill(ray_worker(nodes.process.pid), signal.SIGKILL)
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


def ray_worker(cluster: int) -> int:
    """Return a process of Ray's that has a session measured below it at this moment."""
    found: list[int] = []

    def look() -> bool:
        table = listed()
        for measuring in raylets_over(WORKER, cluster):
            above = measuring
            while above in table and not table[above][1].startswith("ray::"):
                above = table[above][0]
            if above in table:
                found.append(above)
        return bool(found)

    wait_until(look, LONG)
    return found[0]
