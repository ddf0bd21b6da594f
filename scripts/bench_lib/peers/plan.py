"""What is measured in which order, how often, and what tables and chart call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scripts.bench_lib.measures import Figures
from scripts.bench_lib.peers import measures
from scripts.bench_lib.peers.agent import Agent
from scripts.bench_lib.peers.measures import Bench

Need = Literal["one_shot", "interactive", "resume"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, what it needs of an agent, and its runs: as usual, with `--quick`, with `--long`."""

    name: str
    title: str
    needs: Need
    take: Callable[[Bench, Agent], Figures]
    runs: int
    quick: int = 0
    long: int = 0

    def runs_of(self, pace: str) -> int:
        """Return how often it is taken."""
        match pace:
            case "quick":
                return self.quick
            case "long":
                return max(self.runs, self.long)
            case _:
                return self.runs


MEASURES = (
    Measure("start", "Start", "interactive", measures.start, 5, 2),
    Measure("hello", "`-p hello`", "one_shot", measures.hello, 5, 2),
    Measure("steps-50", "50 steps without a screen", "one_shot", measures.steps("any_read", 50), 2, 1),
    Measure("shell-50", "50 commands without a screen", "one_shot", measures.steps("any_shell", 50), 1),
    Measure("steps-500", "500 steps without a screen", "one_shot", measures.steps("any_read", 500), 1),
    Measure("screen-500", "500 steps on the screen", "interactive", measures.screen_steps, 1),
    Measure("resume-steps", "Resume the session of 500 steps", "resume", measures.resume(measures.STEPS), 1),
    Measure("stream-200", "200 KB of Markdown", "interactive", measures.stream(200), 2, 1),
    Measure("stream-2000", "2 MB of Markdown", "interactive", measures.stream(2000), 1),
    Measure("rest", "At rest", "interactive", measures.rest, 2, 1),
    Measure("keys-streaming", "Keys while an answer comes in", "interactive", measures.streaming_keys, 1, 1),
    Measure("keys-10000", "Keys in a session of 10 000 items", "resume", measures.keys_in_long, 1),
    Measure("resume-1MB", "Resume a session of 1 MB", "resume", measures.resume("1MB"), 1),
    Measure("resume-100MB", "Resume a session of 100 MB", "resume", measures.resume("100MB"), 1),
    Measure("resume-1GB", "Resume a session of 1 GB", "resume", measures.resume("1GB"), 0, 0, 1),
)

HEADLINES = {
    ("start", "input box ms"): "start: input box painted",
    ("start", "key ms"): "start: typed key shown",
    ("start", "peak MB"): "start: memory",
    ("hello", "wall ms"): "-p hello: whole run",
    ("hello", "cpu ms"): "-p hello: processor",
    ("steps-50", "gap median ms"): "step, 50 in a row: own time",
    ("steps-500", "gap median ms"): "step, 500 in a row: own time",
    ("steps-500", "peak MB"): "500 steps: memory",
    ("screen-500", "peak MB"): "500 steps on screen: memory",
    ("stream-200", "on screen ms"): "200 KB of Markdown: shown",
    ("stream-200", "cpu ms"): "200 KB of Markdown: processor",
    ("stream-200", "written KB"): "200 KB of Markdown: bytes to the terminal",
    ("stream-2000", "on screen ms"): "2 MB of Markdown: shown",
    ("stream-2000", "peak MB"): "2 MB of Markdown: memory",
    ("rest", "key p95 ms"): "key at rest, p95",
    ("rest", "idle cpu %"): "processor at rest",
    ("keys-streaming", "key p95 ms"): "key while streaming, p95",
    ("keys-10000", "key p95 ms"): "key with 10 000 items, p95",
    ("resume-steps", "key ms"): "resume 500 steps: typed key shown",
    ("resume-1MB", "transcript ms"): "resume 1 MB: transcript shown",
    ("resume-100MB", "transcript ms"): "resume 100 MB: transcript shown",
    ("resume-100MB", "peak MB"): "resume 100 MB: memory",
    ("resume-1GB", "transcript ms"): "resume 1 GB: transcript shown",
}
"""The figures that the summary and the chart show, by measure and figure."""
