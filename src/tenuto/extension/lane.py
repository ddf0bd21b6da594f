"""A thread with an event loop for somebody else's code, and a fault of such code in one line."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_REPORT = 300
"""Characters of a foreign error that the user is shown."""


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
    """Runs somebody else's functions, plain or `async`, on a thread of that name.

    `on_stray` is told, on the lane, of faults nobody waits for.
    """

    def __init__(self, name: str, on_stray: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, context: _tell_stray(context, on_stray))
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._inside: set[_Call] = set()
        self._thread.start()

    @property
    def is_stuck(self) -> bool:
        """Whether a function that nobody waits for any more still runs."""
        return any(call.is_left for call in tuple(self._inside))

    async def call(
        self,
        function: Callable[..., object],
        *arguments: object,
        timeout: float,
        is_excused: Callable[[], bool] | None = None,
        on_leave: Callable[[], None] | None = None,
    ) -> object:
        """Call `function` on the lane, await what it returns, and return that.

        Raises what it raises, `LaneTimeoutError` after `timeout` seconds (at the end of which `is_excused` may grant
        as many again), `LaneError` when it would end the program or cancels itself. When the caller is cancelled, so is
        an `async` function; a plain one is left behind. Before that `on_leave` is called, on the lane.
        """
        if self._loop.is_closed():
            raise LaneError("it has ended")
        call = _Call(function, arguments)
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._invoke(call), self._loop))
        try:
            await asyncio.wait((waiting,), timeout=timeout)
            while not waiting.done() and is_excused is not None and is_excused():
                await asyncio.wait((waiting,), timeout=timeout)
            if not waiting.done():
                raise LaneTimeoutError(f"no answer within {timeout:g} seconds")
        finally:
            call.is_left = True
            if on_leave is not None and not waiting.done():
                with contextlib.suppress(RuntimeError):  # it has ended
                    self._loop.call_soon_threadsafe(on_leave)
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
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # SystemExit and its like: it would end the lane's loop, or the program
            raise LaneError(f"it tried to end the program ({type(error).__name__})") from error
        finally:
            self._inside.discard(call)


def _tell_stray(context: dict[str, Any], on_stray: Callable[[BaseException], None]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception):
        on_stray(error)


def describe_fault(error: BaseException) -> str:
    """Return a foreign error as one line, with the last place in the code that it came from."""
    if isinstance(error, LaneError):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_foreign(frame.filename)]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_REPORT] + place


def _is_foreign(filename: str) -> bool:
    """Say whether a frame is neither the import machinery's nor of what runs foreign code."""
    return not filename.startswith("<frozen") and Path(filename).parent != Path(__file__).parent
