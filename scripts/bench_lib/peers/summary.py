"""Values to what is claimed: medians, how far they spread, and the ratio of ours to the best peer's."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.bench_lib.peers.record import Record


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some runs, with the quartiles and the outermost ones."""

    median: float
    lower: float
    upper: float
    least: float
    most: float
    runs: int

    def overlaps(self, other: Spread) -> bool:
        """Say whether the middle halves of both have something in common: then no difference is claimed."""
        return self.lower <= other.upper and other.lower <= self.upper


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of one or more values."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], values[0], values[0], 1)
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, lower, upper, min(values), max(values), len(values))


FLOORS = {"%": 0.5}
"""By unit, what counts as nothing: the ratio of two such figures would say what is not there."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of all agents that have it. `ratio` is ours to the best peer's: under 1, ours is the smaller.

    Ratios take a figure below the floor of its unit for that floor.
    """

    measure: str
    figure: str
    spreads: dict[str, Spread]
    own: str
    best: str = ""
    is_close: bool = False

    @property
    def ratio(self) -> float | None:
        """Ours to the best peer's; nothing without both, or where the peer's is 0."""
        ours, theirs = self.spreads.get(self.own), self.spreads.get(self.best)
        return self._ratio(ours, theirs) if ours and theirs else None

    def times(self, agent: str) -> float | None:
        """Return how many times ours an agent's is; nothing where there is none of ours, or it is 0."""
        ours, theirs = self.spreads.get(self.own), self.spreads.get(agent)
        return self._ratio(theirs, ours) if ours and theirs else None

    def _ratio(self, one: Spread, other: Spread) -> float | None:
        floor = FLOORS.get(self.figure.rpartition(" ")[2], 0.0)
        bottom = max(other.median, floor)
        return max(one.median, floor) / bottom if bottom > 0 else None


def compare(record: Record, measure: str, figure: str, own: str, ours: Sequence[str]) -> Comparison:
    """Compare one figure: `own` with the peers, which are all that are not `ours`."""
    found = {name: record.get(measure, figure, name) for name in record.agents}
    spreads = {name: spread_of(series.values) for name, series in found.items() if series}
    peers = {name: spread for name, spread in spreads.items() if name not in ours}
    if own not in spreads or not peers:
        return Comparison(measure, figure, spreads, own)
    best = min(peers, key=lambda name: peers[name].median)
    return Comparison(measure, figure, spreads, own, best, spreads[own].overlaps(peers[best]))


def figures_of(record: Record) -> list[tuple[str, str]]:
    """Return every measure and figure of the record, in the order in which they came."""
    return list(dict.fromkeys((series.measure, series.figure) for series in record.results.series.values()))
