"""What is measured of an agent. Each measure is one run of one agent and returns its figures by name.

Names end in their unit. Less is better for every figure.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from scripts.bench_lib.measures import Figures, first_token, quantile
from scripts.bench_lib.peers.agent import Agent, is_on
from scripts.bench_lib.peers.longer import lengthen
from scripts.bench_lib.peers.watch import Watcher
from scripts.bench_lib.process import FailedRunError, cpu_clock, family, run
from scripts.bench_lib.screen import rows_at_the_end, seen_at
from scripts.bench_lib.screens import LETTERS
from scripts.bench_lib.server import ModelServer
from scripts.bench_lib.terminal import Terminal
from tests.server.any_agent import done_mark
from tests.server.scripts import END_MARK

PATIENCE = 60.0
TRANSCRIPT_PATIENCE = 20.0
LONG_PATIENCE = 60.0
FIRST_KEY, KEY_PAUSE, LATE_KEY_PAUSE, FAST_KEYS = 0.002, 0.015, 0.15, 25
"""Keys are typed from 2 ms after exec on, one each 15 ms, and more slowly when half a second has brought none back."""
SAMPLES, SAMPLE_PAUSE, KEY_PATIENCE = 40, 0.04, 5.0
QUIET, QUIET_PATIENCE = 0.4, 2.0
IDLE, IDLE_SHARE = 3.0, 0.1
"""Who has the whole answer, and neither writes nor works for so many seconds, will not show more of it."""
SETTLE_SECONDS, REST_SECONDS = 2.5, 4.0
"""After the first key: the same time for everybody to do what is done behind the first frame."""
RECORDED_STEPS = 50
"""Steps of the turn that long sessions repeat."""
MANY_STEPS = 500
STEPS, ITEMS_LABEL = "steps", "10000"
"""Labels of sessions that are not called by their size."""
ITEMS, ENTRIES = 10_000, 10_600
"""Items on the screen, and the entries of our own log that show so many."""
MEGABYTE, BYTES_AN_ENTRY = 1_000_000, 1_000
NO_FORMAT = "its sessions are in a format that is not written here"


@dataclass(slots=True)
class Bench:
    """Where agents are measured. `long` are the agents with a home in which a session of some length is the last.

    `tried` are those that were asked for the session of 500 steps, done or not.
    """

    directory: Path
    server: ModelServer
    patience: float = LONG_PATIENCE
    long: dict[tuple[str, str], Agent] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)

    def calls(self, count: int | None = None) -> list[dict[str, Any]]:
        """Return the model calls of the conversation (those that offered tools), which have to be so many."""
        rows = self.server.records()
        refused = next((row["refused"] for row in rows if row["refused"]), "")
        if refused:
            raise FailedRunError(refused)
        found = [row for row in rows if row["tools"]]
        if count is not None and len(found) != count:
            raise FailedRunError(f"{len(found)} model calls came instead of {count}")
        return found


# --- without a terminal ---


def hello(bench: Bench, agent: Agent) -> Figures:
    """Ask one thing: exec to exit, exec to the request on the wire."""
    bench.server.play("hello")
    figures, started = _one_shot(bench, agent)
    rows = bench.calls()
    if rows:
        figures["to the request ms"] = (rows[0]["received"] - started) * 1000
        figures["first request KB"] = rows[0]["raw_size"] / 1024
    return figures


def steps(kind: str, count: int) -> Callable[[Bench, Agent], Figures]:
    """So many tool calls: what lies between the end of a response and the next request, as the server sees it."""

    def measure(bench: Bench, agent: Agent) -> Figures:
        bench.server.play(f"{kind}:{count}")
        figures, _ = _one_shot(bench, agent)
        return figures | _gaps(bench.calls(count + 1))

    return measure


def _one_shot(bench: Bench, agent: Agent) -> tuple[Figures, float]:
    with Watcher() as watcher:
        words = agent.words(agent.description.one_shot)
        done = run(words, agent.environ(), agent.project, bench.patience, watcher.start)
    return {"wall ms": done.wall * 1000, "cpu ms": done.cpu * 1000, "peak MB": watcher.peak}, done.started


def _gaps(rows: Sequence[Mapping[str, Any]]) -> Figures:
    gaps = [(after["received"] - before["ended"]) * 1000 for before, after in pairwise(rows)]
    figures = {"gap median ms": quantile(gaps, 0.5), "gap p95 ms": quantile(gaps, 0.95)}
    if len(gaps) >= 200:
        figures["last 50 gaps ms"] = quantile(gaps[-50:], 0.5)
    return figures


# --- on a screen ---


def welcome(agent: Agent) -> None:
    """Start it once and answer what it asks at its first start, each question once, until its input box is there."""
    questions = dict(agent.description.answers)
    with _Opened(agent, ()) as (terminal, _):
        while terminal.now < PATIENCE and not terminal.ended:
            terminal.wait_quiet(QUIET, QUIET_PATIENCE)
            rows = rows_at_the_end(terminal.chunks)
            asked = next((question for question in questions if is_on(rows, question)), None)
            if asked is not None:
                terminal.write(questions.pop(asked).encode())
            elif agent.is_prompt(rows):
                return
        raise FailedRunError(f"its input box was not painted in {PATIENCE:g} s; {_last_words(terminal)}")


def start(bench: Bench, agent: Agent) -> Figures:
    """Start: exec to the frame that shows the input box, and to the first typed key on the screen."""
    with _Opened(agent, ()) as (terminal, watcher):
        figures = watch_start(agent, terminal)
        cpu = cpu_clock(family(terminal.pid))
        return figures | {"cpu ms": cpu * 1000, "peak MB": watcher.peak, "written KB": written(terminal)}


def screen_steps(bench: Bench, agent: Agent) -> Figures:
    """500 tool calls on the screen, in a home of their own, in which that session stays the last one."""
    bench.tried.add(agent.name)
    owner = _home_for(bench, agent, STEPS)
    figures = _steps_on_screen(bench, owner, MANY_STEPS)
    bench.long[agent.name, STEPS] = owner
    return figures


def _steps_on_screen(bench: Bench, agent: Agent, count: int) -> Figures:
    bench.server.play(f"any_read:{count}")
    with _Opened(agent, ()) as (terminal, watcher):
        _settle(terminal)
        cpu, before = cpu_clock(family(terminal.pid)), written(terminal)
        seen = _ask(bench, terminal, done_mark(count))
        used = cpu_clock(family(terminal.pid)) - cpu
        rows = bench.calls(count + 1)
        whole = (terminal.started + seen - rows[0]["received"]) * 1000
        figures = {"wall ms": whole, "cpu ms": used * 1000, "peak MB": watcher.peak}
        terminal.wait_quiet(QUIET, QUIET_PATIENCE)
        return figures | _gaps(rows) | {"written KB": written(terminal) - before}


def stream(kilobytes: int) -> Callable[[Bench, Agent], Figures]:
    """A long answer in Markdown as fast as it is read: first byte sent to its last word on the screen."""

    def measure(bench: Bench, agent: Agent) -> Figures:
        bench.server.play(f"stream:{kilobytes}")
        with _Opened(agent, ()) as (terminal, watcher):
            _settle(terminal)
            cpu, before = cpu_clock(family(terminal.pid)), written(terminal)
            seen = _ask(bench, terminal, END_MARK)
            used = cpu_clock(family(terminal.pid)) - cpu
            shown = (terminal.started + seen - bench.calls()[0]["started"]) * 1000
            figures = {"on screen ms": shown, "cpu ms": used * 1000, "peak MB": watcher.peak}
            return figures | {"written KB": written(terminal) - before}

    return measure


def rest(bench: Bench, agent: Agent) -> Figures:
    """Nothing to do: how soon a typed key is on the screen, and what is used without any."""
    with _Opened(agent, ()) as (terminal, _):
        _settle(terminal)
        figures = _keys(terminal)
        terminal.wait_quiet(QUIET, QUIET_PATIENCE)
        cpu, before = cpu_clock(family(terminal.pid)), written(terminal)
        _wait(terminal, REST_SECONDS)
        used = (cpu_clock(family(terminal.pid)) - cpu) / REST_SECONDS * 100
        return figures | {"idle cpu %": used, "idle written KB": written(terminal) - before}


def streaming_keys(bench: Bench, agent: Agent) -> Figures:
    """The same while an answer comes in, about a hundred pieces a second."""
    bench.server.play("trickle:6")
    with _Opened(agent, ()) as (terminal, _):
        _settle(terminal)
        terminal.write(b"\r")
        until = terminal.now + PATIENCE
        while not bench.calls():
            terminal.read(0.05)
            if terminal.now > until or terminal.ended:
                raise FailedRunError("the prompt was not sent")
        terminal.wait_quiet(0.05, 0.5)
        return _keys(terminal)


class _Opened:
    """An agent on a terminal, watched."""

    def __init__(self, agent: Agent, arguments: Sequence[str]) -> None:
        words = agent.words([*arguments, *agent.description.interactive])
        self.terminal = Terminal.start(words, agent.environ(), agent.project)
        self.watcher = Watcher()
        self.watcher.start(self.terminal.pid)

    def __enter__(self) -> tuple[Terminal, Watcher]:
        return self.terminal, self.watcher

    def __exit__(self, *error: object) -> None:
        self.watcher.stop()
        self.terminal.__exit__(*error)


def written(terminal: Terminal) -> float:
    """Return how much the terminal was sent so far, in KB."""
    return sum(len(data) for _, data in terminal.chunks) / 1024


def watch_start(agent: Agent, terminal: Terminal) -> Figures:
    """Return when the input box and when a typed key were on the screen."""
    typed = type_until_seen(terminal)
    _wait(terminal, SETTLE_SECONDS)
    echoed = first_token(terminal, *(letter.encode() for letter in typed))
    if echoed is None:
        raise FailedRunError(f"no typed key came on the screen; {_last_words(terminal)}")
    painted = seen_at(terminal.chunks, agent.is_prompt)
    if painted is None:
        raise FailedRunError(f"its input box was not painted; {_last_words(terminal)}")
    # A letter that shows is in a box, whatever else of it is drawn in the same moment.
    return {"input box ms": min(painted, echoed) * 1000, "key ms": echoed * 1000}


def type_until_seen(terminal: Terminal) -> str:
    """Type letters that no program shows by itself until one of them comes back; return what was typed."""
    due, typed, tail = FIRST_KEY, 0, b""
    while terminal.now < PATIENCE and not terminal.ended:
        if typed < len(LETTERS) and terminal.now >= due:
            terminal.write(LETTERS[typed].encode())
            typed += 1
            due += KEY_PAUSE if typed < FAST_KEYS else LATE_KEY_PAUSE
        data = terminal.read(max(0.0, due - terminal.now))
        if any(letter.encode() in tail + data for letter in LETTERS[:typed]):
            break
        tail = data[-8:] if data else tail
    return "".join(LETTERS[:typed])


def _settle(terminal: Terminal) -> None:
    """Wait until the input box takes keys and the first bustle is over; there are letters in it afterwards."""
    type_until_seen(terminal)
    _wait(terminal, SETTLE_SECONDS)
    if terminal.ended:
        raise FailedRunError(f"it ended; {_last_words(terminal)}")


def _ask(bench: Bench, terminal: Terminal, mark: str) -> float:
    """Send what is in the box; return when the mark that ends the answer was on the screen (seconds since exec)."""
    known = len(terminal.chunks)
    terminal.write(b"\r")
    until, tail = terminal.now + bench.patience, b""
    while terminal.now < until and not terminal.ended:
        used = cpu_clock(family(terminal.pid))
        data = terminal.read(IDLE)
        if mark.encode() in tail + data:
            return terminal.chunks[-1][0]
        tail = (tail + data)[-len(mark) :]
        if not data and cpu_clock(family(terminal.pid)) - used < IDLE_SHARE * IDLE and _is_answered(bench):
            break
    is_late = terminal.now >= until
    late = None if is_late else seen_at(terminal.chunks, lambda rows: any(mark in row for row in rows))
    if late is None or late < terminal.chunks[known - 1][0]:
        waited = f"within {bench.patience:g} s" if is_late else "at all"
        raise FailedRunError(f"the end of the answer did not come on the screen {waited}; {_last_words(terminal)}")
    return late


def _last_words(terminal: Terminal) -> str:
    """Return what the screen showed last, shortened: whoever describes a new peer needs it."""
    rows = [" ".join(row.split()) for row in rows_at_the_end(terminal.chunks)]
    return f"it showed: {' / '.join(row for row in rows if row)[-200:]}"


def _is_answered(bench: Bench) -> bool:
    """Say whether the server has nothing left to send since a while."""
    rows = bench.calls()
    return bool(rows) and 0 < rows[-1]["ended"] < time.monotonic() - QUIET_PATIENCE


def _wait(terminal: Terminal, seconds: float) -> None:
    """Go on reading for so long."""
    until = terminal.now + seconds
    while terminal.now < until and not terminal.ended:
        terminal.read(until - terminal.now)


def _keys(terminal: Terminal) -> Figures:
    """Type letters, 40 ms apart; return how long they took to come back."""
    found: list[float] = []
    for letter in LETTERS[-SAMPLES:]:
        typed = terminal.now
        terminal.write(letter.encode())
        seen = terminal.wait_for(letter.encode(), KEY_PATIENCE)
        if seen is None:
            raise FailedRunError(f"key number {len(found) + 1} did not come back within {KEY_PATIENCE:g} s")
        found.append((seen - typed) * 1000)
        _wait(terminal, typed + SAMPLE_PAUSE - terminal.now)
    return {"key median ms": quantile(found, 0.5), "key p95 ms": quantile(found, 0.95)}


# --- sessions that are there already ---


def resume(label: str) -> Callable[[Bench, Agent], Figures]:
    """Open a session: the input box, the first key, the end of the transcript, and the memory of all that."""

    def measure(bench: Bench, agent: Agent) -> Figures:
        owner, mark = long_session(bench, agent, label)
        with _Opened(owner, owner.description.resume) as (terminal, watcher):
            figures = watch_start(owner, terminal)
            shown = _wait_for_transcript(terminal, mark)
            if shown is None:
                waited = f"within {TRANSCRIPT_PATIENCE:g} s more"
                said = f"the end of the transcript did not come on the screen {waited}; {_last_words(terminal)}"
                raise FailedRunError(said)
            return figures | {"transcript ms": shown * 1000, "peak MB": watcher.peak}

    return measure


def keys_in_long(bench: Bench, agent: Agent) -> Figures:
    """Type in a session of 10 000 items."""
    owner, mark = long_session(bench, agent, ITEMS_LABEL)
    with _Opened(owner, owner.description.resume) as (terminal, _):
        _settle(terminal)
        _wait_for_transcript(terminal, mark)
        terminal.wait_quiet(QUIET, QUIET_PATIENCE)
        return _keys(terminal)


def _wait_for_transcript(terminal: Terminal, mark: str) -> float | None:
    """Return when the end of the transcript was on the screen, which may be soon."""
    shown = first_token(terminal, mark.encode()) or terminal.wait_for(mark.encode(), TRANSCRIPT_PATIENCE)
    return shown or seen_at(terminal.chunks, lambda rows: any(mark in row for row in rows))


SIZES = {"1MB": MEGABYTE, "100MB": 100 * MEGABYTE, "1GB": 1000 * MEGABYTE}


def long_session(bench: Bench, agent: Agent, label: str) -> tuple[Agent, str]:
    """Return the agent with a home in which a session of that length is the last one, and how its transcript ends."""
    is_written = agent.description.ours and label != STEPS
    entries = ENTRIES if label == ITEMS_LABEL else SIZES.get(label, 0) // BYTES_AN_ENTRY
    if (agent.name, label) not in bench.long:
        if label == STEPS and agent.name in bench.tried:
            raise FailedRunError("its session of 500 steps did not come to an end")
        if label == STEPS:
            screen_steps(bench, agent)
        elif not is_written and not agent.description.session:
            raise FailedRunError(NO_FORMAT)
        else:
            owner = _home_for(bench, agent, label)
            if is_written:
                _write_ours(owner, entries)
            else:
                _steps_on_screen(bench, owner, RECORDED_STEPS)
                _lengthen(owner, label)
            bench.long[agent.name, label] = owner
    mark = f"Answer {entries}." if is_written else done_mark(MANY_STEPS if label == STEPS else RECORDED_STEPS)
    return bench.long[agent.name, label], mark


def _home_for(bench: Bench, agent: Agent, label: str) -> Agent:
    """Return the same agent with a new home, in which it has been once."""
    owner = agent.sibling(bench.directory / "homes" / f"{agent.home.parent.name}-{label}")
    if not agent.description.ours:
        welcome(owner)
    return owner


def _lengthen(owner: Agent, label: str) -> None:
    description = owner.description
    log = max(owner.home.glob(description.session), key=lambda file: file.stat().st_size)
    turns = ITEMS // (RECORDED_STEPS + 2)
    size = SIZES.get(label) or log.stat().st_size * turns
    lengthen(log, description.turn, size)


def _write_ours(owner: Agent, entries: int) -> None:
    from tests.session.long import write_session

    home = Path(owner.environ()["TENUTO_HOME"])
    write_session(home, owner.project, entries, entries * BYTES_AN_ENTRY, "openai-chat/test")


def forget_long(bench: Bench, label: str) -> None:
    """Free the disk of what was written for a label."""
    for key in [key for key in bench.long if key[1] == label]:
        shutil.rmtree(bench.long.pop(key).home, ignore_errors=True)
