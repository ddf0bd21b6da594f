"""`tenuto sessions stats`: all sessions together, from their metadata alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec

from tenuto.cli.parsing import Parser, parse, say, say_json
from tenuto.session.catalog import SessionSummary, list_sessions
from tenuto.text.figures import format_bytes, format_cost, plural


class Total(msgspec.Struct):
    """Sums over sessions. `size` is bytes on disk of the logs alone; `cost` is US dollars where prices are known."""

    sessions: int = 0
    messages: int = 0
    steps: int = 0
    size: int = 0
    cost: float = 0.0

    def add(self, summary: SessionSummary) -> None:
        """Count one session."""
        self.sessions += 1
        self.messages += summary.messages
        self.steps += summary.steps
        self.size += summary.size
        self.cost += summary.cost or 0.0


def run_stats(words: tuple[str, ...], home: Path) -> int:
    """Print the sums, by project and by model; returns the exit code."""
    parser = Parser(prog="tenuto sessions stats", description="How much there is, by project and by model.")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    total, projects, models = Total(), defaultdict[str, Total](Total), defaultdict[str, Total](Total)
    for summary in list_sessions(home):
        total.add(summary)
        projects[summary.cwd or "(unknown)"].add(summary)
        models[summary.model or "(none)"].add(summary)
    if parsed.json:
        data = {"total": total, "projects": dict(projects), "models": dict(models)}
        say_json(data)
        return 0
    say(f"{_line(total)} in all")
    for title, group in (("by project", projects), ("by model", models)):
        say(f"{title}:")
        for name, one in sorted(group.items(), key=lambda item: item[1].size, reverse=True):
            say(f"  {name}: {_line(one)}")
    return 0


def _line(total: Total) -> str:
    cost = f", {format_cost(total.cost)}" if total.cost else ""
    counts = (
        plural(total.sessions, "session"),
        plural(total.messages, "message"),
        plural(total.steps, "step"),
        format_bytes(total.size),
    )
    return ", ".join(counts) + cost
