"""The command line of the benchmark: `./scripts/bench --help`."""

from __future__ import annotations

import argparse
import contextlib
import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from scripts.bench_lib.bars import BARE_MS, Speed
from scripts.bench_lib.lengths import LENGTH_MEASURES
from scripts.bench_lib.measures import MEASURES, Lab, Measure
from scripts.bench_lib.process import FailedRunError
from scripts.bench_lib.program import ROOT, Program, Surroundings, interpreter, peers, tenuto
from scripts.bench_lib.report import Results, save, table
from scripts.bench_lib.screens import SCREEN_MEASURES, inline_of
from scripts.bench_lib.server import ModelServer

DESCRIPTION = """Measures Tenuto from outside against a scripted model server on this machine.
Peers get the same environment (ANTHROPIC_*, OPENAI_* point to the server); in their commands {base_url},
{openai_url}, {project} and {home} are filled in. Figures of different runs or machines do not compare: ratios do.
`scripts/bench tui` measures our two screens: starting, streams, worst cases, a transcript of 10 000 items, rest.
`scripts/bench sessions` measures what is done in sessions of 2 KB to 1 GB, and has a --help of its own.
`scripts/bench guard` measures what safety costs: verdicts, the parser, a command with and without a sandbox.
`scripts/bench peers` measures us beside the agents that are installed here, and writes docs/benchmarks."""

ALL = (*MEASURES, *SCREEN_MEASURES, *LENGTH_MEASURES)
TUI = "tui"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    names = [measure.name for measure in ALL]
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=11, help="runs of the short measures (long ones: a share of it)")
    parser.add_argument(
        "--only",
        action="append",
        choices=[TUI, *names],
        metavar="NAME",
        help=f"{TUI} for all tui-*; {', '.join(names)}",
    )
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="interactive, beside us")
    parser.add_argument("--peer-print", action="append", default=[], metavar="NAME=COMMAND", help="a peer's one-shot")
    parser.add_argument("--peer-version", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--protocol", default="openai-chat", choices=["openai-chat", "openai", "anthropic"])
    parser.add_argument("--tenuto", default=str(ROOT / ".venv/bin/tenuto"), metavar="COMMAND", help="what to measure")
    parser.add_argument("--output", type=Path, default=ROOT / "bench-results")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def laboratory() -> Iterator[Lab]:
    """Yield a lab with its server and a small project, all in a temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="tenuto-bench-"))
    try:
        shutil.copytree(ROOT / "tests/fixtures/sample_repo", directory / "project")
        with ModelServer(directory) as server:
            yield Lab(Surroundings(directory, server.base_url), server)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def take(lab: Lab, measure: Measure, programs: list[Program], runs: int, results: Results) -> None:
    """Measure all programs, taking turns; the first run of each only warms up."""
    taking = [program for program in programs if getattr(program, measure.needs)]
    rounds = max(1, round(runs * measure.share))
    warm_ups = 1 if measure.share == 1 else 0
    for number in range(-warm_ups, rounds):
        for program in list(taking):
            try:
                figures = measure.take(lab, program)
            except (FailedRunError, OSError) as error:
                results.failures.append(f"{measure.name} of {program.name}: {error}")
                taking.remove(program)
                continue
            if number >= 0:
                results.add(measure.name, program.name, figures)


def is_wanted(measure: Measure, named: list[str] | None) -> bool:
    """Say whether a measure is to be taken; without names, those that take no minutes are."""
    if not named:
        return not measure.named_only
    return measure.name in named or (TUI in named and measure.name.startswith(f"{TUI}-"))


def main(arguments: list[str]) -> int:
    """Measure, print a table, write the files; 1 when something could not be measured."""
    if arguments[:1] == [TUI]:
        arguments = ["--only", TUI, *arguments[1:]]
    if arguments[:1] == ["sessions"]:
        from scripts.bench_lib.sessions import main as measure_sessions

        with laboratory() as lab:
            return measure_sessions(arguments[1:], lab)
    if arguments[:1] == ["peers"]:
        from scripts.bench_lib.peers.cli import main as measure_peers

        return measure_peers(arguments[1:])
    if arguments[:1] == ["guard"]:
        from scripts.bench_lib.guard import main as measure_guard

        with laboratory() as lab:
            return measure_guard(arguments[1:], lab)
    chosen = parse(arguments)
    own = tenuto(chosen.tenuto, chosen.protocol)
    others = peers(chosen.peer, chosen.peer_print, chosen.peer_version)
    floor = interpreter(str(ROOT / ".venv/bin/python"))
    results, speed = Results(), Speed()
    gc.disable()
    with laboratory() as lab:
        for measure in ALL:
            if not is_wanted(measure, chosen.only):
                continue
            if not chosen.quiet:
                print(f"{measure.name} …", file=sys.stderr, flush=True)
            beside = [*others, floor] if measure.name in ("version", "hello") else others
            ours = [own, inline_of(own)] if measure.both_screens else [own]
            speed.take()
            take(lab, measure, [*ours, *(beside if measure.for_peers else [])], chosen.runs, results)
            speed.take()
            gc.collect()
    commands = {program.name: asdict(program) for program in [own, *others]}
    written = save(results, commands, own.name, chosen.output, time.strftime("%Y%m%d-%H%M%S"))
    print(table(results, own.name, speed.judge))
    print(f"\na bare interpreter starts in {speed.bare_ms:.1f} ms here, in {BARE_MS:g} where the bars were taken")
    print("written:", *(path.name for path in written), "in", chosen.output.name)
    return 1 if results.failures else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
