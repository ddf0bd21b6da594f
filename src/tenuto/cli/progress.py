"""A count, or seconds, on standard error while something takes its time: on terminals alone, gone when it is done."""

from __future__ import annotations

import threading
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
    with stages() as tell:
        yield lambda done, whole: tell(what, done, whole)


@contextmanager
def stages() -> Generator[Callable[[str, int, int], None]]:
    """Show the same of work that counts one thing after the other, and says each time what."""
    begun = time.monotonic()
    last = 0.0

    def tell(what: str, done: int, whole: int) -> None:
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


@contextmanager
def working(what: str) -> Generator[None]:
    """Show `what` with the seconds that it has taken, for work that cannot say how far it is."""
    done = threading.Event()

    def show() -> None:
        begun = time.monotonic()
        pause = PATIENCE
        while not done.wait(pause):
            write_status(f"{what}, {time.monotonic() - begun:.0f} s")
            pause = 1.0
        if pause != PATIENCE:
            write_status("")

    shown = threading.Thread(target=show, name="progress", daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()
