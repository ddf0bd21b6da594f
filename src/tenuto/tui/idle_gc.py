"""Collects garbage while nothing happens, so that no key waits for it.

By itself the collector runs in the middle of a key: every key makes some, for what is painted refers to itself.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from tenuto.tui.editor_services import Timer

QUIET = 1.0
"""Seconds in which nothing has happened."""
LEAST_NEW = 500
"""With fewer new objects there is nothing worth the while."""
ALL_AFTER = 10
"""Every so many times the old objects are looked through as well: it would be done in the middle of a key, some day."""


class RestingCollector:
    """Collects once after each stretch of work. At rest there is no timer; `clock` is seconds."""

    def __init__(self, clock: Callable[[], float], call_later: Callable[[float, Callable[[], None]], Timer]) -> None:
        self._clock = clock
        self._call_later = call_later
        self._timer: Timer | None = None
        self._last = 0.0

    def note(self) -> None:
        """Something has happened."""
        self._last = self._clock()
        if self._timer is None:
            self._timer = self._call_later(QUIET, self._due)

    def close(self) -> None:
        """Collect nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        self._timer = None
        rest = self._last + QUIET - self._clock()
        if rest > 0:
            self._timer = self._call_later(rest, self._due)
        elif gc.isenabled():
            collect_now()


def collect_now() -> None:
    """Collect what is new; now and then, what is old."""
    new, middle, old = gc.get_count()
    if old >= ALL_AFTER:
        gc.collect()
    elif new >= LEAST_NEW or middle:
        gc.collect(1)
