"""What is shown while jobs run: a live table on a terminal, else one line for each that is finished, or JSON."""

from __future__ import annotations

import io
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from tenuto.guard.terminal import escape_json, sanitize_line, write_text
from tenuto.last_acts import add_last_act
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_cost, format_seconds, plural
from tenuto.text.writable import to_json

INTERVAL = 0.5
"""Seconds between two looks of the table."""
PAINT_SECONDS = 0.2
"""How long an end by force waits for the painter at most: that may itself wait for whoever is ended."""
LEAST_ROWS = 3
SHOWN_CHARS = 300


class Row(Struct, frozen=True):
    """What came of an item: its outcome, whether that is what was wanted, and a few words on it."""

    name: str
    outcome: str
    is_good: bool
    seconds: float
    cost: float | None = 0.0
    """US dollars, `None` where the price is not known."""
    about: str = ""
    changes: str = ""
    """How often it was tried and what it has changed, where that is worth a word."""
    record: Struct | None = None
    """The line that is kept of it."""

    def describe(self) -> str:
        """Return one line on it."""
        cost = f", {format_cost(self.cost)}" if self.cost else ""
        changes = f", {self.changes}" if self.changes else ""
        about = f": {shorten(self.about, SHOWN_CHARS)}" if self.about else ""
        return f"{self.name}: {self.outcome}, {format_seconds(self.seconds)}{cost}{changes}{about}"


class Running(Struct, frozen=True):
    """What runs: since when, in seconds of the monotonic clock, and for the how many-eth time."""

    about: str
    since: float
    attempt: int


class Standing(Struct):
    """How far everything is. `earlier` items were finished by runs before this one."""

    total: int
    noun: str
    """What one item is called."""
    earlier: int = 0
    running: dict[str, Running] = field(default_factory=dict[str, Running])
    rows: list[Row] = field(default_factory=list[Row])

    @property
    def left(self) -> int:
        """How many items are not finished yet."""
        return self.total - self.earlier - len(self.rows)

    def describe(self, seconds: float) -> str:
        """Return one line: how many are finished, how, for how much and how long."""
        parts = [f"{self.earlier + len(self.rows)} of {plural(self.total, self.noun)}"]
        parts += [f"{self.earlier} of them earlier"] if self.earlier else []
        counts = Counter(row.outcome for row in sorted(self.rows, key=lambda row: not row.is_good))
        parts += [f"{count} {outcome}" for outcome, count in counts.items()]
        parts += [describe_cost([row.cost for row in self.rows])] if any(row.cost != 0 for row in self.rows) else []
        return ", ".join([*parts, format_seconds(seconds)])

    def describe_end(self, seconds: float, rest: str) -> str:
        """Return one line on how it ended; `rest` is what becomes of what is left."""
        return f"{self.describe(seconds)}; {self.left} left, {rest}" if self.left else self.describe(seconds)


def describe_cost(costs: Sequence[float | None]) -> str:
    """Return the sum of costs; “at least” where a price is not known."""
    total = format_cost(sum(cost or 0.0 for cost in costs))
    return f"at least {total}" if None in costs else total


class QuietDisplay:
    """Says only what is tried again, on standard error."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing

    def began(self, name: str, about: str, attempt: int) -> None:
        """Take note of what runs."""
        self.standing.running[name] = Running(about, time.monotonic(), attempt)

    def repeats(self, name: str, reason: str) -> None:
        """Say what is tried again, and why."""
        write_text(sanitize_line(f"{name}: again, {shorten(reason, SHOWN_CHARS)}"), to_errors=True, flush=True)

    def finished(self, row: Row) -> None:
        """Move an item from the running to the finished."""
        self.standing.running.pop(row.name, None)
        self.standing.rows.append(row)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show nothing meanwhile."""
        yield

    @contextmanager
    def told(self, line: Callable[[], str]) -> Generator[None]:
        """Have the last word said also where all ends by force meanwhile (`ending.py`)."""
        forget = add_last_act(lambda: self.close(line()))
        try:
            yield
        finally:
            forget()

    def close(self, line: str) -> None:
        """Say how it ended, on standard error."""
        write_text(sanitize_line(line), to_errors=True, flush=True)


class LineDisplay(QuietDisplay):
    """One line for each item that is finished, and for each that is tried again."""

    def finished(self, row: Row) -> None:
        """Say what came of an item."""
        super().finished(row)
        write_text(sanitize_line(row.describe()), flush=True)

    def close(self, line: str) -> None:
        """Say how it ended."""
        write_text(sanitize_line(line), flush=True)


class JsonDisplay(QuietDisplay):
    """What is kept of each item as one line of JSON; all else on standard error."""

    def finished(self, row: Row) -> None:
        """Print a result."""
        super().finished(row)
        write_text(escape_json(to_json(row.record).decode()), flush=True)


class TableDisplay(QuietDisplay):
    """A table that is painted again and again in the same place of a terminal, by a thread of its own."""

    def __init__(self, standing: Standing, *, to_errors: bool = False) -> None:
        """Paint on standard output, or on standard error where a report goes to the former."""
        super().__init__(standing)
        self._to_errors = to_errors
        self._begun = time.monotonic()
        self._rows = 0
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._repaint, name="table", daemon=True)
        self._lock = threading.Lock()

    def repeats(self, name: str, reason: str) -> None:
        """The count of tries in the table says so."""

    def finished(self, row: Row) -> None:
        """Move an item from the running to the finished."""
        with self._lock:
            super().finished(row)

    def began(self, name: str, about: str, attempt: int) -> None:
        """Take note of what runs."""
        with self._lock:
            super().began(name, about, attempt)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the table meanwhile, and leave its last state behind."""
        self._painter.start()
        try:
            yield
        finally:
            self._over.set()
            self._painter.join()
            self._paint()

    def close(self, line: str) -> None:
        """Say how it ended, below the table: in an end by force it may be painted at this moment."""
        self._over.set()
        if self._painter.is_alive():
            self._painter.join(PAINT_SECONDS)
        write_text(sanitize_line(line), to_errors=self._to_errors, flush=True)

    def _repaint(self) -> None:
        while not self._over.wait(INTERVAL):
            self._paint()

    def _paint(self) -> None:
        size = os.get_terminal_size(2 if self._to_errors else 1)
        now = time.monotonic()
        with self._lock:
            rows = draw(self.standing, size.columns or 80, (size.lines or 24) - 1, now, now - self._begun).rstrip("\n")
        back = f"\x1b[{self._rows}F" if self._rows else ""
        write_text(f"{back}\x1b[J{rows}", to_errors=self._to_errors, painted=True, flush=True)
        self._rows = rows.count("\n") + 1


def draw(standing: Standing, width: int, height: int, now: float, seconds: float) -> str:
    """Return the table in at most so many rows: what runs, below it what was finished last, and the sums. Pure."""
    from rich.console import Console
    from rich.table import Table

    room = max(LEAST_ROWS, height - 4)
    running = list(standing.running.items())[:room]
    finished = standing.rows[::-1][: room - len(running)]
    table = Table(
        title=shorten(standing.describe(seconds), width),
        title_justify="left",
        title_style="bold",
        expand=True,
        box=None,
    )
    for heading, share in ((standing.noun, 3), ("outcome", 2), ("time", 1), ("cost", 1), ("about", 6)):
        table.add_column(heading, ratio=share, no_wrap=True, overflow="ellipsis")
    for name, one in running:
        state = "running" if one.attempt == 1 else f"running, try {one.attempt}"
        table.add_row(_plain(name), state, format_seconds(now - one.since), "", _plain(one.about))
    for row in finished:
        cost = format_cost(row.cost) if row.cost else ""
        outcome = f"[{'green' if row.is_good else 'red'}]{row.outcome}[/]"
        table.add_row(_plain(row.name), outcome, format_seconds(row.seconds), cost, _plain(row.about))
    output = io.StringIO()
    colours = None if os.environ.get("NO_COLOR") else "standard"
    Console(file=output, width=width, force_terminal=True, color_system=colours, legacy_windows=False).print(table)
    return output.getvalue()


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(shorten(sanitize_line(text), SHOWN_CHARS))
