"""The search index of a long session grows while nothing runs and nobody types: in a thread, in steps with rests.

Threads of Python take turns: a key that comes beside a step waits for it several times, and the index of 10 MB is
half a second of work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tenuto.core.state.live import LiveSession
from tenuto.protocol.event import AnyEvent, SessionOpenedEvent, TaskSettledEvent, TaskStartedEvent

QUIET = 2.0
"""Seconds without a task and without the user before a step."""
REST = 2.0
"""How much longer than a step the rest after it is."""


class Indexing:
    """Watches one runtime's events; holds at most one task. Headless runs leave it to whoever searches."""

    def __init__(self, live: Callable[[], LiveSession]) -> None:
        self._live = live
        self._work: asyncio.Task[None] | None = None
        self._acts = 0
        self._last_act = 0.0

    def note(self, event: AnyEvent) -> None:
        """Begin when the session is idle, stop when anything starts: a step that runs ends with its block."""
        if isinstance(event, TaskSettledEvent | SessionOpenedEvent):
            self.stop()
            live = self._live()
            if live.interactive:
                self._work = asyncio.create_task(self._grow(live), name="index")
        elif isinstance(event, TaskStartedEvent):
            self.stop()

    def note_user(self) -> None:
        """The user types: a step that runs ends with its block, the next one waits."""
        self._acts += 1
        self._last_act = time.monotonic()

    def stop(self) -> None:
        """Take no further step."""
        self._acts += 1
        if self._work is not None:
            self._work.cancel()
            self._work = None

    async def _grow(self, live: LiveSession) -> None:
        await asyncio.sleep(QUIET)
        done, whole = 0, 1
        while done < whole and live is self._live():
            if (wait := self._last_act + QUIET - time.monotonic()) > 0:
                await asyncio.sleep(wait)
                continue
            begun, acts = time.monotonic(), self._acts
            done, whole = await asyncio.to_thread(live.session.grow_search, lambda acts=acts: self._acts == acts)
            await asyncio.sleep(REST * (time.monotonic() - begun))
