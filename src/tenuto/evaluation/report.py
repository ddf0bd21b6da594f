"""The figures of many sessions as a table, by window and summariser, held against bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tenuto.evaluation.driving import Case, Figures, describe
from tenuto.evaluation.scripted import SUMMARISERS, Summariser
from tenuto.evaluation.stories import KINDS, Kind
from tenuto.evaluation.strategies import StrategyName

SHOWN_ROUNDS = (1, 3, 6, 11)
HAS_NO_VIEW: frozenset[Kind] = frozenset({"content", "buried"})
"""Kinds that recall alone has to find: contents of files, and what stood in the middle of a huge output."""


class Bar(msgspec.Struct, frozen=True):
    """What has to be in view after the last round: at least `least` percent of each kind.

    It holds for the summarisers named, in windows from `window` tokens on.
    """

    kinds: tuple[Kind, ...]
    least: int
    summarisers: tuple[Summariser, ...] = SUMMARISERS
    window: int = 0


BARS = (
    Bar(("pin", "todo", "user short", "number", "date", "name", "correction", "user head", "user end"), 100),
    Bar(("user middle",), 60, window=16_384),
    Bar(("user middle",), 90, window=65_536),
    Bar(("modified",), 100),
    Bar(("read",), 90),
    Bar(("decision", "reversed", "promise", "identifier", "error"), 100, ("honest",)),
    Bar(("decision", "reversed", "promise"), 80, ("refusing",)),
    Bar(("identifier", "error"), 60, ("refusing",)),
)
BEFORE_ERROR, AFTER_ERROR = 2.0, 5.0
"""Percent by which the told sizes may be off."""
LEAST_PREFIX = 95.0
"""Percent of all that is sent in summary requests in place: what the request before each began with too."""


class Miss(msgspec.Struct, frozen=True):
    """A bar that was missed: where, what, and how."""

    window: int
    summariser: str
    what: str


class Share(msgspec.Struct, frozen=True):
    """How many of how many."""

    had: int
    of: int

    @property
    def percent(self) -> int:
        """The share in whole percent, rounded down: 100 is all of them."""
        return 100 * self.had // self.of

    @classmethod
    def count(cls, values: Iterable[bool]) -> Share:
        """Count those that are true."""
        seen = list(values)
        return cls(sum(seen), len(seen))

    def __str__(self) -> str:
        return f"{self.percent}" if self.of else "."


class Column(NamedTuple):
    """Sessions that belong together: of one window, strategy, and writer of summaries (a summariser or a model)."""

    window: int
    strategy: StrategyName
    writer: str

    @property
    def name(self) -> str:
        """The column's head: the default strategy goes without saying."""
        return " ".join(part for part in (f"{self.window}", self.writer, self.strategy) if part != DEFAULT)


DEFAULT: StrategyName = "ladder"


def column_of(case: Case) -> Column:
    """Return the column that a session belongs to."""
    return Column(case.window, case.strategy, case.model or case.summariser)


class Report:
    """Figures by window, strategy and summariser. The bars hold for the default strategy and a scripted model."""

    def __init__(self, figures: Sequence[Figures]) -> None:
        self.figures = tuple(figures)
        self._columns: dict[Column, list[Figures]] = {}
        for one in figures:
            self._columns.setdefault(column_of(one.case), []).append(one)

    def in_view(self, column: Column, kind: Kind, number: int) -> Share:
        """Return how much of a kind was in view after a round, of all seeds together."""
        sights = (sight for one in self._columns[column] for sight in one.sights)
        return Share.count(sight.in_view for sight in sights if (sight.kind, sight.round) == (kind, number))

    def recalled(self, column: Column, kind: Kind) -> Share:
        """Return how much of a kind recall found at the end, the original first."""
        found = (fact for one in self._columns[column] for fact in one.recalled)
        return Share.count(fact.original for fact in found if fact.kind == kind)

    def misses(self) -> list[Miss]:
        """Return the bars that were missed."""
        held = (column for column in self._columns if column.strategy == DEFAULT and column.writer in SUMMARISERS)
        return [Miss(column.window, column.writer, what) for column in held for what in self._missed(column)]

    # --- bars ---

    def _missed(self, column: Column) -> Iterator[str]:
        window, _, summariser = column
        group = self._columns[column]
        last = group[0].case.rounds
        for bar in BARS:
            if summariser not in bar.summarisers or window < bar.window:
                continue
            for kind in bar.kinds:
                share = self.in_view(column, kind, last)
                if share.of and share.percent < bar.least:
                    yield f"{kind}: {share.percent} % in view after round {last}, {bar.least} wanted"
        stale = sum(sight.stale for one in group for sight in one.sights if sight.kind == "correction")
        if stale:
            yield f"a correction was gone and what it took back was there, {stale} times"
        for kind in KINDS:
            share = self.recalled(column, kind)
            if share.of and share.had < share.of:
                yield f"{kind}: {share.percent} % by recall, the original first"
        yield from _missed_numbers(group)

    # --- the table ---

    def rows(self) -> list[str]:
        """Return the report as lines."""
        if not self.figures:
            return ["nothing was measured"]
        last = self.figures[0].case.rounds
        rounds = [number for number in SHOWN_ROUNDS if number < last] + [last]
        heads = [column.name for column in self._columns]
        table = [("", *heads)]
        for kind in KINDS:
            cells = [
                " / ".join(str(self.in_view(column, kind, number)) for number in rounds) for column in self._columns
            ]
            if kind not in HAS_NO_VIEW:
                table.append((kind, *cells))
        found = [("by recall", *(str(self._all_recalled(column)) for column in self._columns))]
        numbers = [(name, *(str(read(self._columns[column])) for column in self._columns)) for name, read in _NUMBERS]
        seeds = sorted({one.case.seed for one in self.figures if not one.case.recorded})
        recorded = list(dict.fromkeys(Path(one.case.recorded).stem for one in self.figures if one.case.recorded))
        protocols = ", ".join(dict.fromkeys(one.case.protocol for one in self.figures))
        sets = ", ".join(dict.fromkeys(one.case.phrases for one in self.figures))
        misses = self.misses()
        return [
            f"{'; '.join(_sources(seeds, recorded))}; {protocols}; {sets} phrases; "
            f"% word for word in the next request after round {' / '.join(map(str, rounds))} (. nothing planted yet)",
            "",
            *_aligned([*table, *found, *numbers]),
            "",
            *(f"missed: {miss.window} {miss.summariser}: {miss.what}" for miss in misses),
            f"{len(misses)} bars missed" if misses else "all bars hold",
            *(_trouble_rows(self.figures)),
        ]

    def _all_recalled(self, column: Column) -> Share:
        return Share.count(fact.original for one in self._columns[column] for fact in one.recalled)


def _sources(seeds: Sequence[int], recorded: Sequence[str]) -> Iterator[str]:
    if seeds:
        yield f"seeds {', '.join(map(str, seeds))}"
    if recorded:
        yield f"recorded {', '.join(recorded)}"


def _before_error(group: Sequence[Figures]) -> float:
    sizes = (size for one in group for size in one.sizes)
    return round(max((100 * abs(size.told_before / size.before - 1) for size in sizes), default=0.0), 1)


def _after_error(group: Sequence[Figures]) -> float:
    sizes = (size for one in group for size in one.sizes)
    return round(max((100 * abs(size.told_after / size.after - 1) for size in sizes), default=0.0), 1)


def _over(group: Sequence[Figures]) -> int:
    return sum(len(one.over) for one in group)


def _stubs(group: Sequence[Figures]) -> int:
    return sum(len(one.stubs) for one in group)


def _in_place(group: Sequence[Figures]) -> float:
    """Return how many of the requests for a summary were the next step's and one message, in percent."""
    asked = sum(one.summaries for one in group)
    return round(100 * sum(len(one.cached) for one in group) / asked, 1) if asked else 100.0


def _prefix(group: Sequence[Figures]) -> float:
    """Return the share in percent; 100 where nothing was asked in place."""
    asked = sum(whole for one in group for _, whole in one.cached)
    return round(100 * sum(same for one in group for same, _ in one.cached) / asked, 1) if asked else 100.0


_NUMBERS = (
    ("told before, % off", _before_error),
    ("told after, % off", _after_error),
    ("over the window", _over),
    ("results as stubs", _stubs),
    ("summaries in place, %", _in_place),
    ("cached prefix, %", _prefix),
)


def _missed_numbers(group: Sequence[Figures]) -> Iterator[str]:
    if (error := _before_error(group)) > BEFORE_ERROR:
        yield f"the size told before was off by up to {error} %, {BEFORE_ERROR:g} allowed"
    if (error := _after_error(group)) > AFTER_ERROR:
        yield f"the size told after was off by up to {error} %, {AFTER_ERROR:g} allowed"
    if count := _over(group):
        yield f"{count} requests were over the window"
    if count := _stubs(group):
        yield f"{count} results came as less than a fifth while a quarter of the window was free"
    if (share := _prefix(group)) < LEAST_PREFIX:
        yield f"{share} % of the summary requests in place were cached, {LEAST_PREFIX:g} wanted"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _trouble_rows(figures: Sequence[Figures]) -> Iterator[str]:
    for one in figures:
        for text in one.troubles:
            yield f"trouble: {describe(one.case)}: {text}"
