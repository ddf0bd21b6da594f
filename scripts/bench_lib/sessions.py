"""`scripts/bench sessions`: what is done in a session, by the session's length, as a table and a picture (R-069)."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from scripts.bench_lib.lengths import LENGTHS, inside, opening, session_of
from scripts.bench_lib.measures import Figures, Lab, quantile
from scripts.bench_lib.process import FailedRunError, run
from scripts.bench_lib.program import ROOT, Program, tenuto
from scripts.bench_lib.report import Results, amount, save

STEPS = 20
PICKED = 3_000
EMPTY = "empty"
ROWS = {
    "open ms": "open",
    "first paint ms": "first paint",
    "transcript ms": "transcript on screen",
    "gap median ms": "one step",
    "to the top ms": "to the top",
    "recall by the log ms": "recall, by the log alone",
    "index ms": "its index, made",
    "index MB": "its index, on the disk",
    "recall ms": "recall",
    "recall first ms": "recall, first match",
    "memory MB": "memory, whole program",
}
"""The figures that the table shows, and what it calls them; the JSON has every one."""


def steps_in(label: str) -> Callable[[Lab, Program], Figures]:
    """The program's own time between a finished response and the next request, in a session that is gone on with."""

    def measure(lab: Lab, program: Program) -> Figures:
        directory = session_of(lab, label)
        lab.server.play(f"reads:{STEPS}")
        words = lab.command(f"{program.one_shot} --resume {directory.name}")
        done = run(words, lab.environ(program), lab.surroundings.project)
        records = lab.server.records()
        if len(records) != STEPS + 1:
            raise FailedRunError(f"{len(records)} model calls came instead of {STEPS + 1}")
        gaps = [(after["received"] - before["ended"]) * 1000 for before, after in pairwise(records)]
        return {
            "request after ms": (records[0]["received"] - done.started) * 1000,
            "gap median ms": quantile(gaps, 0.5),
            "gap p95 ms": quantile(gaps, 0.95),
        }

    return measure


def picker(lab: Lab, program: Program) -> Figures:
    """Listing 3 000 sessions, as a picker does, in a process that does nothing else."""
    words = [str(ROOT / ".venv/bin/python"), "-m", "scripts.bench_lib.sessions", str(lab.surroundings.directory)]
    done = run(words, lab.environ(program) | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}, ROOT)
    return json.loads(done.output)


def list_many(place: Path) -> Figures:
    """Make 3 000 sessions under `place`, unless they are there, and list them."""
    from tests.session.long import write_many

    from tenuto.session.library.catalog import list_sessions

    home = place / "many"
    if not home.is_dir():
        write_many(home, place, PICKED)
    started = time.perf_counter()
    count = len(list_sessions(home))
    seconds = time.perf_counter() - started
    if count != PICKED:
        raise FailedRunError(f"{count} sessions were listed instead of {PICKED}")
    return {"list ms": seconds * 1000}


def measure_all(lab: Lab, program: Program, labels: list[str], runs: int) -> Results:
    """Do everything in sessions of every length. What is measured first leaves the session as it was."""
    results = Results()
    for label in labels:
        for measure in (opening(label), inside(label), steps_in(label)):
            for number in range(-1, runs):
                try:
                    figures = measure(lab, program)
                except (FailedRunError, OSError) as error:
                    results.failures.append(f"{label}: {error}")
                    break
                if number >= 0:
                    results.add("sessions", label, figures)
        print(f"{label} done", file=sys.stderr, flush=True)
    for _ in range(runs):
        results.add("picker", f"{PICKED} sessions", picker(lab, program))
    return results


def matrix(results: Results) -> str:
    """Return a text table: a row a figure, a column a length; the last column holds the longest against the empty."""
    labels = [label for label in LENGTHS if any(key[2] == label for key in results.series)]
    rows = [("", *labels, "× empty")]
    for figure, name in ROWS.items():
        found = [results.series.get(("sessions", figure, label)) for label in labels]
        unit = figure.rpartition(" ")[2]
        cells = [f"{amount(series.median)} {unit}" if series else "–" for series in found]
        first, last = found[0], found[-1]
        rows.append((name, *cells, amount(last.median / first.median) if first and last and first.median else ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    listed = results.series.get(("picker", "list ms", f"{PICKED} sessions"))
    if listed:
        lines.append(f"picker of {PICKED} sessions: {amount(listed.median)} ms")
    return "\n".join([*lines, *(f"not measured: {failure}" for failure in results.failures)])


def main(arguments: list[str], lab: Lab) -> int:
    """Measure, print the table, write `bench-results/sessions/`; 1 when something could not be measured."""
    parser = argparse.ArgumentParser(prog="scripts/bench sessions", description=__doc__)
    parser.add_argument("--largest", choices=list(LENGTHS), default="1GB", help="the longest session (1GB takes time)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "bench-results")
    chosen = parser.parse_args(arguments)
    labels = list(LENGTHS)[: list(LENGTHS).index(chosen.largest) + 1]
    own = tenuto(str(ROOT / ".venv/bin/tenuto"), "openai-chat")
    results = measure_all(lab, own, labels, chosen.runs)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    written = save(results, {own.name: asdict(own)}, EMPTY, chosen.output / "sessions", stamp)
    print(matrix(results))
    print("\nwritten:", *(path.name for path in written), "in", f"{chosen.output.name}/sessions")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list_many(Path(sys.argv[1]))))
