"""A compaction's context for a strategy that runs on a thread of its own, while the program's loop goes on.

What belongs to the program (its connections, the session, the built-in strategies) is only ever touched on the
program's loop: what the strategy asks of it is carried there, and the answer back.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar, cast

from tenuto.compaction.environment import BoundContext
from tenuto.compaction.errors import StrategyError
from tenuto.protocol.compaction import CompactionContext, CompactionModel
from tenuto.protocol.model import ModelClient, ModelFacts, ModelRequest, StreamPart

T = TypeVar("T")


class Home:
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


class HomeClient:
    """A model client that can be used on another thread: its connections stay at home."""

    def __init__(self, client: ModelClient, home: Home) -> None:
        self._client = client
        self._home = home

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
class LentContext(CompactionContext):
    """The seed's fields for a strategy on another thread; `own` is the context that stays at `home`."""

    own: BoundContext
    home: Home


def lend(ctx: BoundContext, home: Home) -> LentContext:
    """Return the context as a strategy on another thread may use it."""
    return LentContext(
        history=ctx.history,
        token_count=ctx.token_count,
        max_context_size=ctx.max_context_size,
        reserved_context_size=ctx.reserved_context_size,
        llm=CompactionModel(ctx.llm.facts, HomeClient(ctx.llm.client, home)),
        reason=ctx.reason,
        focus=ctx.focus,
        previous_summary=ctx.previous_summary,
        cache=ctx.cache,
        own=ctx,
        home=home,
    )


async def at_home(ctx: CompactionContext, work: Callable[[BoundContext], Awaitable[T]]) -> T:
    """Return what `work` makes of the context; one that was lent goes home for it, with a changed focus or reason.

    Raises `StrategyError` for a context that was not made by Tenuto.
    """
    if isinstance(ctx, BoundContext):
        return await work(ctx)
    if isinstance(ctx, LentContext):
        own = dataclasses.replace(ctx.own, reason=ctx.reason, focus=ctx.focus, cache=ctx.cache)
        return await ctx.home.run(lambda: work(own))
    raise StrategyError("the built-in strategies work on the context that Tenuto passes to `compact`")
