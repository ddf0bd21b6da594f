"""All servers of a session: a thread of their own, what each one has, and what of it a model is offered.

The thread imports the SDK (most of a second) and runs its loop, so neither the first paint nor a server that floods us
holds up the screen. Everything here but `_Thread` belongs to the session's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct, field

from tenuto.config.mcp.servers import NamedServer
from tenuto.guard.subject import MCP_PREFIX
from tenuto.protocol.entry import Level
from tenuto.protocol.model import ToolSchema
from tenuto.text.figures import plural
from tenuto.tool.mcp.naming import JOINT, server_of, server_word
from tenuto.tool.mcp.remote import (
    ConnectionLost,
    Elicitation,
    Listing,
    RemoteResult,
    RemoteTool,
    Reply,
    Surroundings,
)
from tenuto.tool.mcp.stored import StoredListings
from tenuto.tool.mcp.tools import CALL, SEARCH, CallTool, McpTool, SearchTool, deferring_schemas

if TYPE_CHECKING:
    from tenuto.tool.mcp.connection import Connection, News

State = Literal["starting", "ready", "failed", "ended", "closed"]
"""`failed`: it never answered; `ended`: it did, and is gone."""
CLOSE_SECONDS = 8.0
PAUSE_SECONDS = 2.0
"""After so many seconds servers are started whose tools are known: neither the first paint nor a short `-p` pays."""
RESTARTS = 3
"""Times that a call starts a server again that has ended."""
T = TypeVar("T")


class Server(Struct, eq=False):
    """What is known of one server. `why` says what is wrong; `log` is the file of its stderr."""

    named: NamedServer
    log: Path
    state: State = "starting"
    why: str = ""
    listing: Listing = Listing()
    is_stored: bool = False
    """Its listing is the one of an earlier start: it has not answered yet, and nobody waits for it but a call."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    connection: Connection | None = None
    restarts: int = 0
    serving: Future[None] | None = None
    """The task on the thread that connects and stays; another one than before after each start."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.named.name

    @property
    def is_offered(self) -> bool:
        """Whether a model is told of its tools: it has answered, or it did at an earlier start and is expected."""
        return self.state == "ready" or (self.state == "starting" and self.is_stored)

    def tool(self, public: str) -> RemoteTool | None:
        """Return its tool of that public name."""
        return next((tool for tool in self.listing.tools if tool.schema.name == public), None)


class Ears(Struct, frozen=True, kw_only=True):
    """Who is told: `notify` shows a line, `changed` hears that what is offered may be another, `ask` asks the user."""

    notify: Callable[[str, Level], None]
    changed: Callable[[Server], None]
    ask: Callable[[Elicitation], Awaitable[Reply]]


class _Thread:
    """The thread of the servers, with its loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self._serve, name="mcp", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def run(self, made: Coroutine[Any, Any, T]) -> T:
        """Run it on the thread's loop; a cancellation here is one there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(made, self._loop))

    def start(self, made: Coroutine[Any, Any, None]) -> Future[None]:
        """Have it run; return what cancels it."""
        return asyncio.run_coroutine_threadsafe(made, self._loop)

    def call(self, function: Callable[[], None]) -> None:
        """Have it called."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(function)

    async def close(self) -> None:
        """Wait a moment for what runs, then let go of it."""
        with contextlib.suppress(RuntimeError, TimeoutError):
            await asyncio.wait_for(self.run(_wait_for_others()), CLOSE_SECONDS)
        self.call(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 1.0)


async def _wait_for_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


class McpHub:
    """Starts servers, keeps what they have, and calls them."""

    def __init__(
        self,
        servers: Sequence[NamedServer],
        around: Surroundings,
        ears: Ears,
        defer_over: int,
        known: Mapping[str, Listing] | None = None,
    ) -> None:
        """Have these servers; `known` is what some of them had at an earlier start."""
        self._around = around
        self._ears = ears
        self._defer_over = defer_over
        self._loop = asyncio.get_running_loop()
        self._thread: _Thread | None = None
        self._offer: tuple[tuple[Listing, ...], tuple[ToolSchema, ...]] = ((), ())
        self._stored = StoredListings(around.home, around.cwd)
        self._later: asyncio.TimerHandle | None = None
        self.servers = {one.name: Server(one, self._log_of(one.name)) for one in servers}
        for name, listing in (known or {}).items():
            self.servers[name].listing, self.servers[name].is_stored = listing, True
        self._opened = self._loop.time()

    def start(self) -> None:
        """Begin to connect, to those whose tools are known after a pause or when one is called; returns at once."""
        for server in self.servers.values():
            if not server.is_stored:
                self._connect(server)
        self._later = self._loop.call_later(PAUSE_SECONDS, self._connect_stored)

    def _connect_stored(self) -> list[Server]:
        """Begin to connect to the servers that are not needed yet; return them."""
        waiting = [server for server in self.servers.values() if server.is_stored and server.serving is None]
        for server in waiting:
            self._connect(server)
        return waiting

    @property
    def _on_thread(self) -> _Thread:
        """The thread, from the first connection on."""
        if self._thread is None:
            self._thread = _Thread()
        return self._thread

    def _log_of(self, name: str) -> Path:
        return self._around.logs / f"{server_word(name)}.log"

    # --- what there is ---

    def tools(self) -> list[tuple[Server, RemoteTool]]:
        """Return the tools of all servers that have answered, by server and name: in no order of answering."""
        ordered = (self.servers[name] for name in sorted(self.servers))
        return [(server, tool) for server in ordered if server.is_offered for tool in server.listing.tools]

    @property
    def offered(self) -> tuple[ToolSchema, ...]:
        """What a new `system` entry would tell the model of; the same object as long as nothing has changed."""
        key = tuple(self.servers[name].listing for name in sorted(self.servers) if self.servers[name].is_offered)
        known, _ = self._offer
        if len(key) != len(known) or any(one is not other for one, other in zip(key, known, strict=True)):
            self._offer = (key, self.offer(self.tools()))
        return self._offer[1]

    def offer(self, tools: Sequence[tuple[Server, RemoteTool]]) -> tuple[ToolSchema, ...]:
        """Return what a model is told of these tools: each of them, or the two that stand for many."""
        if len(tools) <= self._defer_over:
            return tuple(tool.schema for _, tool in tools)
        return deferring_schemas(Counter(server.name for server, _ in tools))

    def only(self, names: frozenset[str]) -> SomeTools:
        """Return a part of the tools, over the same connections."""
        return SomeTools(self, names)

    def find(self, name: str) -> McpTool | SearchTool | CallTool | None:
        """Return the tool of that name as it can be called, `None` for a name of no server."""
        if name == SEARCH:
            return SearchTool(lambda: [tool for _, tool in self.tools()])
        return CallTool(self.find_tool) if name == CALL else self.find_tool(name)

    def find_tool(self, name: str) -> McpTool | None:
        """Return the tool of a server by its public name, also where the server is not there (yet, or any more)."""
        word = server_of(name)
        server = next((one for one in self.servers.values() if word and server_word(one.name) == word), None)
        if server is None:
            return None
        return McpTool(name, server.name, partial(server.tool, name), partial(self.call, server, name))

    # --- waiting, calling ---

    async def wait(self, seconds: float) -> list[Server]:
        """Wait for every server whose tools are not known, at most so long after the opening; return the late ones."""
        unknown = [server for server in self.servers.values() if not server.is_stored]
        await _wait_settled(unknown, max(0.0, self._opened + seconds - self._loop.time()))
        return [server for server in unknown if not server.settled.is_set()]

    async def call(
        self, server: Server, public: str, arguments: dict[str, Any], progress: Callable[[str], None]
    ) -> RemoteResult:
        """Call a tool by its public name. Raises `ConnectionLost` and `CallFailed`."""
        connection = await self._ready(server)
        tool = server.tool(public)
        if tool is None:
            raise ConnectionLost(f"it has no tool {public} any more; /mcp reload tells the model what there is")

        def show(text: str) -> None:
            self._loop.call_soon_threadsafe(progress, text)

        return await self._talk(server, connection.call(tool.name, arguments, show))

    async def prompt(self, server: Server, name: str, arguments: dict[str, str]) -> RemoteResult:
        """Return a prompt of a server. Raises `ConnectionLost` and `CallFailed`."""
        connection = await self._ready(server)
        return await self._talk(server, connection.prompt(name, arguments))

    async def read(self, server: Server, uri: str) -> RemoteResult:
        """Return a resource of a server. Raises `ConnectionLost` and `CallFailed`."""
        connection = await self._ready(server)
        return await self._talk(server, connection.read(uri))

    async def _talk(self, server: Server, made: Coroutine[Any, Any, RemoteResult]) -> RemoteResult:
        """Run it on the thread; when its server has ended, that is known here before it is raised."""
        try:
            return await self._on_thread.run(made)
        except ConnectionLost:
            await self._wait_for_end(server)
            raise

    async def _wait_for_end(self, server: Server) -> None:
        if server.serving is not None:
            await asyncio.wait((asyncio.wrap_future(server.serving),), timeout=CLOSE_SECONDS)

    async def refresh(self, seconds: float) -> None:
        """Ask every server for what it has now; wait at most so long for those that were not needed yet."""
        await _wait_settled(self._connect_stored(), seconds)
        for server in self.servers.values():
            if server.state == "ready" and server.connection is not None:
                with contextlib.suppress(ConnectionLost):
                    await self._on_thread.run(server.connection.refresh())
        await asyncio.sleep(0)  # what they told is on this loop now

    async def reconnect(self, server: Server) -> None:
        """Let go of a server and connect again; returns when it has answered or failed."""
        self._let_go(server)
        await self._wait_for_end(server)
        server.restarts = 0
        self._connect(server)
        await server.settled.wait()

    async def replace(self, servers: Sequence[NamedServer]) -> None:
        """Have these servers from now on: those that are the same stay, others are ended or started."""
        wanted = {one.name: one for one in servers}
        gone = [server for server in self.servers.values() if wanted.get(server.name) != server.named]
        for server in gone:
            server.state = "closed"  # before anything is told of it
            self._let_go(server)
            del self.servers[server.name]
            server.settled.set()
        for server in gone:
            await self._wait_for_end(server)
        for name in wanted.keys() - self.servers.keys():
            self.servers[name] = Server(wanted[name], self._log_of(name))
            self._connect(self.servers[name])

    async def close(self) -> None:
        """End all servers, and wait until their processes have ended."""
        if self._later is not None:
            self._later.cancel()
        for server in self.servers.values():
            server.state = "closed"  # before anything is told of it
            self._let_go(server)
        if self._thread is not None:
            await self._thread.close()

    def remove_logs(self) -> None:
        """Remove what servers wrote to their stderr."""
        with contextlib.suppress(OSError):
            for server in self.servers.values():
                server.log.unlink(missing_ok=True)
            self._around.logs.rmdir()

    def _let_go(self, server: Server) -> None:
        """Have its connection end in good order, or at once where it does not stand yet."""
        if server.connection is not None:
            self._on_thread.call(server.connection.close)
        elif server.serving is not None:
            server.serving.cancel()

    async def _ready(self, server: Server) -> Connection:
        if server.is_stored and server.serving is None:
            self._connect(server)
        seconds = server.named.server.startup_timeout
        await _wait_settled([server], seconds)
        if not server.settled.is_set():
            raise ConnectionLost(f"no answer within {seconds:g} seconds")
        if server.state == "ended" and server.restarts < RESTARTS:
            server.restarts += 1
            self._connect(server)
            await server.settled.wait()
        if server.state != "ready" or server.connection is None:
            raise ConnectionLost(server.why or f"it is {server.state}")
        return server.connection

    # --- connecting ---

    def _connect(self, server: Server) -> None:
        server.state, server.why = "starting", ""
        server.settled.clear()

        async def serve() -> None:
            from tenuto.tool.mcp.connection import Connection, silence_sdk  # the SDK, on its own thread

            silence_sdk()
            connection: Connection

            def tell(news: News) -> None:
                if news.listing is not None:
                    self._stored.keep(server.named, news.listing)
                elif news.never_came and server.state != "closed":
                    self._stored.forget(server.named)
                with contextlib.suppress(RuntimeError):  # the session's loop has ended
                    self._loop.call_soon_threadsafe(self._note, server, connection, news)

            connection = Connection(server.named, self._around, server.log, tell, self._ask)
            await connection.serve()

        def end(serving: Future[None]) -> None:
            """Have an installation in which the SDK cannot be imported told like everything else."""
            error = None if serving.cancelled() else serving.exception()
            if error is not None:
                self._loop.call_soon_threadsafe(self._note_lost, server, f"{type(error).__name__}: {error}")

        server.serving = self._on_thread.start(serve())
        server.serving.add_done_callback(end)

    async def _ask(self, elicitation: Elicitation) -> Reply:
        """Called on the thread: ask the user on the session's loop."""

        async def ask() -> Reply:
            return await self._ears.ask(elicitation)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), self._loop))

    def _note(self, server: Server, connection: Connection, news: News) -> None:
        """Take over what a connection tells."""
        if server.state == "closed" or server.connection not in (None, connection):
            return
        if news.listing is not None:
            server.connection, server.state = connection, "ready"
            if server.listing != news.listing:
                server.listing = news.listing
            server.is_stored = False
            if news.listing.left_out:
                self._ears.notify(f"MCP server {server.name}: left out {', '.join(news.listing.left_out)}", "warning")
            server.settled.set()
            self._ears.changed(server)
        else:
            self._note_lost(server, news.lost)

    def _note_lost(self, server: Server, why: str) -> None:
        """Note that a server is gone, and say why, unless somebody let go of it."""
        if server.state == "closed":
            return
        was_ready = server.state == "ready"
        server.connection, server.why, server.is_stored = None, why, False
        server.state = "ended" if was_ready else "failed"
        if why:
            verb = "has ended" if was_ready else "cannot be used"
            self._ears.notify(
                f"MCP server {server.name} {verb}: {why}. /mcp shows its log and starts it again.", "warning"
            )
        server.settled.set()
        self._ears.changed(server)


class SomeTools:
    """The tools of a hub that a sub-agent has: those that it names, as far as the agent above it has them.

    `mcp__server` and `mcp__server__*` are all of one; whoever has the two that stand for many has all.
    """

    def __init__(self, hub: McpHub, names: frozenset[str], above: SomeTools | None = None) -> None:
        self._hub = hub
        self._names = names
        self._above = above
        self._offer: tuple[tuple[ToolSchema, ...], tuple[ToolSchema, ...]] = ((), ())

    def tools(self) -> list[tuple[Server, RemoteTool]]:
        """Return them, by server and name."""
        return [(server, tool) for server, tool in self._hub.tools() if self._has(tool.schema.name)]

    @property
    def offered(self) -> tuple[ToolSchema, ...]:
        """What a model is told of them; the same object as long as the hub offers the same."""
        every = self._hub.offered
        if self._offer[0] is not every:
            self._offer = (every, self._hub.offer(self.tools()))
        return self._offer[1]

    def find(self, name: str) -> McpTool | SearchTool | CallTool | None:
        """Return the tool of that name as it can be called, `None` for one that is not among them."""
        if name == SEARCH:
            return SearchTool(lambda: [tool for _, tool in self.tools()])
        return CallTool(self._find_tool) if name == CALL else self._find_tool(name)

    def only(self, names: frozenset[str]) -> SomeTools:
        """Return a part of the part."""
        return SomeTools(self._hub, names, self)

    def _find_tool(self, name: str) -> McpTool | None:
        return self._hub.find_tool(name) if self._has(name) else None

    def _has(self, name: str) -> bool:
        server = f"{MCP_PREFIX}{server_of(name)}"
        meant = {SEARCH, name, server, f"{server}{JOINT}*"}
        return not meant.isdisjoint(self._names) and (self._above is None or self._above._has(name))


async def _wait_settled(servers: Sequence[Server], seconds: float) -> None:
    """Wait until these have answered or failed, at most so long."""
    waits = [asyncio.ensure_future(server.settled.wait()) for server in servers]
    if waits:
        await asyncio.wait(waits, timeout=seconds)
    for wait in waits:
        wait.cancel()


def describe_state(server: Server) -> str:
    """Return what a server is and has, in a few words."""
    match server.state:
        case "starting" if server.is_stored and server.serving is None:
            return f"{plural(len(server.listing.tools), 'tool')}, not started yet"
        case "ready":
            listing = server.listing
            rest = [
                plural(len(found), noun)
                for found, noun in ((listing.prompts, "prompt"), (listing.resources, "resource"))
                if found
            ]
            return ", ".join([plural(len(listing.tools), "tool"), *rest])
        case "failed" | "ended":
            return f"{server.state}: {server.why}"
        case "starting" | "closed":
            return server.state
