"""Rows of the doctor: what a check returns, what it may look at, and how both are printed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct

from tenuto.config.lines import find_lines
from tenuto.config.settings import Settings
from tenuto.config.sources import Source
from tenuto.guard.terminal import sanitize_line
from tenuto.model.endpoints import Endpoints
from tenuto.model.registry import ModelRegistry
from tenuto.text.figures import plural
from tenuto.tui.chrome import home_relative
from tenuto.tui.render.line import break_text
from tenuto.tui.render.width import cell_width, pad, truncate

State = Literal["ok", "note", "problem"]
STATES: tuple[State, ...] = ("ok", "note", "problem")


class Row(Struct, frozen=True):
    """What one check found. `do` says what to do, `details` are more lines."""

    name: str
    found: str
    state: State = "ok"
    do: str = ""
    details: tuple[str, ...] = ()


class Streams(Struct, frozen=True):
    """Which of the three standard streams are terminals, and its size in cells (`None`: there is none)."""

    stdin: bool
    stdout: bool
    stderr: bool
    size: tuple[int, int] | None
    encoding: str = "utf-8"
    """Of standard output."""


class Surroundings(Struct, frozen=True):
    """What checks look at. `online`: servers are asked; `now` is seconds since the epoch."""

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    streams: Streams
    sources: Sequence[Source]
    settings: Settings
    endpoints: Endpoints
    models: ModelRegistry
    online: bool
    now: float

    def short(self, path: object) -> str:
        """Return a path with `~` for the user's home."""
        return home_relative(str(path), self.environ.get("HOME", ""))

    def where(self, key: tuple[str, ...]) -> str:
        """Return the place that a setting comes from, empty where its default holds."""
        for source in reversed(self.sources):
            value: Any = source.values
            for name in key:
                value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
            if value is not None:
                return self.line_of(source, key)
        return ""

    def line_of(self, source: Source, key: tuple[str, ...]) -> str:
        """Return a file with the line of a setting, or the name of another source."""
        line = find_lines(source.text).get(key)
        return f"{self.short(source.name)}:{line}" if line else self.short(source.name)

    def age(self, then: float) -> str:
        """Return how long ago a moment was, in words."""
        seconds = max(0.0, self.now - then)
        for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
            if seconds >= size:
                return f"{plural(int(seconds // size), word)} old"
        return "new"


def count_states(rows: Iterable[Row]) -> dict[State, int]:
    """Return how many rows there are of each state."""
    states = [row.state for row in rows]
    return {state: states.count(state) for state in STATES}


def sum_up(rows: Iterable[Row]) -> str:
    """Return the last line."""
    counts = count_states(rows)
    found = [plural(counts[state], state) for state in ("problem", "note") if counts[state]]
    return ", ".join(found) if found else "Everything is in order."


NAME_CELLS = 20
NARROW = 64
"""Columns under which name and text stand below each other."""


def print_rows(rows: Sequence[Row], columns: int, paint: Mapping[State, tuple[str, str]]) -> str:
    """Return the rows as text of at most so many columns, free of what a terminal would obey.

    `paint` has what stands before and behind the word of a state.
    """
    wide = columns >= NARROW
    names = [truncate(sanitize_line(row.name), NAME_CELLS) for row in rows]
    margin = 9 + max(map(cell_width, names)) + 2 if wide else 2
    lines: list[str] = []
    for row, name in zip(rows, names, strict=True):
        before, behind = paint.get(row.state, ("", ""))
        head = f"{before}{row.state}{behind}{' ' * (9 - len(row.state))}{pad(name, margin - 9)}"
        texts = [row.found, *row.details, *([f"→ {row.do}"] if row.do else [])]
        rest = [piece for text in texts for piece in _wrap(text, columns - margin)]
        if wide:
            lines.append(head + rest.pop(0))
        else:
            lines.append(head.rstrip())
        lines += [" " * margin + piece for piece in rest]
    return "\n".join([*lines, "", sum_up(rows)])


def _wrap(text: str, columns: int) -> list[str]:
    """Return a text as rows of so many cells; those behind the first are indented."""
    safe = sanitize_line(text)
    (_, end), *more = break_text(safe, columns)
    rest = safe[end:].lstrip(" ") if more else ""
    below = [f"  {rest[begin:stop]}" for begin, stop in break_text(rest, max(columns - 2, 1))] if rest else []
    return [safe[:end], *below]
