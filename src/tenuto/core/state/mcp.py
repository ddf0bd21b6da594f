"""The MCP servers of one session: looked for when it is opened, ended when it is left.

Where none are configured, nothing of `tenuto.tool.mcp` is imported, and nothing waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tenuto.config.mcp.files import may_have_servers, read_configured
from tenuto.config.settings import Settings
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import Level
from tenuto.session.store import PROCESSES, SERVERS
from tenuto.text.figures import plural

if TYPE_CHECKING:
    from tenuto.tool.mcp.hub import McpHub, Server
    from tenuto.tool.mcp.remote import Elicitation, Reply
    from tenuto.tool.run.registry import ToolRegistry

Notify = Callable[[str, Level], None]


class Place(Struct, frozen=True, kw_only=True):
    """Where a session works, and the folder of its log."""

    cwd: Path
    home: Path
    environ: Mapping[str, str]
    folder: Path


class SessionServers:
    """Starts the servers of a session and gives their tools to its registry."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._starting: asyncio.Task[None] | None = None
        self._again: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._settings = Settings().mcp
        self._notify: Notify = lambda _text, _level: None
        self._tell_late: Callable[[tuple[str, ...]], bool] = lambda _names: False
        self._said: tuple[str, ...] | None = None
        self._reloading = False
        self._problems: tuple[str, ...] = ()
        self.hub: McpHub | None = None

    def begin(
        self,
        settings: Settings,
        place: Place,
        notify: Notify,
        tell_late: Callable[[tuple[str, ...]], bool],
        ask: Callable[[Elicitation], Awaitable[Reply]],
    ) -> None:
        """Look for servers and start them, beside everything else.

        `tell_late` says whether the model was told of other tools than those of these names.
        """
        self._registry.attach("servers", None)
        self._settings, self._notify, self._tell_late = settings.mcp, notify, tell_late
        if may_have_servers(place.home, place.cwd, settings):
            self._again = partial(self._start, settings, place, ask)
            self._starting = asyncio.create_task(self._again(), name="mcp servers")

    async def _start(self, settings: Settings, place: Place, ask: Callable[[Elicitation], Awaitable[Reply]]) -> None:
        configured = await asyncio.to_thread(read_configured, place.home, place.cwd, settings)
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

        around = Surroundings(
            cwd=place.cwd,
            home=place.home,
            environ=place.environ,
            logs=place.folder / SERVERS,
            records=place.folder / PROCESSES,
        )
        ears = Ears(notify=self._notify, changed=self._changed, ask=ask)
        self.hub = McpHub(configured.servers, around, ears, settings.mcp.defer_over)
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

    async def wait(self) -> None:
        """Wait before a session's first prompt until the servers have answered, but not for slow ones."""
        if self._starting is None:
            return
        await asyncio.wait((self._starting,))
        if self.hub is None:
            return
        late = await self.hub.wait(self._settings.wait)
        if late:
            names = ", ".join(server.name for server in late)
            self._notify(f"Not waiting for {plural(len(late), 'MCP server')} any longer: {names}", "info")

    async def refresh(self) -> None:
        """Ask every server again for what it has: a new `system` entry is about to be written."""
        if self.hub is not None:
            self._reloading = True
            try:
                await self.hub.refresh()
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
        hub = self.hub
        if hub is None or server.state != "ready" or self._reloading:
            return
        names = tuple(schema.name for schema in hub.offered)
        if names != self._said and self._tell_late(names):
            self._said = names
            has = plural(len(server.listing.tools), "tool")
            self._notify(
                f"MCP server {server.name} is there with {has}. The model hears of it after the next compaction, or "
                "now with /mcp reload",
                "info",
            )
