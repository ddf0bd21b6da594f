"""The default strategy: one way after the other, until one of them holds (DESIGN section 6)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar, cast

import msgspec

from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.ways.environment import BoundContext, accept
from tenuto.compaction.ways.preview import use_prepared
from tenuto.compaction.ways.remote import compact_remotely, is_chosen
from tenuto.compaction.ways.rungs import Rung, build_digest, hide_if_it_pays, plan_or_shorten, serialised_rungs
from tenuto.compaction.ways.same_prefix import same_prefix_rungs
from tenuto.protocol.compaction import CompactionContext, CompactionModel, CompactionOutcome, RungError, StrategyError
from tenuto.protocol.model import ModelClient, ModelFacts, ModelRequest, StreamPart

T = TypeVar("T")


class OwnerLoop:
    """The program's event loop, for code on other threads. To be made on that loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._running = 0
        self._asked = False

    def take_activity(self) -> bool:
        """Say whether anything was asked since the last time, or is being asked now."""
        asked, self._asked = self._asked, False
        return asked or self._running > 0

    async def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return what `function` returns when it is awaited at home; cancelling the caller cancels it."""
        if threading.get_ident() == self._thread:
            return await function()
        self._asked = True
        self._running += 1
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_await(function), self._loop))
        finally:
            self._running -= 1

    def ask(self, function: Callable[[], T]) -> T:
        """Return what a plain function returns at home; the caller's thread waits for it."""
        if threading.get_ident() == self._thread:
            return function()
        self._asked = True
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            try:
                answer.set_result(function())
            except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(work)
        return answer.result()


async def _await(function: Callable[[], Awaitable[T]]) -> T:
    return await function()


class OwnerLoopClient:
    """A model client that can be used on another thread: its connections stay at home."""

    def __init__(self, client: ModelClient, owner: OwnerLoop) -> None:
        self._client = client
        self._home = owner

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer. Raises `ModelError`."""
        arrived: asyncio.Queue[StreamPart | None] = asyncio.Queue()
        here = asyncio.get_running_loop()

        async def read() -> None:
            try:
                answer = cast("AsyncGenerator[StreamPart, None]", self._client.stream(request))
                async with aclosing(answer) as parts:
                    async for part in parts:
                        here.call_soon_threadsafe(arrived.put_nowait, part)
            finally:
                here.call_soon_threadsafe(arrived.put_nowait, None)

        reading = asyncio.ensure_future(self._home.run(read))
        try:
            while (part := await arrived.get()) is not None:
                yield part
            await reading
        finally:
            reading.cancel()

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models."""
        return await self._home.run(self._client.models)

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        return await self._home.run(lambda: self._client.count(request))

    async def close(self) -> None:
        """Do nothing: the connection belongs to the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext(CompactionContext):
    """The seed's fields for a strategy on another thread; `own` is the context that stays at `owner`."""

    own: BoundContext
    owner: OwnerLoop


def for_thread(ctx: BoundContext, owner: OwnerLoop) -> ThreadContext:
    """Return the context as a strategy on another thread may use it."""
    return ThreadContext(
        history=ctx.history,
        token_count=ctx.token_count,
        max_context_size=ctx.max_context_size,
        reserved_context_size=ctx.reserved_context_size,
        llm=CompactionModel(ctx.llm.facts, OwnerLoopClient(ctx.llm.client, owner)),
        reason=ctx.reason,
        focus=ctx.focus,
        previous_summary=ctx.previous_summary,
        cache=ctx.cache,
        own=ctx,
        owner=owner,
    )


async def on_owner_loop(ctx: CompactionContext, work: Callable[[BoundContext], Awaitable[T]]) -> T:
    """Return what `work` makes of the context; one that was lent goes home for it, with a changed focus or reason.

    Raises `StrategyError` for a context that was not made by Tenuto.
    """
    if isinstance(ctx, BoundContext):
        return await work(ctx)
    if isinstance(ctx, ThreadContext):
        own = dataclasses.replace(ctx.own, reason=ctx.reason, focus=ctx.focus, cache=ctx.cache)
        return await ctx.owner.run(lambda: work(own))
    raise StrategyError("the built-in strategies work on the context that Tenuto passes to `compact`")


Rungs = Callable[[BoundContext], Awaitable[Sequence[Rung]]]


class LadderCompaction:
    """Take what is prepared, hide, let the provider compact if chosen, summarise cheaply, condense without a model."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the first outcome that holds. Raises `RungError` when nothing can make the context smaller."""
        return await on_owner_loop(ctx, _compact)


async def _compact(ctx: BoundContext) -> CompactionOutcome:
    prepared = use_prepared(ctx)
    if prepared is not None:
        return prepared  # it is paid for, and whatever else changed the view would make it useless
    if ctx.reason == "threshold":
        hidden = hide_if_it_pays(ctx)
        if hidden is not None:
            return hidden
    plan = plan_or_shorten(ctx)
    if isinstance(plan, CompactionOutcome):
        return plan
    return await run_ladder(ctx, plan, (remote_rungs, same_prefix_rungs, serialised_rungs))


async def remote_rungs(ctx: BoundContext) -> list[Rung]:
    """Return rung 2 where the user chose it and it can be of use.

    It is not before another model takes over, which could not read it, nor after the provider refused a request as too
    long: its compaction would be one more.
    """
    if ctx.reason in {"overflow", "model_switch"}:
        return []
    return [compact_remotely] if is_chosen(ctx.environment.request) else []


async def run_ladder(ctx: BoundContext, plan: CompactionPlan, groups: Sequence[Rungs]) -> CompactionOutcome:
    """Try the rungs of each group in turn; the digest is below all of them. Raises `RungError`."""
    notes: list[str] = []
    failure = ""
    for group in groups:
        for rung in await group(ctx):
            try:
                outcome = await rung(ctx, plan)
                if outcome is None:
                    continue
                accept(ctx, outcome)
            except RungError as error:
                failure = str(error)
                notes += [error.notice] if error.notice else []
            else:
                return msgspec.structs.replace(outcome, notes=(*notes, *outcome.notes))
    outcome = build_digest(ctx, failure)
    if failure:
        notes.append(f"No model summary could be used ({failure}); the older part was condensed without a model.")
    return msgspec.structs.replace(outcome, notes=(*notes, *outcome.notes))
