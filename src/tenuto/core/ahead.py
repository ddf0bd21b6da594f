"""What a session does while nobody asks for anything, if it is switched on: compacting ahead of time (DESIGN 4, 6).

Both ways are off by default and say what they did. Neither runs beside a task: whatever starts ends the preparation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenuto.compaction.errors import NothingLeftError, RungError
from tenuto.compaction.prepared import still_holds
from tenuto.compaction.preparing import prepare
from tenuto.core.environment import CACHE_LIFETIME, bind_context, cache_state
from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.live import LiveSession
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
        """Begin when the session is idle, stop when anything starts."""
        if isinstance(event, TaskSettledEvent):
            self._begin()
        elif isinstance(event, TaskStartedEvent | SessionOpenedEvent):
            self.stop()

    def stop(self) -> None:
        """End the timer and the preparation; what it has cost is counted."""
        for task in self._work:
            task.cancel()
        self._work.clear()

    def _begin(self) -> None:
        live = self._live()
        settings = live.settings.compaction
        self.stop()
        if not live.interactive or not settings.enabled or not _said_since_compaction(live):
            return
        if live.pending is not None:  # the person is looking at a proposal
            return
        if settings.ahead and live.measure().tokens >= PREPARE_SHARE * live.budget().trigger:
            self._work.append(asyncio.create_task(self._prepare(live)))
        if settings.idle and live.measure().tokens >= IDLE_SHARE * live.budget().trigger:
            self._work.append(asyncio.create_task(self._compact(live)))

    async def _prepare(self, live: LiveSession) -> None:
        """Write a summary for the next compaction; a failure is told and changes nothing."""
        await asyncio.sleep(QUIET)
        context = bind_context(live, "idle", lambda _stage, _tokens: None)
        environment = context.environment
        if live.prepared is not None and still_holds(live.prepared, environment.standing):
            return
        try:
            live.prepared = await prepare(context)
        except NothingLeftError:
            return
        except RungError as error:
            live.notify(f"No summary could be prepared ahead of time: {error}", "warning")
        except EXPECTED_FAILURES as error:
            live.notify(f"No summary could be prepared ahead of time: {describe_failure(error)}", "warning")
        else:
            first = live.prepared.first_kept_index
            live.notify(f"A summary of everything before entry {first} is ready for the next compaction.")
        finally:
            live.session.hold_usage(environment.spending.usage)

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
