"""The MCP servers of one session: looked for when it is opened, ended when it is left.

Where none are configured, nothing of `tenuto.tool.mcp` is imported, and nothing waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tenuto.config.mcp.files import may_have_servers, read_configured
from tenuto.config.mcp.servers import NamedServer
from tenuto.config.settings import Settings
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import Level
from tenuto.protocol.model import ToolSchema
from tenuto.session.store import PROCESSES, SERVERS
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural

if TYPE_CHECKING:
    from tenuto.tool.mcp.hub import McpHub, Server
    from tenuto.tool.mcp.remote import Elicitation, Reply
    from tenuto.tool.run.registry import ToolRegistry

Notify = Callable[[str, Level], None]
NAMED_CHARS = 120
"""Of the names of tools that have changed."""


class Place(Struct, frozen=True, kw_only=True):
    """Where a session works, and the folder of its log."""

    cwd: Path
    home: Path
    environ: Mapping[str, str]
    folder: Path
    given: tuple[NamedServer, ...] = ()
    """The servers that an editor brings for the session."""


class SessionServers:
    """Starts the servers of a session and gives their tools to its registry."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._starting: asyncio.Task[None] | None = None
        self._again: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._settings = Settings().mcp
        self._notify: Notify = lambda _text, _level: None
        self._told: Callable[[], tuple[ToolSchema, ...] | None] = lambda: None
        self._said: dict[str, dict[str, ToolSchema]] = {}
        self._reloading = False
        self._problems: tuple[str, ...] = ()
        self.hub: McpHub | None = None

    def begin(
        self,
        settings: Settings,
        place: Place,
        notify: Notify,
        told: Callable[[], tuple[ToolSchema, ...] | None],
        ask: Callable[[Elicitation], Awaitable[Reply]],
    ) -> None:
        """Look for servers and start them, beside everything else.

        `told` returns what the model was told of tools that are not built in, `None` before its first request.
        """
        self._registry.attach("servers", None)
        self._settings, self._notify, self._told = settings.mcp, notify, told
        if may_have_servers(place.home, place.cwd, settings, place.given):
            self._again = partial(self._start, settings, place, ask)
            self._starting = asyncio.create_task(self._again(), name="mcp servers")

    async def _start(self, settings: Settings, place: Place, ask: Callable[[Elicitation], Awaitable[Reply]]) -> None:
        configured = await asyncio.to_thread(read_configured, place.home, place.cwd, settings, place.given)
        for problem in configured.problems:
            if problem not in self._problems:
                self._notify(sanitize_line(problem), "warning")
        self._problems = configured.problems
        if self.hub is not None:
            await self.hub.replace(configured.servers)
            return
        if not configured.servers:
            return
        from tenuto.tool.mcp.hub import Ears, McpHub
        from tenuto.tool.mcp.remote import Surroundings
        from tenuto.tool.mcp.stored import StoredListings

        stored = StoredListings(place.home, place.cwd)
        known = await asyncio.to_thread(stored.load, configured.servers)
        around = Surroundings(
            cwd=place.cwd,
            home=place.home,
            environ=place.environ,
            logs=place.folder / SERVERS,
            records=place.folder / PROCESSES,
        )
        ears = Ears(notify=self._notify, changed=self._changed, ask=ask)
        self.hub = McpHub(configured.servers, around, ears, settings.mcp.defer_over, known)
        self._registry.attach("servers", self.hub)
        self.hub.start()

    async def follow_trust(self) -> None:
        """Start the servers of the project that the user trusts by now, and end those that they trust no more."""
        if self._again is None:
            return  # none were looked for
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        self._starting = asyncio.create_task(self._again(), name="mcp servers")
        await asyncio.wait((self._starting,))

    async def look(self) -> McpHub | None:
        """Return the servers as soon as it is known which there are; `None` where there are none."""
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        return self.hub

    async def answered(self) -> None:
        """Wait until each server that is not known yet has answered or failed, however slow it is."""
        hub = await self.look()
        for server in () if hub is None else tuple(hub.servers.values()):
            if not server.is_stored:
                await server.settled.wait()

    async def wait(self) -> None:
        """Wait before a session's first prompt until the servers have answered, but not for slow ones."""
        hub = await self.look()
        if hub is None:
            return
        late = await hub.wait(self._settings.wait)
        if late:
            names = ", ".join(server.name for server in late)
            self._notify(f"Not waiting for {plural(len(late), 'MCP server')} any longer: {names}", "info")

    async def refresh(self) -> None:
        """Ask every server again for what it has: a new `system` entry is about to be written."""
        if self.hub is not None:
            self._reloading = True
            try:
                await self.hub.refresh(self._settings.wait)
            finally:
                self._reloading = False

    async def close(self, *, keep_logs: bool) -> None:
        """End the servers; their logs go with a session in which nothing was said."""
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((self._starting,))
        self._registry.attach("servers", None)
        if self.hub is not None:
            await self.hub.close()
            if not keep_logs:
                self.hub.remove_logs()

    def _changed(self, server: Server) -> None:
        """Say once of each change that the model hears of it later: what it was told must not change (DESIGN 7)."""
        hub, told = self.hub, self._told()
        if hub is None or told is None or server.state != "ready" or self._reloading:
            return
        before, now = of_server(told, server.name), of_server(hub.offered, server.name)
        if now == before or now == self._said.get(server.name, before):
            return
        self._said[server.name] = now
        self._notify(
            f"MCP server {server.name} {describe_change(before, now) or describe_size(server)}. The model hears of it "
            "after the next compaction, or now with /mcp reload",
            "info",
        )


def of_server(schemas: Iterable[ToolSchema], name: str) -> dict[str, ToolSchema]:
    """Return the tools of a server by their names; the two that stand for many belong to every server."""
    from tenuto.tool.mcp.naming import server_of, server_word
    from tenuto.tool.mcp.tools import CALL, SEARCH

    word = server_word(name)
    return {one.name: one for one in schemas if one.name in (SEARCH, CALL) or server_of(one.name) == word}


def describe_change(before: Mapping[str, ToolSchema], now: Mapping[str, ToolSchema]) -> str:
    """Return what became of tools that the model was told of, as a part of a sentence; empty where it knows none."""
    from tenuto.tool.mcp.tools import SEARCH

    if not before or SEARCH in before or SEARCH in now:
        return ""
    same = before.keys() & now.keys()
    kinds = (
        ("new", now.keys() - before.keys()),
        ("gone", before.keys() - now.keys()),
        ("changed", {name for name in same if before[name] != now[name]}),
    )
    said = [f"{kind} {shorten(', '.join(sorted(names)), NAMED_CHARS)}" for kind, names in kinds if names]
    return f"has other tools than before: {'; '.join(said)}"


def describe_size(server: Server) -> str:
    """Return that a server is there, as a part of a sentence."""
    return f"is there with {plural(len(server.listing.tools), 'tool')}"
