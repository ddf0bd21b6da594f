"""What one more key behind `@` costs in a project of any number of files, in a process of its own.

`python -m scripts.bench_lib.paths_within FILES` prints its figures as JSON; all are processor time, but for what lies
on the disk (first rows, whole listing).
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tenuto.tui.complete.paths import PathIndex, completions, make_path_list

WORDS = (
    *("app", "core", "model", "view", "session", "test", "util", "index", "main"),
    *("config", "parser", "render", "stream", "agent", "tool", "guard", "server", "docs"),
)
QUERIES = ("a", "ap", "app", "apps", "sr", "srvmn", "main_12", "xyzzy", "session/ren", "rndstrm", "config.py", "zq")
FOLDERS = 4_000


def make_files(count: int) -> list[str]:
    """Return the paths of a made-up project, always the same ones."""
    chance = random.Random(1)
    folders = ["/".join(chance.choices(WORDS, k=chance.randint(1, 5))) + str(number % 50) for number in range(FOLDERS)]
    return [f"{chance.choice(folders)}/{chance.choice(WORDS)}_{number}.py" for number in range(count)]


def measure(count: int) -> dict[str, float]:
    """Return the figures."""
    started = time.process_time()
    paths = make_path_list(make_files(count))
    listed = time.process_time() - started
    costs: list[float] = []
    for query in QUERIES:
        for _ in range(3):
            started = time.process_time()
            completions(paths.search(query))
            costs.append((time.process_time() - started) * 1000)
    figures = {"list ms": listed * 1000, "key ms": statistics.median(costs), "key worst ms": max(costs)}
    return figures | on_disk(count)


def on_disk(count: int) -> dict[str, float]:
    """Return what the first key and the whole listing take where the files are real."""
    with tempfile.TemporaryDirectory(prefix="tenuto-bench-") as place:
        root = Path(place)
        for file in make_files(count):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).touch()
        index = PathIndex(root, time.monotonic)
        started = time.perf_counter()
        index.complete("")
        first = time.perf_counter()
        index.refresh()
        return {"first rows ms": (first - started) * 1000, "whole listing ms": (time.perf_counter() - first) * 1000}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    print(json.dumps(measure(int(sys.argv[1]))))
