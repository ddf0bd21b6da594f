"""A count on standard error while something takes its time: on a terminal alone, and gone when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tenuto.guard.terminal import write_status

PATIENCE = 0.5
"""Seconds for which nothing is shown."""
INTERVAL = 0.1
"""Seconds between two changes."""


@contextmanager
def progress(what: str) -> Generator[Callable[[int, int], None]]:
    """Show `what` with how many of how many are done (0: nobody knows), as `Reading sessions 12 of 300`."""
    begun = time.monotonic()
    last = 0.0

    def tell(done: int, whole: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - begun >= PATIENCE and now - last >= INTERVAL:
            last = now
            write_status(f"{what} {done:,} of {whole:,}" if whole else f"{what} {done:,}")

    try:
        yield tell
    finally:
        if last:
            write_status("")
