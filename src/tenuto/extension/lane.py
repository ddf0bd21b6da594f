"""A thread with an event loop of its own, on which all code of one extension runs.

So an extension that blocks, in a handler or while it is imported, freezes neither the screen nor Esc nor another
extension. The thread is a daemon: one that never returns does not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any


class LaneError(Exception):
    """A call that came to no answer; `str(error)` is one line that says why."""


class LaneTimeoutError(LaneError):
    """A call that took too long."""


class Lane:
    """Runs one extension's functions, plain or `async`. `on_stray` is told, on the lane, of faults nobody waits for."""

    def __init__(self, name: str, on_stray: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, context: _tell_stray(context, on_stray))
        self._thread = threading.Thread(target=self._serve, name=f"extension {name}", daemon=True)
        self._thread.start()

    async def call(self, function: Callable[..., object], *arguments: object, timeout: float) -> object:
        """Call `function` on the lane, await what it returns, and return that.

        Raises what it raises, `LaneTimeoutError` after `timeout` seconds, `LaneError` when it would end the program or
        cancels itself. When the caller is cancelled, so is an `async` function; a plain one is left behind.
        """
        running = asyncio.run_coroutine_threadsafe(_invoke(function, arguments), self._loop)
        waiting = asyncio.wrap_future(running)
        try:
            await asyncio.wait((waiting,), timeout=timeout)
            if not waiting.done():
                raise LaneTimeoutError(f"no answer within {timeout:g} seconds")
        finally:
            waiting.cancel()
        if waiting.cancelled():
            raise LaneError("it cancelled itself")
        return waiting.result()

    def close(self) -> None:
        """Let the thread end when it is free."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


async def _invoke(function: Callable[..., object], arguments: tuple[object, ...]) -> object:
    try:
        result = function(*arguments)
        return await result if inspect.isawaitable(result) else result
    except (SystemExit, KeyboardInterrupt) as error:  # it would end the lane's loop, and with it the next calls
        raise LaneError(f"it tried to end the program ({type(error).__name__})") from error


def _tell_stray(context: dict[str, Any], on_stray: Callable[[BaseException], None]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception):
        on_stray(error)
