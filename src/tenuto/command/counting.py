"""Work of commands that takes its time: done in a thread, with a count for the front-ends, ended by Esc."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.protocol.event import CommandProgressEvent
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.search import SEARCH_SECONDS, Stop, run_stoppable

T = TypeVar("T")
A_DAY = 86_400.0
"""Seconds for work that nobody ends because of the time that it takes."""


async def run_counted(runtime: Runtime, what: str, work: Callable[[Stop], T], *, seconds: float = SEARCH_SECONDS) -> T:
    """Run a command's work in a thread, and tell the front-ends how far it is, as `Searching, entries: 12 of 300`.

    A cancellation ends it. Raises `UsageError` where the work cannot be done, and what else it raises.
    """
    told = ""

    def tell(text: str) -> None:
        nonlocal told
        told = text
        runtime.bus.publish(CommandProgressEvent(session_id=runtime.session_id, text=text))

    try:
        return await run_stoppable(work, lambda reached: tell(f"{what}, {reached}"), seconds=seconds)
    except ToolError as error:
        raise UsageError(str(error)) from error
    finally:
        if told:
            tell("")
