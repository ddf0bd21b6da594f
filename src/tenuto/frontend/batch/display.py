"""What a batch shows while it runs: a live table on a terminal, else one line a task, or the results as JSON."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from tenuto.frontend.batch.results import OUTCOMES, Result
from tenuto.frontend.batch.tasks import Task
from tenuto.guard.terminal import escape_json, sanitize_line, write_text
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_cost, format_seconds, plural
from tenuto.text.writable import to_json

INTERVAL = 0.5
"""Seconds between two looks of the table."""
LEAST_ROWS = 3
SHOWN_CHARS = 300


class Running(Struct, frozen=True):
    """A task that an agent works on: since when, in seconds of the monotonic clock, and for the how many-eth time."""

    task: Task
    since: float
    attempt: int


class Standing(Struct):
    """How far a batch is. `earlier` tasks were finished by runs before this one."""

    total: int
    earlier: int = 0
    running: dict[str, Running] = field(default_factory=dict[str, Running])
    results: list[Result] = field(default_factory=list[Result])

    @property
    def left(self) -> int:
        """How many tasks have no result yet."""
        return self.total - self.earlier - len(self.results)

    def describe(self, seconds: float) -> str:
        """Return one line: how many are finished, how, for how much and how long."""
        parts = [f"{self.earlier + len(self.results)} of {plural(self.total, 'task')}"]
        parts += [f"{self.earlier} of them earlier"] if self.earlier else []
        counts = Counter(result.outcome for result in self.results)
        parts += [f"{counts[name]} {words(name)}" for name in OUTCOMES if counts[name]]
        return ", ".join([*parts, describe_cost(self.results), format_seconds(seconds)])


def words(outcome: str) -> str:
    """Return an outcome as users read it."""
    return outcome.replace("_", " ")


def describe_cost(results: Sequence[Result]) -> str:
    """Return the sum of costs; “at least” where a price is not known."""
    total = format_cost(sum(result.total_cost_usd or 0.0 for result in results))
    return f"at least {total}" if any(result.total_cost_usd is None for result in results) else total


def describe_result(result: Result) -> str:
    """Return one line on what came of a task."""
    cost = "" if result.total_cost_usd is None else f", {format_cost(result.total_cost_usd)}"
    tries = f", {result.attempts} tries" if result.attempts > 1 else ""
    files = f", {plural(len(result.changed_files), 'file')} changed" if result.changed_files else ""
    why = f": {shorten(result.error, SHOWN_CHARS)}" if result.error and result.outcome != "done" else ""
    return f"{result.id}: {words(result.outcome)}, {format_seconds(result.duration_ms / 1000)}{cost}{tries}{files}{why}"


class LineDisplay:
    """One line for each task that is finished, and for each that is tried again."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing

    def began(self, task: Task, attempt: int) -> None:
        """Take note of a task that runs."""
        self.standing.running[task.id] = Running(task, time.monotonic(), attempt)

    def repeats(self, task: Task, reason: str) -> None:
        """Say that a task is tried again."""
        write_text(sanitize_line(f"{task.id}: again, {shorten(reason, SHOWN_CHARS)}"), to_errors=True, flush=True)

    def finished(self, result: Result) -> None:
        """Say what came of a task."""
        self._note(result)
        write_text(sanitize_line(describe_result(result)), flush=True)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show nothing between the lines."""
        yield

    def close(self, line: str) -> None:
        """Say how it ended."""
        write_text(sanitize_line(line), flush=True)

    def _note(self, result: Result) -> None:
        self.standing.running.pop(result.id, None)
        self.standing.results.append(result)


class JsonDisplay(LineDisplay):
    """Each result as one line of JSON, as it stands in the results file; all else on standard error."""

    def finished(self, result: Result) -> None:
        """Print a result."""
        self._note(result)
        write_text(escape_json(to_json(result).decode()), flush=True)

    def close(self, line: str) -> None:
        """Say how it ended."""
        write_text(sanitize_line(line), to_errors=True, flush=True)


class TableDisplay(LineDisplay):
    """A table that is painted again and again in the same place, by a thread of its own."""

    def __init__(self, standing: Standing) -> None:
        super().__init__(standing)
        self._begun = time.monotonic()
        self._rows = 0
        self._over = threading.Event()
        self._lock = threading.Lock()

    def repeats(self, task: Task, reason: str) -> None:
        """The count of tries in the table says so."""

    def finished(self, result: Result) -> None:
        """Move a task from the running to the finished."""
        with self._lock:
            self._note(result)

    def began(self, task: Task, attempt: int) -> None:
        """Take note of a task that runs."""
        with self._lock:
            super().began(task, attempt)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the table meanwhile, and leave its last state behind."""
        thread = threading.Thread(target=self._repaint, name="table", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            self._paint()

    def _repaint(self) -> None:
        while not self._over.wait(INTERVAL):
            self._paint()

    def _paint(self) -> None:
        size = os.get_terminal_size(sys.stdout.fileno())
        now = time.monotonic()
        with self._lock:
            rows = draw(self.standing, size.columns, size.lines - 1, now, now - self._begun).rstrip("\n")
        back = f"\x1b[{self._rows}F" if self._rows else ""
        write_text(f"{back}\x1b[J{rows}", painted=True, flush=True)
        self._rows = rows.count("\n") + 1


def draw(standing: Standing, width: int, height: int, now: float, seconds: float) -> str:
    """Return the table in at most so many rows: what runs, below it what was finished last, and the sums. Pure."""
    from rich.console import Console
    from rich.table import Table

    room = max(LEAST_ROWS, height - 4)
    running = list(standing.running.values())[:room]
    finished = standing.results[::-1][: room - len(running)]
    table = Table(
        title=shorten(standing.describe(seconds), width),
        title_justify="left",
        title_style="bold",
        expand=True,
        box=None,
    )
    for heading, share in (("task", 3), ("outcome", 2), ("time", 1), ("cost", 1), ("prompt, or why not", 6)):
        table.add_column(heading, ratio=share, no_wrap=True, overflow="ellipsis")
    for one in running:
        state = "running" if one.attempt == 1 else f"running, try {one.attempt}"
        prompt = shorten(sanitize_line(one.task.prompt), SHOWN_CHARS)
        table.add_row(one.task.id, state, format_seconds(now - one.since), "", _plain(prompt))
    for result in finished:
        cost = "" if result.total_cost_usd is None else format_cost(result.total_cost_usd)
        why = sanitize_line(result.error or "") if result.outcome != "done" else ""
        seen = format_seconds(result.duration_ms / 1000)
        style = "green" if result.outcome == "done" else "red"
        table.add_row(result.id, f"[{style}]{words(result.outcome)}[/]", seen, cost, _plain(shorten(why, SHOWN_CHARS)))
    output = io.StringIO()
    colours = None if os.environ.get("NO_COLOR") else "standard"
    Console(file=output, width=width, force_terminal=True, color_system=colours, legacy_windows=False).print(table)
    return output.getvalue()


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def make_display(standing: Standing, *, as_json: bool, moves: bool) -> LineDisplay:
    """Return what fits standard output; `moves`: it is a terminal whose cursor can be moved."""
    if as_json:
        return JsonDisplay(standing)
    return TableDisplay(standing) if moves else LineDisplay(standing)
