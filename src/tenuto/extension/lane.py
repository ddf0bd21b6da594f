"""A thread with an event loop of its own, on which all code of one extension runs.

So an extension that blocks, in a handler or while it is imported, freezes neither the screen nor Esc nor another
extension. The thread is a daemon: one that never returns does not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class LaneError(Exception):
    """A call that came to no answer; `str(error)` is one line that says why."""


class LaneTimeoutError(LaneError):
    """A call that took too long."""


@dataclass(eq=False, slots=True)
class _Call:
    """A function that runs on the lane, and whether nobody waits for it any more."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    is_left: bool = False


class Lane:
    """Runs one extension's functions, plain or `async`. `on_stray` is told, on the lane, of faults nobody waits for."""

    def __init__(self, name: str, on_stray: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, context: _tell_stray(context, on_stray))
        self._thread = threading.Thread(target=self._serve, name=f"extension {name}", daemon=True)
        self._inside: set[_Call] = set()
        self._thread.start()

    @property
    def is_stuck(self) -> bool:
        """Whether a function that nobody waits for any more still runs."""
        return any(call.is_left for call in tuple(self._inside))

    async def call(self, function: Callable[..., object], *arguments: object, timeout: float) -> object:
        """Call `function` on the lane, await what it returns, and return that.

        Raises what it raises, `LaneTimeoutError` after `timeout` seconds, `LaneError` when it would end the program or
        cancels itself. When the caller is cancelled, so is an `async` function; a plain one is left behind.
        """
        if self._loop.is_closed():
            raise LaneError("it has ended")
        call = _Call(function, arguments)
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._invoke(call), self._loop))
        try:
            await asyncio.wait((waiting,), timeout=timeout)
            if not waiting.done():
                raise LaneTimeoutError(f"no answer within {timeout:g} seconds")
        finally:
            call.is_left = True
            waiting.cancel()
        if waiting.cancelled():
            raise LaneError("it cancelled itself")
        return waiting.result()

    def close(self) -> None:
        """Let the thread end when it is free. Safe to call twice."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._give_up())
        finally:
            self._loop.close()

    async def _give_up(self) -> None:
        """Cancel what is still asked for, so that nobody waits for an answer that cannot come."""
        await asyncio.sleep(0)  # a call that was made just before the end becomes a task
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _invoke(self, call: _Call) -> object:
        self._inside.add(call)
        try:
            result = call.function(*call.arguments)
            return await result if inspect.isawaitable(result) else result
        except (SystemExit, KeyboardInterrupt) as error:  # it would end the lane's loop, and with it the next calls
            raise LaneError(f"it tried to end the program ({type(error).__name__})") from error
        finally:
            self._inside.discard(call)


def _tell_stray(context: dict[str, Any], on_stray: Callable[[BaseException], None]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception):
        on_stray(error)
