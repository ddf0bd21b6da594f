"""The bars that figures are held against, and how fast this machine is: times are ratios, not milliseconds.

A virtual machine can be three times slower in one hour than in the other. So a bare interpreter is started before and
after each measure, and a bar of time is as much wider as that takes longer than where the bars were taken.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping
from subprocess import run
from typing import Final

from scripts.bench_lib.report import amount

BARE_MS: Final = 6.0
"""What starting a bare interpreter took where the bars were taken, in milliseconds."""
STARTS: Final = 7
BARS: Final[Mapping[tuple[str, str], float]] = {
    ("hello", "wall ms"): 90.0,
    ("reads-50", "gap median ms"): 3.0,
    ("reads-50", "gap p95 ms"): 8.0,
    ("tui-start", "first paint ms"): 15.0,
    ("tui-start", "key echoed ms"): 20.0,
    ("tui-start", "memory MB"): 60.0,
    ("tui-start", "front-end up ms"): 160.0,
    ("tui-rest", "idle cpu %"): 1.0,
    ("tui-stream-200", "on screen after ms"): 400.0,
    ("tui-stream-200", "cpu s"): 1.0,
    ("tui-10000", "key idle p95 ms"): 2.0,
    ("tui-10000", "key streaming p95 ms"): 6.0,
    ("tui-10000", "memory growth MB"): 15.0,
    ("tui-10000", "idle cpu %"): 1.0,
    ("tui-10000", "width change cpu ms"): 150.0,
    ("tui-within", "append cpu ms"): 5.0,
    ("tui-within", "width change cpu ms"): 150.0,
    ("tui-within", "growth MB"): 15.0,
    ("tui-paths", "key worst ms"): 50.0,
    ("tui-paths", "first rows ms"): 100.0,
    ("tui-sessions", "first rows ms"): 300.0,
    ("tui-stream-2000", "on screen after ms"): 4_000.0,
    ("tui-stream-2000", "memory MB"): 88.0,
    ("within-1GB", "recall ms"): 2_000.0,
    ("within-1GB", "recall apart ms"): 2_000.0,
    ("within-1GB", "Ctrl+F nothing ms"): 2_000.0,
    ("within-1GB", "recall first ms"): 200.0,
}
"""The most that a figure of a measure may be."""


class Speed:
    """How this machine does beside the one of the bars, by the starts of a bare interpreter."""

    def __init__(self) -> None:
        self._starts: list[float] = []

    def take(self) -> None:
        """Start the interpreter a few times."""
        for _ in range(STARTS):
            begun = time.perf_counter()
            run([sys.executable, "-c", "pass"], check=True)
            self._starts.append((time.perf_counter() - begun) * 1000)

    @property
    def bare_ms(self) -> float:
        """The median start in milliseconds."""
        return statistics.median(self._starts)

    def judge(self, measure: str, figure: str, program: str, value: float) -> str:
        """Say whether a figure of ours is within its bar, in this machine's time; empty for one that has none."""
        bar = BARS.get((measure, figure))
        if bar is None or not program.startswith("tenuto"):
            return ""
        here = bar * self.bare_ms / BARE_MS if figure.endswith((" ms", " s")) else bar
        scaled = "" if here == bar else f", {amount(here)} here"
        return f"{'ok' if value <= here else 'OVER'} (≤ {bar:g}{scaled})"
