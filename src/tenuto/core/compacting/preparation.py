"""A summary that is written before it is needed: beside a running task, or while nothing runs (DESIGN 6, R-060).

One mechanism for both, at most one request at a time. Nothing of the session changes but what it has cost: the summary
waits in memory until a compaction takes it over at a boundary, and is dropped when what it covers has changed.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

import msgspec

from tenuto.compaction.summary.summarise import MAX_WAIT, Patience
from tenuto.compaction.ways.environment import BoundContext, still_holds
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.compaction.ways.preview import prepare
from tenuto.compaction.ways.remote import is_chosen
from tenuto.compaction.ways.rungs import hide_if_it_pays
from tenuto.core.compacting.environment import CACHE_LIFETIME, bind_context, cache_state, current_context
from tenuto.core.errors import describe_failure
from tenuto.core.state.compaction_state import GROWTH_AFTER_FAILURE, CompactionRequest
from tenuto.core.state.live import PREPARE_SHARE, LiveSession
from tenuto.core.state.windows import split_model
from tenuto.protocol.compaction import NothingLeftError, RungError
from tenuto.protocol.entry import UsageEntry
from tenuto.protocol.event import AnyEvent, SessionOpenedEvent, TaskSettledEvent, TaskStartedEvent
from tenuto.protocol.message import AssistantMessage, CompactionEntry
from tenuto.protocol.operation import CompactSessionOperation
from tenuto.protocol.usage import Usage
from tenuto.session.session import Session
from tenuto.text.figures import format_cost, format_count

PURPOSE = "summaries ahead of time"
"""What the `usage` entries of prepared summaries are for."""
KIND = "prepared"
"""The kind of the notices on them."""
MIN_KEEP_DIVISOR = 4
"""At least this part of the usual tail is kept, however much is expected to come before the summary is used."""


def at_boundary(live: LiveSession) -> None:
    """Between two steps: let go of a summary that does not hold any more, and begin one where that is due.

    A server that answers one request after the other is not asked: the running task would wait for it.
    """
    drop_outdated(live)
    if live.measure().tokens < PREPARE_SHARE * live.budget().trigger:
        live.compaction.background.not_under = 0.0  # a compaction came since: what failed before it is tried again
    elif live.is_preparation_due() and not live.models.answers_one_at_a_time(_provider(live)):
        begin(live)


def begin(live: LiveSession) -> None:
    """Begin to write a summary of what a compaction would replace now, if one would be of use. At a boundary."""
    compaction, background = live.compaction, live.compaction.background
    tokens = live.measure().tokens
    if background.is_running or background.ready is not None or compaction.pending is not None:
        return
    if tokens < background.not_under or not compaction.automatic.may_run(tokens) or not _is_wanted(live):
        return
    context = _bind(live, tokens)
    if _hiding_would_do(context):
        _back_off(live, tokens)
        return
    background.task = asyncio.create_task(_write(live, context), name="prepared summary")


def drop_outdated(live: LiveSession) -> None:
    """Drop the summary that is ready when it cannot be used any more; the user is told."""
    background = live.compaction.background
    if background.ready is not None and not still_holds(background.ready, current_context(live)):
        first, background.ready = background.ready.first_kept_index, None
        live.notify(
            f"The summary of everything before entry {first} is dropped, because the conversation or the model "
            "changed since it was written; what it cost is counted.",
            kind=KIND,
        )


def _provider(live: LiveSession) -> str:
    return split_model(live.settings.compaction.model or live.facts.id)[0].partition("/")[0]


def _is_wanted(live: LiveSession) -> bool:
    """Say whether the next compaction could take a summary over.

    Not one of a strategy of somebody else or of the provider; and where an extension wants to be asked before anything
    is tried, nothing is tried before: that is known once they are loaded (`_write`).
    """
    strategy = live.compaction.strategy
    is_ladder = not live.settings.compaction.strategy if strategy is None else type(strategy) is LadderCompaction
    host = live.extensions.loaded
    return is_ladder and (host is None or not host.listens("session_before_compact"))


def _bind(live: LiveSession, tokens: int) -> BoundContext:
    """Return the context as it stands now, whatever is said while the summary is written.

    As much less is kept as will be said before the trigger is reached. Nothing is waited for: a refused request is not
    made again beside one that may be the reason.
    """
    context = bind_context(live, CompactionRequest(reason="idle"))
    environment = context.environment
    current, budget = environment.current, environment.current.budget
    path = live.session.path_to(current.path[-1].seq)
    keep = max(budget.keep_recent // MIN_KEEP_DIVISOR, budget.keep_recent - max(0, budget.trigger - tokens))
    return dataclasses.replace(
        context,
        environment=dataclasses.replace(
            environment,
            current=msgspec.structs.replace(current, path=path, meter=live.meter.for_other_path()),
            keep_tokens=keep,
            patience=Patience(waited=MAX_WAIT),
        ),
    )


def _hiding_would_do(context: BoundContext) -> bool:
    """Say whether the compaction to come will need no summary, or will be the provider's own."""
    if is_chosen(context.environment.request):
        return True
    current = context.environment.current
    to_come = max(0, current.budget.trigger - current.size.tokens)
    return hide_if_it_pays(context, current.budget.target - to_come) is not None


async def _write(live: LiveSession, context: BoundContext) -> None:
    environment = context.environment
    tokens = environment.current.size.tokens
    try:
        await live.extensions.host()
        if not _is_wanted(live):
            return
        prepared = await prepare(context)
    except NothingLeftError:
        _back_off(live, tokens)
    except Exception as error:  # noqa: BLE001 - nobody waits for this: whatever it is, it is told, once a tenth more
        _back_off(live, tokens)
        live.notify(f"No summary could be prepared ahead of time: {describe(error)}", "warning", kind=KIND)
    else:
        live.compaction.background.ready = prepared
        if still_holds(prepared, current_context(live)):
            live.notify(
                f"A summary of everything before entry {prepared.first_kept_index} is ready for the next "
                f"compaction{_price(environment.spending.usage)}.",
                kind=KIND,
            )
    finally:
        _charge(live, environment.spending.usage)
    drop_outdated(live)


def _back_off(live: LiveSession, tokens: int) -> None:
    """Try again only when there is a tenth more."""
    live.compaction.background.not_under = tokens * GROWTH_AFTER_FAILURE


def _charge(live: LiveSession, usage: Usage) -> None:
    """Write what it has cost at once: it counts whether the summary is used or not, and after a crash too."""
    if usage != Usage():
        live.session.append(UsageEntry(usage=usage, purpose=PURPOSE, model=live.facts.id))
        live.publish_usage()


def describe(error: Exception) -> str:
    """Return one line on a failure."""
    return str(error) if isinstance(error, RungError) else describe_failure(error)


def _price(usage: Usage) -> str:
    """Return what was spent as it stands behind a sentence: tokens, and money where the price is known."""
    if usage == Usage():
        return ""
    cost = f", {format_cost(usage.cost)}" if usage.cost is not None else ""
    return f" ({format_count(usage.sent)} tokens read, {format_count(usage.output)} written{cost})"


BEFORE_EXPIRY = 45.0
"""Seconds before the provider's cache is likely to expire."""
QUIET = 2.0
"""Seconds without work before a summary is prepared."""
IDLE_SHARE = 0.5
"""Of the trigger: a smaller session is not worth compacting while idle."""
AHEAD_SHARE = 0.7
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
            live = self._live()
            if not live.settings.compaction.background:
                live.compaction.background.cancel()

    def stop(self) -> None:
        """End the timers."""
        for task in self._work:
            task.cancel()
        self._work.clear()

    def _begin(self) -> None:
        live = self._live()
        settings = live.settings.compaction
        self.stop()
        if not live.interactive or not settings.enabled or not _said_since_compaction(live.session):
            return
        if live.compaction.pending is not None:  # the user is looking at a proposal
            return
        if settings.ahead and live.measure().tokens >= AHEAD_SHARE * live.budget().trigger:
            self._work.append(asyncio.create_task(self._prepare(live)))
        if settings.idle and live.measure().tokens >= IDLE_SHARE * live.budget().trigger:
            self._work.append(asyncio.create_task(self._compact(live)))

    async def _prepare(self, live: LiveSession) -> None:
        """Have a summary written for the next compaction, when it has been quiet for a moment."""
        await asyncio.sleep(QUIET)
        drop_outdated(live)
        begin(live)

    async def _compact(self, live: LiveSession) -> None:
        """Compact while the provider still has the conversation in its cache, shortly before it has not."""
        age = cache_state(live).age or 0.0
        await asyncio.sleep(max(0.0, CACHE_LIFETIME - BEFORE_EXPIRY - age))
        if live.task.settled and live is self._live():
            await self._submit(CompactSessionOperation(session_id=live.id, reason="idle"))


def _said_since_compaction(session: Session) -> bool:
    """Say whether the model has answered since the last compaction: else there is nothing new."""
    newest = next(
        (entry for entry in reversed(session.path()) if isinstance(entry, AssistantMessage | CompactionEntry)),
        None,
    )
    return isinstance(newest, AssistantMessage)
