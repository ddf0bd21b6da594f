"""`scripts/bench guard`: what safety costs: a verdict, the parser's import, a command with and without a sandbox.

Each run is a process of its own: `python -m scripts.bench_lib.guard FOLDER` prints its figures as JSON. The machine's
load shows in the medians; `least` is what it costs without.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.bench_lib.measures import Figures, Lab, quantile
from scripts.bench_lib.process import FailedRunError, run
from scripts.bench_lib.program import ROOT, tenuto
from scripts.bench_lib.report import Results, save, table

if TYPE_CHECKING:
    from tenuto.guard.sandbox.sandbox import Confined, Sandbox

ROUNDS = 5
COMMANDS = 25
"""Commands of a run of each kind."""
SETTLED_SECONDS = 0.2
KINDS = ("bubblewrap", "landlock")


def parser_import(folder: Path) -> Figures:
    """Import the parser as the first command does, and judge that command."""
    from tenuto.tool.bash import command_subject

    started = time.perf_counter()
    command_subject("ls src | head", folder, [str(folder)], os.environ)
    first = time.perf_counter() - started
    started = time.perf_counter()
    command_subject("ls tests | head", folder, [str(folder)], os.environ)
    return {"first ms": first * 1000, "second ms": (time.perf_counter() - started) * 1000}


def verdicts(folder: Path) -> Figures:
    """Judge the commands of recorded sessions, warm; `cpu` is what the load of the machine does not change."""
    from tests.guard.recorded import COMMANDS as RECORDED
    from tests.guard.recorded import make_places

    from tenuto.guard.approval import judge

    places = make_places(folder, RECORDED)
    wall: list[float] = []
    cpu: list[float] = []
    gc.freeze()
    for number in range(1 + ROUNDS):
        for recorded in RECORDED:
            before, started = time.thread_time(), time.perf_counter()
            judge("ask", places.subject(recorded), (), places.names)
            if number:
                wall.append((time.perf_counter() - started) * 1000)
                cpu.append((time.thread_time() - before) * 1000)
    return {
        "median ms": quantile(wall, 0.5),
        "p99 ms": quantile(wall, 0.99),
        "median cpu ms": quantile(cpu, 0.5),
        "p99 cpu ms": quantile(cpu, 0.99),
        "worst cpu ms": max(cpu),
    }


async def commands(folder: Path) -> Figures:
    """Run `true` by the door that the bash tool uses: plainly, and in each sandbox of this machine."""
    boxes = _boxes(folder)
    ways = _ways(folder, boxes)
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(-2, COMMANDS):
        for name, confine in ways.items():
            cost = await _one_command(folder, confine)
            if number >= 0:
                costs[name].append(cost)
    for box in boxes.values():
        box.close()
    found: Figures = {}
    for name, each in costs.items():
        found[f"{name} median ms"] = quantile(each, 0.5)
        found[f"{name} least ms"] = min(each)
        if name != "plain":
            found[f"{name} adds ms"] = quantile(each, 0.5) - quantile(costs["plain"], 0.5)
            found[f"{name} adds least ms"] = min(each) - min(costs["plain"])
    return found


async def processor(folder: Path) -> Figures:
    """Run the same again, and count the processor time of all that it takes, here and in every process below."""
    from tenuto.guard.sandbox.launching.starting import close_starters

    boxes = _boxes(folder)
    found: Figures = {}
    for name, confine in _ways(folder, boxes).items():
        await _one_command(folder, confine)
        close_starters()
        before = _processor_seconds()
        for _ in range(COMMANDS):
            await _one_command(folder, confine)
        await asyncio.sleep(SETTLED_SECONDS)
        close_starters()  # what has ended counts only then
        found[f"{name} cpu ms"] = (_processor_seconds() - before) * 1000 / COMMANDS
    for box in boxes.values():
        box.close()
    return found


def _processor_seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _boxes(folder: Path) -> dict[str, Sandbox]:
    from tenuto.guard.sandbox.machine import find_machine
    from tenuto.guard.sandbox.policy import Places
    from tenuto.guard.sandbox.sandbox import Sandbox

    root = os.path.realpath(folder)

    def places(private: str) -> Places:
        return Places(workspace=root, private=private, own_home=f"{root}/.home", outputs=(f"{root}/.home/outputs",))

    return {kind: Sandbox(places, wish=kind) for kind in KINDS if find_machine(kind).kind == kind}


def _ways(folder: Path, boxes: dict[str, Sandbox]) -> dict[str, Callable[[], Confined | None]]:
    def by(box: Sandbox) -> Callable[[], Confined | None]:
        return lambda: box.confine(folder, os.environ, strict=False)

    return {"plain": lambda: None} | {kind: by(box) for kind, box in boxes.items()}


async def _one_command(folder: Path, confine: Callable[[], object]) -> float:
    from tenuto.tool.process.process import Collector, start_command

    started = time.perf_counter()
    command = start_command(
        *("true", folder, os.environ, Collector(lambda: folder / "output"), folder),
        confined=confine(),  # pyright: ignore[reportArgumentType]
    )
    code = await command.exited
    cost = (time.perf_counter() - started) * 1000
    await command.drained.wait()
    if code:
        raise FailedRunError(f"true ended with {code}")
    return cost


PARTS: dict[str, Callable[[Path], Figures]] = {
    "parser": parser_import,
    "verdict": verdicts,
    "command": lambda folder: asyncio.run(commands(folder)),
    "processor": lambda folder: asyncio.run(processor(folder)),
}


def main(arguments: list[str], lab: Lab) -> int:
    """Measure, print a table, write the files; 1 when something could not be measured."""
    parser = argparse.ArgumentParser(prog="scripts/bench guard", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "bench-results")
    chosen = parser.parse_args(arguments)
    own = tenuto(str(ROOT / ".venv/bin/tenuto"), "openai-chat")
    results = Results()
    environ = lab.environ(own) | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    for part in PARTS:
        for _ in range(chosen.runs):
            folder = tempfile.mkdtemp(dir=lab.surroundings.directory)
            words = [sys.executable, "-m", "scripts.bench_lib.guard", part, folder]
            try:
                results.add(f"guard-{part}", own.name, json.loads(run(words, environ, ROOT).output))
            except (FailedRunError, OSError, ValueError) as error:
                results.failures.append(f"{part}: {error}")
                break
        print(f"{part} done", file=sys.stderr, flush=True)
    written = save(results, {own.name: asdict(own)}, own.name, chosen.output, time.strftime("guard-%Y%m%d-%H%M%S"))
    print(table(results, own.name))
    print("written:", *(path.name for path in written), "in", chosen.output.name)
    return 1 if results.failures else 0


if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]))))
