"""One connection to one server, on the loop of the servers' own thread. Here alone the SDK is used."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError, types
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from pydantic import FileUrl

from tenuto.config.mcp.servers import McpServer, NamedServer, ServerError, expand
from tenuto.text.bounding import shorten
from tenuto.tool.mcp.login import stored_login
from tenuto.tool.mcp.remote import (
    CallFailed,
    ConnectionLost,
    Elicitation,
    Listing,
    RemoteResult,
    Reply,
    Surroundings,
    innermost,
)
from tenuto.tool.mcp.results import listing_of, prompt_result, resource_result, tool_result
from tenuto.tool.mcp.stdio import MAX_MESSAGE, Program, run_program
from tenuto.tool.output import format_size
from tenuto.version import __version__

MOST_PAGES = 20
"""Pages of a list that are asked for."""
CONNECT_SECONDS = 15.0
LAST_LINE_CHARS = 200
LISTEN_AGAIN = (1.0, 10.0, 60.0)
"""Seconds before a stream of changes that has broken is opened again."""
LIST_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_LOG_END = 4_000
_UNAUTHORIZED, _ERRORS = 401, 400

Tell = Callable[["News"], None]
Progress = Callable[[str], None]
Ask = Callable[[Elicitation], Awaitable[Reply]]


class News:
    """What became of a connection: it has this to offer, or it is over and why; `never_came`: it never answered."""

    def __init__(self, listing: Listing | None = None, lost: str = "", *, never_came: bool = False) -> None:
        self.listing = listing
        self.lost = lost
        self.never_came = never_came


def silence_sdk() -> None:
    """Keep the SDK's own log off the terminal; what matters of it is told as news."""
    for name in ("mcp", "httpx2", "httpcore2", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        if name == "mcp":
            logger.propagate = False


class Connection:
    """Connects, lists, and answers calls until it is closed or over. `tell` and `ask` may be called on this loop."""

    def __init__(self, named: NamedServer, around: Surroundings, log: Path, tell: Tell, ask: Ask) -> None:
        self._named = named
        self._around = around
        self._log = log
        self._tell = tell
        self._ask = ask
        self._client: Client | None = None
        self._over = asyncio.Event()
        self._why = ""
        self._looking: asyncio.Task[None] | None = None
        self._status = 0
        """Of the last answer over HTTP."""

    async def serve(self) -> None:
        """Connect, tell what there is, and stay until `close`, or until the server ends. Raises nothing."""
        never_came = True
        try:
            server = expand(self._named.server, self._around.environ)
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(server.startup_timeout):
                    client = await stack.enter_async_context(self._new_client(server))
                    listing = await self._list(client)
                self._client = client
                never_came = False
                self._tell(News(listing))
                listening = asyncio.create_task(self._listen(client), name="mcp changes")
                try:
                    await self._over.wait()
                finally:
                    listening.cancel()
                    await asyncio.wait((listening,))
        except TimeoutError:
            self._why = self._why or f"no answer within {self._named.server.startup_timeout:g} seconds"
        except ServerError as error:
            self._why = str(error)
        except Exception as error:  # noqa: BLE001 - whatever ends a stranger's connection ends here, as its reason
            self._why = self._why or self._describe(error)
        finally:
            self._client = None
            self._tell(News(lost=self._with_last_line(self._why), never_came=never_came))

    def close(self) -> None:
        """Let `serve` end."""
        self._over.set()

    async def refresh(self) -> None:
        """Ask again for what there is, and tell it. Raises `ConnectionLost`."""
        async with self._talking() as client:
            self._tell(News(await self._list(client)))

    async def call(self, tool: str, arguments: dict[str, Any], tell: Progress) -> RemoteResult:
        """Call a tool. Raises `CallFailed` and `ConnectionLost`; a cancellation goes to the server."""

        async def show(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            tell(f"{share} {message or ''}".rstrip() + "\n")

        async with self._talking() as client:
            seconds = self._named.server.call_timeout
            return tool_result(await client.call_tool(tool, arguments, seconds, show))

    async def prompt(self, name: str, arguments: dict[str, str]) -> RemoteResult:
        """Return a prompt with its arguments filled in. Raises `CallFailed` and `ConnectionLost`."""
        async with self._talking() as client, asyncio.timeout(self._named.server.call_timeout):
            return prompt_result(await client.get_prompt(name, arguments))

    async def read(self, uri: str) -> RemoteResult:
        """Return a resource. Raises `CallFailed` and `ConnectionLost`."""
        async with self._talking() as client, asyncio.timeout(self._named.server.call_timeout):
            return resource_result(await client.read_resource(uri))

    @asynccontextmanager
    async def _talking(self) -> AsyncGenerator[Client]:
        """Give the client, and turn what the SDK raises into our two errors."""
        if self._client is None:
            raise ConnectionLost(self._why or "it is not connected")
        try:
            yield self._client
        except MCPError as error:
            if self._over.is_set() or error.code == types.CONNECTION_CLOSED:
                await asyncio.sleep(0)
                raise ConnectionLost(self._with_last_line(self._why) or str(error)) from error
            raise CallFailed(str(error)) from error
        except TimeoutError as error:
            raise CallFailed(f"no answer within {self._named.server.call_timeout:g} seconds") from error
        except Exception as error:  # a result that breaks its own schema, a connection that is refused
            raise CallFailed(self._describe(error)) from error

    def _new_client(self, server: McpServer) -> Client:
        return Client(
            self._program(server) if server.command else self._address(server),
            mode="auto",
            message_handler=self._hear,
            elicitation_callback=self._elicit,
            list_roots_callback=self._roots,
            client_info=types.Implementation(name="tenuto", version=__version__),
        )

    def _program(self, server: McpServer) -> contextlib.AbstractAsyncContextManager[TransportStreams]:
        program = Program(
            words=(server.command, *server.args),
            cwd=self._around.cwd / Path(server.cwd).expanduser(),
            env=server.env,
            environ=self._around.environ,
            log=self._log,
            records=self._around.records,
        )
        return run_program(program, self._end)

    @asynccontextmanager
    async def _address(self, server: McpServer) -> AsyncGenerator[TransportStreams]:
        async with (
            httpx2.AsyncClient(
                headers=server.headers,
                timeout=httpx2.Timeout(CONNECT_SECONDS, read=server.call_timeout),
                auth=stored_login(self._around.home, self._named.name, server.url),
                event_hooks={"response": [self._look_at]},
            ) as client,
            streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
        ):
            yield streams

    async def _look_at(self, response: httpx2.Response) -> None:
        """Remember how it was answered; a body that is no stream of events gets an end (one event has one already)."""
        self._status = response.status_code
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream)

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._over.set()

    async def _list(self, client: Client) -> Listing:
        has = client.server_capabilities
        tools = await _pages(client.list_tools, "tools") if has.tools else []
        prompts = await _pages(client.list_prompts, "prompts") if has.prompts else []
        resources: list[types.Resource] = []
        if has.resources:
            with contextlib.suppress(MCPError):
                resources = (await client.list_resources(cache_mode="bypass")).resources
        return listing_of(self._named.name, client.protocol_version, tools, prompts, resources)

    async def _listen(self, client: Client) -> None:
        """Hear of changed lists as the newest protocol has it: one stream of changes, opened again when it breaks.

        A server that has none is not asked again.
        """
        for pause in (0.0, *LISTEN_AGAIN):
            await asyncio.sleep(pause)
            try:
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as changes:
                    if pause:
                        await self._look_again()  # nothing that was missed meanwhile is sent again
                    async for _change in changes:
                        await self._look_again()
                return
            except SubscriptionLost:
                continue
            except (ListenNotSupportedError, MCPError, TimeoutError):
                return

    async def _hear(self, message: object) -> None:
        """Look again where a server of the older protocol says that its lists have changed."""
        if isinstance(message, LIST_CHANGES):
            self._looking = asyncio.create_task(self._look_again(), name="mcp list")

    async def _look_again(self) -> None:
        with contextlib.suppress(ConnectionLost, CallFailed):
            await self.refresh()

    async def _elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        schema: dict[str, Any] = getattr(params, "requested_schema", {})
        reply = await self._ask(
            Elicitation(
                server=self._named.name,
                message=params.message,
                fields=schema.get("properties", {}),
                needed=tuple(schema.get("required", ())),
                url=getattr(params, "url", ""),
            )
        )
        content = reply.content if reply.action == "accept" and not getattr(params, "url", "") else None
        return types.ElicitResult(action=reply.action, content=content)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(
            roots=[types.Root(uri=FileUrl(self._around.cwd.as_uri()), name=self._around.cwd.name)]
        )

    def _describe(self, error: BaseException) -> str:
        error = innermost(error)
        if isinstance(error, FileNotFoundError) and self._named.server.command:
            return f"there is no program {self._named.server.command}"
        if isinstance(error, httpx2.ConnectError) and self._named.server.url:
            return f"nothing can be reached at {self._named.server.url} ({error})"
        if self._status == _UNAUTHORIZED:
            return f"it wants a login: tenuto mcp login {self._named.name}"
        if self._status >= _ERRORS and isinstance(error, MCPError):
            return f"its address answers with HTTP {self._status}"
        return shorten(" ".join(f"{error}".split()) or type(error).__name__, LAST_LINE_CHARS)

    def _with_last_line(self, why: str) -> str:
        """Add what the server wrote to its stderr last: mostly that says more."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - _LOG_END))
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return why
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{why}; its last words: {shorten(last, LAST_LINE_CHARS)}" if why and last else why


async def _pages(ask: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    """Return all pages of a list, a bounded number."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await ask(cursor=cursor, cache_mode="bypass")
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor:
            break
    return found


class _Bounded(httpx2.AsyncByteStream):
    """A body that fails when it is too long."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.ReadError(f"it sent a message of more than {format_size(MAX_MESSAGE)}")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
