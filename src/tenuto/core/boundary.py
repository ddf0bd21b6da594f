"""The boundary between two steps of a task: all results are stored, and the next request is not made yet."""

from __future__ import annotations

import asyncio


class Boundary:
    """Where a session's running task can be held, to be stopped there or to go on."""

    def __init__(self) -> None:
        self._reached: asyncio.Event | None = None
        self._released = asyncio.Event()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the task to come here, or holds it."""
        return self._reached is not None

    async def wait(self, finished: asyncio.Event) -> None:
        """Wait until the task is held here, or has `finished` without coming. Whoever waited has to `release()` it."""
        self._released.clear()
        reached = self._reached = asyncio.Event()
        waits = [asyncio.ensure_future(reached.wait()), asyncio.ensure_future(finished.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def release(self) -> None:
        """Let the task go on, if it is held."""
        self._reached = None
        self._released.set()

    async def cross(self) -> None:
        """Called by the task: go on, or be held where somebody waits for that."""
        if self._reached is not None:
            self._reached.set()
            await self._released.wait()
