"""Tools and extensions that a program gives its agent: what the extension host loads, without any file."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from tenuto.api.checking import takes_one
from tenuto.core.errors import UsageError
from tenuto.extension.api import ExtensionApi
from tenuto.extension.finding import LoadingError, Source, setup_of
from tenuto.extension.host import ExtensionHost

PROGRAM = "program"
"""What a program's own tools are called by: in approvals and messages it is the extension of that name."""


class Home:
    """The event loop that an agent was opened on, as soon as it is."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None


def own_sources(tools: Sequence[Callable[..., object]], extensions: Iterable[object], home: Home) -> tuple[Source, ...]:
    """Return what a program gives as extensions: its functions as one, and each `setup` or module with such a one.

    Raises `UsageError` for a function that is no tool; what a `setup` does is seen when it is called.
    """
    sources: list[Source] = []
    if tools:
        register = functools.partial(_register, [_at_home(tool, home) for tool in tools])
        try:
            register(ExtensionApi(PROGRAM))
        except (TypeError, ValueError) as error:
            raise UsageError(f"tools: {error}") from error
        sources.append(Source(name=PROGRAM, place="the program", load=lambda: register))
    for given in extensions:
        try:
            setup = setup_of(given)
        except LoadingError as error:
            raise UsageError(f"extensions: {given!r:.100}: {error}") from error
        if not takes_one(setup):
            raise UsageError(f"extensions: {given!r:.100}: its setup takes one argument, what it registers with")
        taken = {source.name for source in sources}
        sources.append(Source(name=_name(given, taken), place="the program", load=lambda setup=setup: setup))
    return tuple(sources)


def find_fault(sources: Sequence[Source], host: ExtensionHost | None) -> str:
    """Return what is wrong with one of these in a host that has loaded them, empty where nothing is."""
    names = "|".join(re.escape(source.name) for source in sources)
    problems = host.problems if host is not None else ()
    return next((line for line in problems if re.search(rf"\bextension ({names})(?!\w)", line)), "")


def _register(tools: Sequence[Callable[..., object]], api: Any) -> None:
    for tool in tools:
        api.tool(tool)


def _at_home(tool: Callable[..., object], home: Home) -> Callable[..., object]:
    """Return a tool that is awaited on the agent's own loop where it is `async`: what it uses belongs there."""
    if not inspect.iscoroutinefunction(tool):
        return tool

    @functools.wraps(tool)
    async def call(**given: object) -> object:
        if home.loop is None:
            raise RuntimeError("the agent is not open")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(tool(**given), home.loop))

    return call


def _name(given: object, taken: set[str]) -> str:
    """Return a name for an extension: of its function, of the module for a plain `setup`, with a number if taken."""
    module = given.__name__ if isinstance(given, ModuleType) else getattr(given, "__module__", "")
    own = "setup" if isinstance(given, ModuleType) else getattr(given, "__name__", type(given).__name__)
    name = own if own != "setup" else module.rpartition(".")[2]
    name = PROGRAM if name in {"__main__", ""} else name
    numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(one for one in numbered if one not in taken)
