"""`tenuto acp`: the methods of the protocol, and the sessions that a client has open.

Each session is an agent of its own, so that as many as the client wants stand side by side. When the client goes, in
whatever way, what runs is interrupted, every session is saved and closed, and the program ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import AGENT_METHODS, PROTOCOL_VERSION
from acp.router import MessageRouter, Route
from acp.schema import (
    AgentCapabilities,
    CancelNotification,
    ClientCapabilities,
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
)
from acp.utils import normalize_result
from pydantic import BaseModel, ValidationError

from tenuto import heap
from tenuto.core.errors import EXPECTED_FAILURES, TaskFailedError, UsageError, describe_failure
from tenuto.core.finding import check_directory
from tenuto.core.start import Start
from tenuto.ending import ended_by_signals
from tenuto.exit_codes import OK, SIGNAL
from tenuto.frontend.acp.client import Client
from tenuto.frontend.acp.compaction import wants_compactions
from tenuto.frontend.acp.content import ContentError
from tenuto.frontend.acp.options import mode_state
from tenuto.frontend.acp.servers import GivenServer, read_servers
from tenuto.frontend.acp.session import HostedSession, SessionRefusedError
from tenuto.frontend.acp.wire import LineTransport, own_streams
from tenuto.guard.terminal import write_text
from tenuto.protocol.model import ModelError
from tenuto.session.errors import SessionError
from tenuto.session.library.catalog import SessionSummary, find_session, list_sessions, move_to_bin
from tenuto.version import __version__

INVALID, FAILED, NOT_FOUND = -32602, -32603, -32002
"""Codes of the protocol: what was asked makes no sense, it could not be done, there is no such session."""
LAST_ANSWERS = 0.3
"""Seconds for what the client asked last before it went; turns of the model take longer, and are interrupted then."""
PAGE = 50
"""Sessions of one answer to `session/list`."""
Params = TypeVar("Params", bound=BaseModel)


def run_acp(start: Start) -> int:
    """Serve the client on standard input and output until it goes; return the exit code.

    Each session begins as `start` says, in the directory that the client names.
    """
    with own_streams() as (incoming, outgoing):
        return asyncio.run(_serve(start, incoming, outgoing))


async def _serve(start: Start, incoming: int, outgoing: int) -> int:
    loop = asyncio.get_running_loop()
    transport = LineTransport(incoming, outgoing)
    client = Client(transport)
    server = Server(start, client)
    connection = client.connection = Connection(server.handle, transport, listening=False)
    heap.settle()

    def leave(_number: int) -> None:
        loop.call_soon_threadsafe(transport.end)

    with ended_by_signals(leave) as signals:
        try:
            await connection.main_loop()
        finally:
            await server.close()
            await connection.close()
    return SIGNAL + signals[0] if signals else OK


class Server:
    """The agent's side of the protocol."""

    def __init__(self, start: Start, client: Client) -> None:
        self._start = start
        self._client = client
        self._sessions: dict[str, HostedSession] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._is_over = False
        self._router = self._make_router()
        self._answering: set[asyncio.Task[Any]] = set()

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a message. Raises `RequestError` with the reason in words.

        A notification has no answer, so one that nobody knows here is left alone.
        """
        task = asyncio.current_task()
        if task is not None:
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        try:
            return await self._router(method, params, is_notification)
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"])) or "params"
            raise RequestError(INVALID, f"{place}: {fault['msg']}") from error
        except RequestError:
            if is_notification:
                return None
            raise

    def _make_router(self) -> MessageRouter:
        """Return what hands each message to the method for it. `initialize` is read here: the package drops a part."""
        router = MessageRouter(use_unstable_protocol=True)
        router.add_route(Route(method=AGENT_METHODS["initialize"], func=self._initialize, kind="request"))

        def add(name: str, model: type[Params], method: Callable[[Params], Awaitable[Any]]) -> None:
            async def handle(params: Any) -> Any:
                return await _answering(method(model.model_validate(params)))

            route = Route(AGENT_METHODS[name], handle, kind="request", adapt_result=normalize_result)
            router.add_route(route)

        add("session_new", NewSessionRequest, self._new)
        add("session_load", LoadSessionRequest, self._load)
        add("session_resume", ResumeSessionRequest, self._resume)
        add("session_fork", ForkSessionRequest, self._fork)
        add("session_list", ListSessionsRequest, self._list)
        add("session_close", CloseSessionRequest, self._close)
        add("session_delete", DeleteSessionRequest, self._delete)
        add("session_prompt", PromptRequest, self._prompt)
        add("session_set_mode", SetSessionModeRequest, self._set_mode)
        add("session_set_config_option", SetSessionConfigOptionSelectRequest, self._set_option)

        async def cancel(params: Any) -> None:
            await self._cancel(CancelNotification.model_validate(params))

        router.add_route(Route(AGENT_METHODS["session_cancel"], cancel, kind="notification"))
        return router

    async def close(self) -> None:
        """Close every session, whatever runs in it. What was asked before is answered, if that takes a moment only."""
        await self._wait_for_answers()
        self._is_over = True
        open_ones, self._sessions = [*self._sessions.values()], {}
        for ended in await asyncio.gather(*(each.close() for each in open_ones), return_exceptions=True):
            if isinstance(ended, BaseException):
                ended = describe_failure(ended) if isinstance(ended, Exception) else str(ended)
            if ended:
                write_text(f"tenuto: {ended}", to_errors=True)
        await self._wait_for_answers()

    async def _wait_for_answers(self) -> None:
        await asyncio.sleep(0)  # what came last has not begun
        if self._answering:
            await asyncio.wait(self._answering, timeout=LAST_ANSWERS)

    # --- methods ---

    async def _initialize(self, params: Any) -> InitializeResponse:
        asked = InitializeRequest.model_validate(params)
        self._client.can = asked.client_capabilities or ClientCapabilities()
        self._client.compactions = wants_compactions(params)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="tenuto", title="Tenuto", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    delete=SessionDeleteCapabilities(),
                    fork=SessionForkCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def _new(self, asked: NewSessionRequest) -> NewSessionResponse:
        session = await self._open(self._begin(asked.cwd, asked.additional_directories), asked.mcp_servers)
        self._begin_soon(session)
        return NewSessionResponse(
            session_id=session.id, modes=mode_state(session.agent), config_options=session.options()
        )

    async def _load(self, asked: LoadSessionRequest) -> LoadSessionResponse:
        session = await self._open_earlier(asked)
        await session.replay()
        self._begin_soon(session)
        return LoadSessionResponse(modes=mode_state(session.agent), config_options=session.options())

    async def _resume(self, asked: ResumeSessionRequest) -> ResumeSessionResponse:
        session = await self._open_earlier(asked)
        self._begin_soon(session)
        return ResumeSessionResponse(modes=mode_state(session.agent), config_options=session.options())

    async def _fork(self, asked: ForkSessionRequest) -> ForkSessionResponse:
        found = self._find(asked.session_id)
        start = msgspec.structs.replace(
            self._begin(asked.cwd, asked.additional_directories), resume=found.name, fork=True, names_directory=True
        )
        session = await self._open(start, asked.mcp_servers or [])
        self._begin_soon(session)
        return ForkSessionResponse(
            session_id=session.id, modes=mode_state(session.agent), config_options=session.options()
        )

    async def _list(self, asked: ListSessionsRequest) -> ListSessionsResponse:
        cwd = check_directory(Path(asked.cwd)) if asked.cwd else None
        every = await asyncio.to_thread(list_sessions, self._start.home, cwd)
        usable = [one for one in every if one.cwd and not one.error]
        first = 0
        if asked.cursor:
            ids = [one.id for one in usable]
            if asked.cursor not in ids:
                raise SessionRefusedError("the list has changed since; ask for it from the beginning")
            first = ids.index(asked.cursor)
        behind = usable[first + PAGE : first + PAGE + 1]
        return ListSessionsResponse(
            sessions=[_info(one) for one in usable[first : first + PAGE]],
            next_cursor=behind[0].id if behind else None,
        )

    async def _close(self, asked: CloseSessionRequest) -> None:
        session = self._session(asked.session_id)
        del self._sessions[session.id]
        if said := await session.close():
            write_text(f"tenuto: {said}", to_errors=True)

    async def _delete(self, asked: DeleteSessionRequest) -> None:
        """Move a session to the bin, from where `tenuto sessions restore` brings it back; one that is gone is gone."""
        session = self._sessions.pop(asked.session_id, None)
        if session is not None:
            await session.close()
        directory = find_session(self._start.home, asked.session_id)
        if directory is not None and directory.name == asked.session_id:
            await asyncio.to_thread(move_to_bin, self._start.home, directory)

    async def _prompt(self, asked: PromptRequest) -> PromptResponse:
        return await self._session(asked.session_id).prompt(asked.prompt)

    async def _cancel(self, asked: CancelNotification) -> None:
        session = self._sessions.get(asked.session_id)
        if session is not None:
            await session.cancel()

    async def _set_mode(self, asked: SetSessionModeRequest) -> None:
        await self._session(asked.session_id).set_mode(asked.mode_id)

    async def _set_option(self, asked: SetSessionConfigOptionSelectRequest) -> SetSessionConfigOptionResponse:
        session = self._session(asked.session_id)
        await session.set_option(asked.config_id, asked.value)
        return SetSessionConfigOptionResponse(config_options=session.options())

    # --- sessions ---

    def _begin(self, cwd: str, added: list[str] | None) -> Start:
        """Return how a session begins in the client's directory. Raises `UsageError`."""
        if not Path(cwd).is_absolute():
            raise UsageError(f"the directory of a session has to be an absolute path, not “{cwd}”")
        directories = tuple(str(check_directory(Path(each))) for each in added or ())
        return msgspec.structs.replace(
            self._start,
            cwd=check_directory(Path(cwd)),
            directories=(*self._start.directories, *directories),
            clock=time.time,
        )

    async def _open(self, start: Start, servers: list[GivenServer]) -> HostedSession:
        """Open a session; what it needs is closed again where that fails, or where the client has gone meanwhile."""
        given, problems = read_servers(servers)
        session = HostedSession(msgspec.structs.replace(start, servers=given), self._client)
        try:
            await session.open()
            if self._is_over:
                raise SessionRefusedError("the client is gone")
        except BaseException:
            await session.close()
            raise
        self._sessions[session.id] = session
        for problem in problems:
            session.live.notify(problem, "warning")
        await session.find_models()
        return session

    async def _open_earlier(self, asked: LoadSessionRequest | ResumeSessionRequest) -> HostedSession:
        """Return an earlier session; one that is open here already is that."""
        name = self._find(asked.session_id).name
        async with self._opening.setdefault(name, asyncio.Lock()):
            if (session := self._sessions.get(name)) is not None:
                return session
            start = msgspec.structs.replace(
                self._begin(asked.cwd, asked.additional_directories), resume=name, names_directory=True
            )
            return await self._open(start, asked.mcp_servers or [])

    def _find(self, session_id: str) -> Path:
        """Return the folder of a session by its whole id."""
        found = find_session(self._start.home, session_id)
        if found is None or found.name != session_id:
            raise RequestError(NOT_FOUND, f"there is no session {session_id}")
        return found

    def _session(self, session_id: str) -> HostedSession:
        """Return an open session."""
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError(NOT_FOUND, f"session {session_id} is not open: load or resume it first")
        return session

    def _begin_soon(self, session: HostedSession) -> None:
        """Tell what has waited, right behind the answer that makes the session known to the client."""
        asyncio.get_running_loop().call_soon(session.begin)


def _info(one: SessionSummary) -> SessionInfo:
    updated = datetime.fromtimestamp(one.updated, UTC).isoformat().replace("+00:00", "Z")
    return SessionInfo(session_id=one.id, cwd=one.cwd, title=one.name, updated_at=updated)


async def _answering(work: Awaitable[Any]) -> Any:
    """Return what a method comes to; what cannot be done becomes the protocol's error, with the reason in words."""
    try:
        return await work
    except (SessionRefusedError, ContentError, UsageError, ModelError) as error:
        raise RequestError(INVALID, str(error)) from error
    except (TaskFailedError, SessionError, *EXPECTED_FAILURES) as error:
        raise RequestError(FAILED, describe_failure(error)) from error
