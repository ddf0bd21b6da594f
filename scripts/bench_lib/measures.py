"""What is measured. Each measure is one run of one program and returns its figures by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from scripts.bench_lib.process import FailedRunError, cpu_seconds, family, high_water, peak_memory, run
from scripts.bench_lib.program import ROOT, Program, Surroundings
from scripts.bench_lib.screen import first_paint, first_seen
from scripts.bench_lib.server import ModelServer
from scripts.bench_lib.terminal import Terminal
from tests.server.scripts import END_MARK

KEYS = "αβγδεζηθικλμνξοπρστυφχψωбвгджзийклмнптфцчшщъыьэюя"
"""Characters that no program shows by itself, each typed once: which one an echo belongs to is never in doubt."""
FIRST_KEY_SECONDS = 0.002
KEY_SECONDS = 0.015
PATIENCE = 30.0

Figures = dict[str, float]


@dataclass(slots=True)
class Lab:
    """Where the measuring is done; `steps_done` names programs that left a session of 500 steps behind.

    `sessions` are the folders of sessions of other lengths.
    """

    surroundings: Surroundings
    server: ModelServer
    steps_done: set[str] = field(default_factory=set)
    sessions: dict[str, Path] = field(default_factory=dict)

    def command(self, command: str) -> list[str]:
        """Return a command's words."""
        return self.surroundings.fill(command)

    def environ(self, program: Program) -> dict[str, str]:
        """Return the environment of a program."""
        return self.surroundings.environ() | program.extra

    def open(self, program: Program, arguments: str = "") -> Terminal:
        """Start a program under a terminal."""
        words = self.command(f"{program.interactive} {arguments}".strip())
        return Terminal.start(words, self.environ(program), self.surroundings.project)


# --- without a terminal ---


def version(lab: Lab, program: Program) -> Figures:
    """How long `--version` takes."""
    done = run(lab.command(program.version), lab.environ(program), lab.surroundings.project)
    return {"wall ms": done.wall * 1000}


def hello(lab: Lab, program: Program) -> Figures:
    """A one-shot against the local server: exec to exit, and exec to the request on the wire."""
    lab.server.play("hello")
    done = run(lab.command(program.one_shot), lab.environ(program), lab.surroundings.project)
    figures = {"wall ms": done.wall * 1000, "cpu ms": done.cpu * 1000}
    records = lab.server.records()
    if records:
        figures["request after ms"] = (records[0]["received"] - done.started) * 1000
        figures["exit after answer ms"] = (done.ended - records[-1]["ended"]) * 1000
    return figures


def steps(kind: str, count: int) -> Callable[[Lab, Program], Figures]:
    """The program's own time between a finished response and the next request, over `count` tool steps."""

    def measure(lab: Lab, program: Program) -> Figures:
        lab.server.play(f"{kind}:{count}")
        done = run(lab.command(program.one_shot), lab.environ(program), lab.surroundings.project)
        records = lab.server.records()
        _require_steps(records, count)
        lab.steps_done.add(program.name)
        gaps = [(after["received"] - before["ended"]) * 1000 for before, after in pairwise(records)]
        figures = {"gap median ms": quantile(gaps, 0.5), "gap p95 ms": quantile(gaps, 0.95), "wall s": done.wall}
        figures |= {"cpu s": done.cpu, "last request KB": records[-1]["raw_size"] / 1024}
        if count >= 200:
            first, last = quantile(gaps[:50], 0.5), quantile(gaps[-50:], 0.5)
            figures |= {"first 50 median ms": first, "last 50 median ms": last, "last / first": last / first}
        return figures

    return measure


def steps_memory(lab: Lab, program: Program) -> Figures:
    """Peak memory of a one-shot with 500 tool steps."""
    lab.server.play("reads:500")
    peak = peak_memory(lab.command(program.one_shot), lab.environ(program), lab.surroundings.project)
    _require_steps(lab.server.records(), 500)
    return {"peak MB": peak}


def _require_steps(records: list[dict[str, Any]], count: int) -> None:
    refused = next((row["refused"] for row in records if row["refused"]), "")
    if refused:
        raise FailedRunError(f"the model server refused a request: {refused}")
    if len(records) != count + 1:
        raise FailedRunError(f"{len(records)} model calls came instead of {count + 1}")


# --- with MCP servers ---

SERVERS = 10


def with_servers(measure: Callable[[Lab, Program], Figures]) -> Callable[[Lab, Program], Figures]:
    """The same with ten MCP servers configured; they were there before (the first run, which warms up, meets them)."""

    def measured(lab: Lab, program: Program) -> Figures:
        script = str(ROOT / "tests/fixtures/mcp/server.py")
        entry = {"command": sys.executable, "args": [script, "good"]}
        file = lab.surroundings.directory / "tenuto-home" / "mcp.json"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(json.dumps({"mcpServers": {f"server{number}": entry for number in range(SERVERS)}}))
        try:
            return measure(lab, program)
        finally:
            file.unlink()

    return measured


# --- under a terminal ---


def start(lab: Lab, program: Program) -> Figures:
    """From exec to the first glyph and to the first typed key on screen; memory when it has come to rest."""
    with lab.open(program) as terminal:
        return watch_start(terminal)


def resume(lab: Lab, program: Program) -> Figures:
    """The same, opening a session of 500 steps; and when its last message is on screen."""
    if program.name not in lab.steps_done:
        steps("reads", 500)(lab, program)
    with lab.open(program, "--continue") as terminal:
        figures = watch_start(terminal)
        shown = first_token(terminal, b"500 reads", b"500 steps")
        if shown is not None:
            figures["transcript ms"] = shown * 1000
        return figures


def first_token(terminal: Terminal, *tokens: bytes) -> float | None:
    """Return when one of the tokens first came, seconds after exec."""
    sofar = b""
    for when, data in terminal.chunks:
        sofar += data
        if any(token in sofar for token in tokens):
            return when
    return None


def watch_start(terminal: Terminal) -> Figures:
    """Return when the first glyph and the first typed key were on screen, and the memory at rest."""
    typed = type_until_echo(terminal)
    terminal.wait_quiet(0.6, 8.0)
    painted, echoed = first_paint(terminal.chunks), first_seen(terminal.chunks, typed)
    if painted is None:
        raise FailedRunError("nothing was painted")
    if echoed is None:
        raise FailedRunError("no typed key came back (the terminal's own echo is off: the program has to show it)")
    memory = sum(high_water(pid) for pid in family(terminal.pid))
    return {"first paint ms": painted * 1000, "key echoed ms": echoed * 1000, "memory MB": memory}


def type_until_echo(terminal: Terminal) -> str:
    """Type keys from 2 ms after exec on, one each 15 ms, until one of them comes back; return what was typed."""
    due, typed, sofar = FIRST_KEY_SECONDS, 0, b""
    while terminal.now < PATIENCE and not terminal.ended:
        if typed < len(KEYS) // 2 and terminal.now >= due:
            terminal.write(KEYS[typed].encode())
            typed += 1
            due += KEY_SECONDS
        sofar = sofar[-8:] + terminal.read(max(0.0, due - terminal.now) if typed < len(KEYS) // 2 else 0.05)
        if any(key.encode() in sofar for key in KEYS[:typed]):
            break
    return KEYS[:typed]


def echo(lab: Lab, program: Program) -> Figures:
    """How long a typed key takes to come back when nothing else happens."""
    with lab.open(program) as terminal:
        type_until_echo(terminal)
        terminal.wait_quiet(0.6, 8.0)
        return _echo_figures(_type_keys(terminal))


def echo_streaming(lab: Lab, program: Program) -> Figures:
    """The same while an answer streams in."""
    lab.server.play("trickle:4")
    with lab.open(program) as terminal:
        type_until_echo(terminal)
        terminal.wait_quiet(0.6, 8.0)
        terminal.write(b"\r")
        _wait_for_request(lab, terminal)
        return _echo_figures(_type_keys(terminal))


def _wait_for_request(lab: Lab, terminal: Terminal) -> None:
    while not lab.server.records():
        terminal.read(0.05)
        if terminal.now > PATIENCE:
            raise FailedRunError("the prompt was not sent")
    terminal.wait_quiet(0.05, 0.5)


def _type_keys(terminal: Terminal) -> list[float]:
    """Type the second half of the keys, 40 ms apart, and return how long each took in milliseconds."""
    found: list[float] = []
    for key in KEYS[len(KEYS) // 2 :]:
        typed = terminal.now
        terminal.write(key.encode())
        seen = terminal.wait_for(key.encode(), 2.0)
        if seen is None:
            raise FailedRunError(f"the key {key} did not come back")
        found.append((seen - typed) * 1000)
        pause = typed + 0.04
        while terminal.now < pause:
            terminal.read(pause - terminal.now)
    return found


def _echo_figures(latencies: list[float]) -> Figures:
    return {"median ms": quantile(latencies, 0.5), "p95 ms": quantile(latencies, 0.95)}


def stream(lab: Lab, program: Program) -> Figures:
    """200 KB of Markdown as fast as it is read: when its end is on screen, and what that costs."""
    lab.server.play("stream:200")
    with lab.open(program) as terminal:
        type_until_echo(terminal)
        terminal.wait_quiet(0.6, 8.0)
        before = sum(cpu_seconds(pid) for pid in family(terminal.pid))
        terminal.write(b"\r")
        seen = terminal.wait_for(END_MARK.encode(), 60.0)
        if seen is None:
            raise FailedRunError("the end of the answer did not come on screen")
        cpu = sum(cpu_seconds(pid) for pid in family(terminal.pid)) - before
        record = lab.server.records()[-1]
        return {
            "on screen after ms": (terminal.started + seen - record["started"]) * 1000,
            "cpu s": cpu,
            "memory MB": sum(high_water(pid) for pid in family(terminal.pid)),
        }


def quantile(values: list[float], share: float) -> float:
    """Return the value below which this share of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with the command that a program needs for it; `share` of the runs are done, at least one.

    One that is `named_only` takes minutes or much space, and is done when it is asked for by its name. One of
    `both_screens` is taken of our inline screen too.
    """

    name: str
    needs: str
    take: Callable[[Lab, Program], Figures]
    share: float = 1.0
    for_peers: bool = True
    named_only: bool = False
    both_screens: bool = False


MEASURES = (
    Measure("start", "interactive", start),
    Measure("version", "version", version),
    Measure("hello", "one_shot", hello),
    Measure("start-mcp", "interactive", with_servers(start), for_peers=False),
    Measure("hello-mcp", "one_shot", with_servers(hello), for_peers=False),
    Measure("reads-50", "one_shot", steps("reads", 50), 0.3, for_peers=False),
    Measure("reads-500", "one_shot", steps("reads", 500), 0.2, for_peers=False),
    Measure("bash-50", "one_shot", steps("steps", 50), 0.3, for_peers=False),
    Measure("bash-500", "one_shot", steps("steps", 500), 0.2, for_peers=False),
    Measure("memory-500", "one_shot", steps_memory, 0.1, for_peers=False),
    Measure("resume-500", "interactive", resume, 0.5, for_peers=False),
    Measure("echo", "interactive", echo, 0.3),
    Measure("echo-streaming", "interactive", echo_streaming, 0.3),
    Measure("stream-200", "interactive", stream, 0.3),
)
