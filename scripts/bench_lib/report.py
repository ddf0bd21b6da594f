"""Figures to a table, to JSON and to a picture."""

from __future__ import annotations

import html
import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Judge = Callable[[str, str, str, float], str]
"""What is said of a measure's figure of a program."""
BAR_WIDTH, ROW_HEIGHT, LABEL_WIDTH, VALUE_WIDTH = 420, 20, 190, 110
COLOURS = ("#2f6f4f", "#8a8a8a", "#b08d57", "#5b7c99", "#99605b", "#6f5b99")


@dataclass(slots=True)
class Series:
    """All values of one figure of one program in one measure."""

    measure: str
    program: str
    figure: str
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the runs."""
        return statistics.median(self.values)


@dataclass(slots=True)
class Results:
    """Everything that was measured, and what could not be."""

    series: dict[tuple[str, str, str], Series] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, measure: str, program: str, figures: dict[str, float]) -> None:
        """Take in one run."""
        for figure, value in figures.items():
            key = (measure, figure, program)
            self.series.setdefault(key, Series(measure, program, figure)).values.append(value)

    def groups(self) -> list[tuple[str, str, list[Series]]]:
        """Return the series by measure and figure, in the order in which they came."""
        found: dict[tuple[str, str], list[Series]] = {}
        for (measure, figure, _), series in self.series.items():
            found.setdefault((measure, figure), []).append(series)
        return [(measure, figure, group) for (measure, figure), group in found.items()]


def amount(value: float) -> str:
    """Return a number with about three digits."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(results: Results, own: str, judge: Judge = lambda *_: "") -> str:
    """Return a text table: median, least and most of the runs, the ratio of another program to ours, its bar."""
    rows = [("measure", "figure", "program", "median", "min … max", "runs", "×", "bar")]
    for measure, figure, group in results.groups():
        ours = next((series for series in group if series.program == own), None)
        for series in group:
            ratio = amount(series.median / ours.median) if ours and series is not ours and ours.median else ""
            span = f"{amount(min(series.values))} … {amount(max(series.values))}"
            count = str(len(series.values))
            bar = judge(measure, figure, series.program, series.median)
            rows.append((measure, figure, series.program, amount(series.median), span, count, ratio, bar))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*lines, *(f"not measured: {failure}" for failure in results.failures)])


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def to_json(results: Results, commands: dict[str, dict[str, str]]) -> str:
    """Return everything, raw values included."""
    rows = [
        {
            "measure": series.measure,
            "figure": series.figure,
            "program": series.program,
            "median": round(series.median, 4),
            "values": [round(value, 4) for value in series.values],
        }
        for series in results.series.values()
    ]
    whole = {"machine": machine(), "commands": commands, "results": rows, "not_measured": results.failures}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def to_svg(results: Results, own: str) -> str:
    """Return a picture: a group of bars for each figure, each group on its own scale; shorter is better."""
    programs = list(dict.fromkeys(series.program for series in results.series.values()))
    colours = {name: COLOURS[0] if name == own else COLOURS[1 + place % 5] for place, name in enumerate(programs)}
    parts: list[str] = []
    y = 30
    for measure, figure, group in results.groups():
        parts.append(_text(10, y, f"{measure}: {figure}", weight="bold"))
        y += 6
        parts += _bars(group, colours, y)
        y += len(group) * ROW_HEIGHT + 24
    width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
        f'font-family="sans-serif" font-size="12" fill="#222">'
    )
    background = f'<rect width="{width}" height="{y}" fill="#fff"/>'
    return "\n".join([head, background, *parts, "</svg>", ""])


def _bars(group: Sequence[Series], colours: dict[str, str], top: int) -> list[str]:
    parts: list[str] = []
    longest = max(series.median for series in group) or 1.0
    for place, series in enumerate(group):
        y = top + place * ROW_HEIGHT
        length = max(1.0, series.median / longest * BAR_WIDTH)
        parts.append(_text(10, y + 14, series.program))
        fill = colours[series.program]
        parts.append(f'<rect x="{LABEL_WIDTH}" y="{y + 3}" width="{length:.1f}" height="14" fill="{fill}"/>')
        parts.append(_text(LABEL_WIDTH + length + 6, y + 14, amount(series.median)))
    return parts


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}">{html.escape(text)}</text>'


def save(results: Results, commands: dict[str, dict[str, str]], own: str, folder: Path, stamp: str) -> list[Path]:
    """Write `STAMP.json` and `STAMP.svg`, and the same as `latest`; return the paths of the first two."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for suffix, text in (("json", to_json(results, commands)), ("svg", to_svg(results, own))):
        path = folder / f"{stamp}.{suffix}"
        path.write_text(text)
        (folder / f"latest.{suffix}").write_text(text)
        written.append(path)
    return written
