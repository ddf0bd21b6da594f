"""A real Ray cluster of three nodes on this machine, whose nodes can be killed; and who runs below it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.frontend.batch.conftest import wait_until

NODES = """
import sys
from ray.cluster_utils import Cluster
size = {"num_cpus": 1, "object_store_memory": 80_000_000}
# Without what nobody looks at here: each is one more interpreter to start, and Ray gives those of a node 15 s.
spared = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
cluster = Cluster(initialize_head=True, head_node_args=size | spared)
others = [cluster.add_node(**size) for _ in range(2)]
cluster.wait_for_nodes(timeout=300)
programs = lambda node: [one.process for each in node.all_processes.values() for one in each]
print(cluster.address, flush=True)
print(*(node.all_processes["raylet"][0].process.pid for node in others), flush=True)
for line in sys.stdin:
    raylet = int(line)
    (gone,) = (node for node in others if raylet in [program.pid for program in programs(node)])
    for program in programs(gone):
        program.kill()
        program.wait()  # a zombie would be taken for a node that lives
    print("killed", flush=True)
cluster.shutdown()
"""


NOT_INSTALLED = "Ray is not installed (pip install 'tenuto[batch]'; 240 MB)"
STARTS = 10
"""How often three nodes are begun: Ray gives each 30 s, whatever the machine has to do beside it."""


class RayCluster:
    """A process that holds three nodes, each with one core."""

    def __init__(self, environ: dict[str, str]) -> None:
        for _ in range(STARTS):
            with tempfile.TemporaryFile("w+") as said:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", NODES],
                    env=environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    text=True,
                )
                assert self.process.stdout is not None
                self.address = self.process.stdout.readline().strip()
                if self.address:
                    break
                self.process.communicate()
                said.seek(0)
                errors = said.read()
        else:
            pytest.fail(f"no cluster could be started: {errors}")
        self.others = [int(word) for word in self.process.stdout.readline().split()]
        """The raylets of the two nodes that are not the head."""

    def kill_node(self, raylet: int) -> None:
        """Kill -9 a whole node, by its raylet's process id."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{raylet}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "killed\n"

    def close(self) -> None:
        """End all nodes."""
        self.process.communicate(timeout=120)


def is_ray_installed() -> bool:
    """Say whether there is a Ray to begin a cluster with."""
    return find_spec("ray") is not None


def listed() -> dict[int, tuple[int, str]]:
    """Return parent and command line of each process."""
    text = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 2) for line in text.splitlines())
    return {int(row[0]): (int(row[1]), row[2] if len(row) > 2 else "") for row in rows}


def raylets_over(mark: str, cluster: int) -> dict[int, int]:
    """Return the processes below a cluster whose command line has a mark, and the raylet over each."""
    table = listed()
    found: dict[int, int] = {}
    for pid, (parent, words) in table.items():
        if mark not in f"{words} " or "launcher.py" in words or " -c " in words:
            continue
        above, raylet = parent, 0
        while above in table and above not in (0, 1):
            raylet = above if "/raylet/raylet" in table[above][1].split(" ")[0] else raylet
            if above == cluster and raylet:
                found[pid] = raylet
            above = table[above][0]
    return found


def agents_on(nodes: RayCluster) -> dict[int, int]:
    """Return the headless agents below a cluster, and the raylet over each."""
    return raylets_over(" -m tenuto -p ", nodes.process.pid)


def worker_over_some(find: Callable[[], Iterable[int]], patience: float) -> int:
    """Return the process of Ray's over some process that is found, which takes so many seconds at most."""
    found: list[int] = []

    def look() -> bool:
        table = listed()
        for above in find():
            while above in table and not table[above][1].startswith("ray::"):
                above = table[above][0]
            if above in table:
                found.append(above)
        return bool(found)

    wait_until(look, patience)
    return found[0]


@contextmanager
def three_nodes(environ: dict[str, str]) -> Iterator[RayCluster]:
    """Begin three nodes with an environment, which gets their address."""
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        environ |= {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        environ["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
        nodes = RayCluster(environ)
        environ["RAY_ADDRESS"] = nodes.address
        try:
            yield nodes
        finally:
            nodes.close()
