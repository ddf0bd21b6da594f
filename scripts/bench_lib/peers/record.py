"""All that was measured: kept as JSON after every run, so that a measuring that was broken off goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from scripts.bench_lib.report import Results, Series

FORMAT = 1


class OtherRunError(Exception):
    """Kept results are of another measuring: other agents, versions or options."""


@dataclass(slots=True)
class Record:
    """`head` says what was measured on which machine; `missing` why a measure of an agent is not there."""

    head: dict[str, Any]
    results: Results = field(default_factory=Results)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, measure: str, agent: str, figures: Mapping[str, float]) -> None:
        """Take in one run."""
        self.results.add(measure, agent, dict(figures))

    def miss(self, measure: str, agent: str, reason: str) -> None:
        """Say why there is no figure."""
        self.missing[measure, agent] = " ".join(reason.split())[:300]

    def runs(self, measure: str, agent: str) -> int:
        """Return how many runs are there."""
        found = (
            series for series in self.results.series.values() if (series.measure, series.program) == (measure, agent)
        )
        return max((len(series.values) for series in found), default=0)

    def get(self, measure: str, figure: str, agent: str) -> Series | None:
        """Return the values of a figure."""
        return self.results.series.get((measure, figure, agent))

    @property
    def agents(self) -> list[str]:
        """The names in the order of the head."""
        return [agent["name"] for agent in self.head["agents"]]

    def to_json(self) -> str:
        """Return everything, each single value included."""
        rows = [
            {
                "measure": one.measure,
                "figure": one.figure,
                "agent": one.program,
                "values": [round(v, 4) for v in one.values],
            }
            for one in self.results.series.values()
        ]
        missing = [{"measure": key[0], "agent": key[1], "reason": reason} for key, reason in self.missing.items()]
        whole = {"format": FORMAT, **self.head, "results": rows, "not_measured": missing}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        whole = json.loads(text)
        found = cls({key: value for key, value in whole.items() if key not in ("format", "results", "not_measured")})
        for row in whole["results"]:
            key = row["measure"], row["figure"], row["agent"]
            found.results.series[key] = Series(row["measure"], row["agent"], row["figure"], list(row["values"]))
        for row in whole["not_measured"]:
            found.missing[row["measure"], row["agent"]] = row["reason"]
        return found

    def save(self, path: Path) -> None:
        """Write it, complete or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(self.to_json(), encoding="utf-8")
        new.replace(path)


def go_on(path: Path, head: dict[str, Any]) -> Record:
    """Return the kept record of the same measuring. Raises `OtherRunError` for one of another."""
    kept = Record.from_json(path.read_text(encoding="utf-8"))
    for part in ("agents", "pace", "tenuto_revision"):
        if kept.head.get(part) != head.get(part):
            raise OtherRunError(f"{path.name} is of another measuring: {part} differ; leave --continue out")
    return kept
