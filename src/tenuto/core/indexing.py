"""The search index of a long session grows while nothing runs: in a thread, in short steps, with rests between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tenuto.core.state.live import LiveSession
from tenuto.protocol.event import AnyEvent, SessionOpenedEvent, TaskSettledEvent, TaskStartedEvent

QUIET = 2.0
"""Seconds without a task before the first step."""
REST = 2.0
"""How much longer than a step the rest after it is."""


class Indexing:
    """Watches one runtime's events; holds at most one task. Headless runs leave it to whoever searches."""

    def __init__(self, live: Callable[[], LiveSession]) -> None:
        self._live = live
        self._work: asyncio.Task[None] | None = None

    def note(self, event: AnyEvent) -> None:
        """Begin when the session is idle, stop when anything starts: a step that runs ends by itself."""
        if isinstance(event, TaskSettledEvent | SessionOpenedEvent):
            self.stop()
            live = self._live()
            if live.interactive:
                self._work = asyncio.create_task(self._grow(live), name="index")
        elif isinstance(event, TaskStartedEvent):
            self.stop()

    def stop(self) -> None:
        """Take no further step."""
        if self._work is not None:
            self._work.cancel()
            self._work = None

    async def _grow(self, live: LiveSession) -> None:
        await asyncio.sleep(QUIET)
        done, whole = 0, 1
        while done < whole and live is self._live():
            begun = time.monotonic()
            done, whole = await asyncio.to_thread(live.session.grow_search)
            await asyncio.sleep(REST * (time.monotonic() - begun))
