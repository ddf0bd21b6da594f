"""What a session does while nobody asks for anything, if it is switched on: compacting ahead of time (DESIGN 4, 6).

Both ways are off by default and say what they did. What is prepared beside a task is `core/preparation.py`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenuto.core.environment import CACHE_LIFETIME, cache_state
from tenuto.core.live import LiveSession
from tenuto.core.preparation import preparation_of
from tenuto.protocol.event import AnyEvent, SessionOpenedEvent, TaskSettledEvent, TaskStartedEvent
from tenuto.protocol.message import AssistantMessage, CompactionEntry
from tenuto.protocol.operation import CompactSessionOperation

BEFORE_EXPIRY = 45.0
"""Seconds before the provider's cache is likely to expire."""
QUIET = 2.0
"""Seconds without work before a summary is prepared."""
IDLE_SHARE = 0.5
"""Of the trigger: a smaller session is not worth compacting while idle."""
PREPARE_SHARE = 0.7
"""Of the trigger: from here on the next compaction is near enough to prepare its summary."""


class AheadOfTime:
    """Watches one runtime's events; holds at most one timer and one preparation."""

    def __init__(
        self,
        live: Callable[[], LiveSession],
        submit: Callable[[CompactSessionOperation], Awaitable[str]],
    ) -> None:
        self._live = live
        self._submit = submit
        self._work: list[asyncio.Task[None]] = []

    def note(self, event: AnyEvent) -> None:
        """Begin when the session is idle, stop when anything starts; what may run beside a task goes on."""
        if isinstance(event, TaskSettledEvent):
            self._begin()
        elif isinstance(event, TaskStartedEvent | SessionOpenedEvent):
            self.stop()
            preparation = self._live().preparation
            if preparation is not None and not self._live().settings.compaction.background:
                preparation.cancel()

    def stop(self) -> None:
        """End the timers."""
        for task in self._work:
            task.cancel()
        self._work.clear()

    def _begin(self) -> None:
        live = self._live()
        settings = live.settings.compaction
        self.stop()
        if not live.interactive or not settings.enabled or not _said_since_compaction(live):
            return
        if live.pending is not None:  # the user is looking at a proposal
            return
        if settings.ahead and live.measure().tokens >= PREPARE_SHARE * live.budget().trigger:
            self._work.append(asyncio.create_task(self._prepare(live)))
        if settings.idle and live.measure().tokens >= IDLE_SHARE * live.budget().trigger:
            self._work.append(asyncio.create_task(self._compact(live)))

    async def _prepare(self, live: LiveSession) -> None:
        """Have a summary written for the next compaction, when it has been quiet for a moment."""
        await asyncio.sleep(QUIET)
        preparation = preparation_of(live)
        preparation.check()
        preparation.begin()

    async def _compact(self, live: LiveSession) -> None:
        """Compact while the provider still has the conversation in its cache, shortly before it has not."""
        age = cache_state(live).age or 0.0
        await asyncio.sleep(max(0.0, CACHE_LIFETIME - BEFORE_EXPIRY - age))
        if live.settled and live is self._live():
            await self._submit(CompactSessionOperation(session_id=live.id, reason="idle"))


def _said_since_compaction(live: LiveSession) -> bool:
    """Say whether the model has answered since the last compaction: else there is nothing new."""
    newest = next(
        (entry for entry in reversed(live.session.path()) if isinstance(entry, AssistantMessage | CompactionEntry)),
        None,
    )
    return isinstance(newest, AssistantMessage)
