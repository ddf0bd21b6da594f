"""The command line of `scripts/bench peers`: finds the agents, measures them in turns, writes the page."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.bench_lib.peers.agent import PROGRAMS, Agent, Description, descriptions, find_program
from scripts.bench_lib.peers.measures import Bench, forget_long, welcome
from scripts.bench_lib.peers.network import enter
from scripts.bench_lib.peers.page import write_page
from scripts.bench_lib.peers.plan import MEASURES, Measure
from scripts.bench_lib.peers.record import OtherRunError, Record, go_on
from scripts.bench_lib.peers.watch import adopt_orphans, sweep
from scripts.bench_lib.process import FailedRunError
from scripts.bench_lib.program import ROOT
from scripts.bench_lib.report import machine
from scripts.bench_lib.server import ModelServer
from tests.server.any_agent import NOTES, note_name, note_text

DESCRIPTION = """Measures Tenuto beside the other agents that are installed here: homes of their own, keys that open
nothing, a model server of ours, no network but loopback. Agents take turns; figures are medians; what is claimed are
ratios of one run. Writes peers.json, peers.svg and the results in peers.md.
A peer is a file in scripts/bench_lib/peers/programs."""
PARTIAL = "peers.partial"
"""What was measured so far, beside the results; it goes when they are written."""
MODULE = "scripts.bench_lib"
SLOW_SECONDS = 12.0
"""What takes longer than this is done once: nothing hangs on its spread."""
ENDED = 128 + signal.SIGTERM


@dataclass(slots=True)
class Chosen:
    """What the command line asked for."""

    pace: str
    where: list[Path]
    agents: list[str]
    measures: list[str]
    runs: int | None
    output: Path
    goes_on: bool
    programs: Path
    is_quiet: bool


def parse(arguments: Sequence[str]) -> Chosen:
    """Read the command line."""
    names = [measure.name for measure in MEASURES]
    parser = argparse.ArgumentParser(
        prog="scripts/bench peers", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--quick", action="store_const", const="quick", dest="pace", help="few runs, short measures")
    pace.add_argument("--long", action="store_const", const="long", dest="pace", help="with a session of 1 GB as well")
    parser.add_argument("--where", action="append", type=Path, default=[], metavar="DIR", help="programs are here, too")
    parser.add_argument("--agent", action="append", default=[], metavar="NAME", help="only these and Tenuto")
    parser.add_argument("--only", action="append", default=[], choices=names, metavar="MEASURE", help=", ".join(names))
    parser.add_argument("--runs", type=int, help="runs of each measure, instead of its own number")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/benchmarks")
    parser.add_argument(
        "--continue", action="store_true", dest="goes_on", help="keep what a run that broke off measured"
    )
    parser.add_argument("--programs", type=Path, default=PROGRAMS, metavar="DIR", help="descriptions of agents")
    parser.add_argument("--quiet", action="store_true", dest="is_quiet", help="no progress on standard error")
    given = parser.parse_args(arguments)
    where = [folder.resolve() for folder in given.where]
    return Chosen(
        given.pace or "usual",
        [*where, ROOT / ".venv/bin"],
        [name.lower() for name in given.agent],
        given.only,
        given.runs,
        given.output,
        given.goes_on,
        given.programs,
        given.is_quiet,
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and write; 2 when kept results are of another measuring. The page says what could not be measured."""
    chosen = parse(arguments)
    network = enter(MODULE, ["peers", *arguments])
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))
    partial = chosen.output / PARTIAL
    with _bench() as bench:
        agents, absent = _find(bench, chosen)
        head = _head(agents, absent, chosen, network)
        try:
            record = go_on(partial, head) if chosen.goes_on and partial.exists() else Record(head)
        except OtherRunError as error:
            print(error, file=sys.stderr)
            return 2
        _measure_all(bench, agents, record, chosen)
    record.head["load_after"] = os.getloadavg()[0]
    record.save(chosen.output / "peers.json")
    write_page(record, chosen.output)
    partial.unlink(missing_ok=True)
    _say(chosen, f"written: peers.json, peers.svg and peers.md in {chosen.output}")
    return 0


@contextlib.contextmanager
def _bench() -> Iterator[Bench]:
    """Yield a place with its server, all in a temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="tenuto-bench-"))
    try:
        with ModelServer(directory, lenient=True) as server:
            yield Bench(directory, server)
    finally:
        sweep(())
        shutil.rmtree(directory, ignore_errors=True)


def _find(bench: Bench, chosen: Chosen) -> tuple[list[Agent], dict[str, str]]:
    """Return the agents that are here and have started once; and why others are not among them."""
    agents: list[Agent] = []
    absent: dict[str, str] = {}
    for description in descriptions(chosen.programs):
        if chosen.agents and not description.ours and description.name.lower() not in chosen.agents:
            continue
        program = find_program(description.find, chosen.where)
        if program is None:
            absent[description.name] = f"not installed here ({description.package})"
            continue
        try:
            agents.append(_prepared(bench, description, program, chosen.where))
        except (FailedRunError, OSError, subprocess.SubprocessError) as error:
            absent[description.name] = f"did not start: {error}"
        _say(chosen, f"{description.name}: {absent.get(description.name) or agents[-1].version}")
        sweep(bench.server.pids)
    return agents, absent


def _prepared(bench: Bench, description: Description, program: Path, where: Sequence[Path]) -> Agent:
    place = bench.directory / "agents" / "".join(one if one.isalnum() else "-" for one in description.name.lower())
    project = place / "project"
    (project / "notes").mkdir(parents=True)
    (project / "README.md").write_text("# A project\n\nSmall notes, and nothing else.\n")
    for number in range(NOTES):
        (project / note_name(number)).write_text(note_text(number))
    subprocess.run(["git", "init", "-q", str(project)], capture_output=True, check=False)
    agent = Agent(description, program, place / "home", project, bench.server.base_url, where)
    agent.prepare()
    bench.server.play("hello")
    welcome(agent)
    return agent


def _head(agents: Sequence[Agent], absent: dict[str, str], chosen: Chosen, network: str) -> dict[str, object]:
    revision = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "pace": chosen.pace,
        "tenuto_revision": revision.stdout.strip(),
        "machine": machine() | {"processor": _processor(), "memory_gb": round(_memory_bytes() / 1e9, 1)},
        "network": network,
        "agents": [
            {
                "name": agent.name,
                "version": agent.version,
                "package": agent.description.package,
                "protocol": agent.description.protocol,
                "ours": agent.description.ours,
                "notes": list(agent.description.notes),
            }
            for agent in agents
        ],
        "absent": absent,
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _measure_all(bench: Bench, agents: Sequence[Agent], record: Record, chosen: Chosen) -> None:
    gc.disable()
    slow: set[tuple[str, str]] = set()
    for measure in MEASURES:
        count = measure.runs_of(chosen.pace)
        if chosen.measures:
            count = (measure.runs or 1) if measure.name in chosen.measures else 0
        count = min(count, chosen.runs) if chosen.runs and count else count
        begun = time.monotonic()
        for number in range(count):
            turned = [*agents[number % len(agents) :], *agents[: number % len(agents)]]
            for agent in turned:
                if (measure.name, agent.name) in slow:
                    continue
                started = time.monotonic()
                _take(bench, measure, agent, number, record)
                if time.monotonic() - started > SLOW_SECONDS:
                    slow.add((measure.name, agent.name))
                record.save(chosen.output / PARTIAL)
        if count:
            _say(chosen, f"{measure.name}: {time.monotonic() - begun:.0f} s")
        forget_long(bench, measure.name.removeprefix("resume-").removeprefix("keys-"))
        gc.collect()


def _take(bench: Bench, measure: Measure, agent: Agent, number: int, record: Record) -> None:
    """Take one run, unless it is there already or one before it failed."""
    if record.runs(measure.name, agent.name) > number or (measure.name, agent.name) in record.missing:
        return
    reason = agent.why_not(measure.name, measure.needs)
    try:
        if not reason:
            record.add(measure.name, agent.name, measure.take(bench, agent))
    except (FailedRunError, OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
    finally:
        sweep(bench.server.pids)
    if reason:
        record.miss(measure.name, agent.name, reason.replace(str(bench.directory), "…"))


def _say(chosen: Chosen, text: str) -> None:
    if not chosen.is_quiet:
        print(text, file=sys.stderr, flush=True)
