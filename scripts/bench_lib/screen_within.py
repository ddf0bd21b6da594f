"""The full screen with a transcript of any length, without a core and without a terminal, in a process of its own.

`python -m scripts.bench_lib.screen_within ITEMS` prints its figures as JSON; all are processor time.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path

from tests.tui.full.fake_runtime import answer, replay, user
from tests.tui.full.support import Screen, running_app

APPENDS = 40
FRAME = 0.1
"""Seconds after which all that an event makes the screen do is done."""
SIZES = (100, 30), (80, 30)


async def measure(items: int) -> dict[str, float]:
    """Return the figures."""
    gc.collect()
    before = _resident()
    async with running_app(size=SIZES[0], tick=True) as screen:
        screen.clock.now += 1
        empty = _resident()
        events = replay(items)
        text = sum(len(repr(event)) for event in events) / 1024**2
        started = time.process_time()
        screen.runtime.emit(*events)
        await asyncio.sleep(FRAME)
        replayed = time.process_time() - started
        del events
        gc.collect()
        gc.freeze()
        figures = {"replay ms": replayed * 1000, "text MB": text, "growth MB": _resident() - empty}
        figures["front-end MB"] = empty - before
        figures |= await _appends(screen)
        widths = [await _resized(screen, *size) for size in (SIZES[1], SIZES[0], SIZES[1])]
        figures["width change cpu ms"] = statistics.median(widths) * 1000
    return figures


async def _appends(screen: Screen) -> dict[str, float]:
    idle = await _cost_of(screen, lambda: None)
    costs: list[float] = []
    for number in range(APPENDS):
        event = user(f"one more, number {number}", 10**6 + 2 * number)
        reply = answer(f"and its *answer* {number}", 10**6 + 2 * number + 1)
        costs.append((await _cost_of(screen, lambda e=event: screen.runtime.emit(e))) - idle)
        costs.append((await _cost_of(screen, lambda e=reply: screen.runtime.emit(e))) - idle)
    ordered = sorted(costs)
    return {
        "append cpu ms": statistics.median(costs) * 1000,
        "append p95 cpu ms": ordered[len(ordered) * 95 // 100] * 1000,
    }


async def _cost_of(screen: Screen, action) -> float:
    screen.clock.now += 1
    started = time.process_time()
    action()
    await asyncio.sleep(FRAME)
    return time.process_time() - started


async def _resized(screen: Screen, columns: int, rows: int) -> float:
    started = time.process_time()
    await screen.pilot.resize_terminal(columns, rows)
    await asyncio.sleep(FRAME)
    return time.process_time() - started


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(measure(int(sys.argv[1])))))
