"""`tenuto.Agent`: one session as an object. docs/python.md is the manual; the docstrings here are the reference."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

import msgspec

from tenuto.api.checking import check_given
from tenuto.api.prompting import HearCommand, Prompt, Prompts
from tenuto.api.reading import Image, check_settings, read_image, read_rules, read_schema, read_servers
from tenuto.api.result import Answer, RunResult
from tenuto.command.runtime import CommandRuntime
from tenuto.config.sources import home_directory
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.core.start import Limits, Start
from tenuto.protocol.entry import Mode
from tenuto.protocol.event import AnyEvent, CompactionEndEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import ChangeModeOperation, CompactSessionOperation
from tenuto.protocol.usage import Usage

if TYPE_CHECKING:
    from tenuto.api.approving import Approve
    from tenuto.api.own import Home
    from tenuto.compaction.ways.preview import PlanDescription
    from tenuto.core.compacting.undo import Undone
    from tenuto.core.state.live import LiveSession
    from tenuto.extension.finding import Source
    from tenuto.protocol.compaction import CompactionStrategy

T = TypeVar("T")
FINALISED = 3
"""Rounds of the event loop until it has begun to close an abandoned generator."""


class AgentClosedError(UsageError):
    """The agent is not open: not yet, not any more, or not on this event loop."""


class AgentBusyError(UsageError):
    """The agent works already: it does one thing at a time."""


class Agent:
    """One session in one directory, as an async context manager.

        async with tenuto.Agent("project", model="anthropic/claude-sonnet-5-5") as agent:
            answer = await agent.run("make the tests pass")

    An agent does one thing at a time: a second `run` meanwhile raises `AgentBusyError`, and nothing is sent. Several
    agents work side by side. It belongs to the event loop that it was opened on. What is logged is as with the command
    `tenuto`, so `tenuto -r ID` goes on with the session, and the other way round.
    """

    def __init__(
        self,
        cwd: str | Path = ".",
        *,
        model: str = "",
        mode: Mode | None = None,
        approve: Approve | None = None,
        tools: Sequence[Callable[..., object]] = (),
        extensions: Sequence[object] = (),
        compaction: CompactionStrategy | None = None,
        instructions: str = "",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        directories: Sequence[str | Path] = (),
        servers: Mapping[str, Mapping[str, Any]] | None = None,
        max_turns: int | None = None,
        max_cost: float | None = None,
        settings: Mapping[str, Any] | None = None,
        resume: str | Literal[True] = "",
        fork: bool = False,
        temporary: bool = False,
        sandboxed: bool = True,
        home: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the session; nothing is opened, sent or written before `async with`.

        Args:
            cwd: The working directory.
            model: `provider/name`, with `:effort` behind it if wanted; else the settings' or the first that is there.
            mode: `ask`, `edits`, `auto` or `plan`. Without one: `ask` with `approve`, else `auto`.
            approve: Answers what needs an approval: given the request it returns `Allow` or `Deny`. Without it such
                calls are refused.
            tools: Functions that the model may call. Type hints are the schema, the docstring is the description. An
                `async` one runs on the agent's event loop, a plain one in a thread. For more, see `extensions`.
            extensions: Functions `setup(tenuto)`, or modules with one, as docs/extensions.md has them: tools with
                options, commands, models, compaction strategies, hooks and events.
            compaction: A compaction strategy in the place of the settings'.
            instructions: A text before the instruction files.
            allow: Rules, as `bash(pytest *)`, for calls that may run without being asked about.
            deny: Rules for calls that never run; they win over everything.
            directories: More directories that count as workspace.
            servers: MCP servers of this session by name, each as it stands in an `mcp.json`: `{"command": …, "args":
                […]}` or `{"url": …}`.
            max_turns: Calls of the model at most, of all prompts together.
            max_cost: US dollars at most, of all prompts together.
            settings: Settings that win over all files and variables, in nested sections.
            resume: A session to go on with: an id, its beginning, or words of it; `True` is the latest of `cwd`.
            fork: Go on in a copy of that session; it may be open elsewhere.
            temporary: Leave nothing on the disk.
            sandboxed: Run commands of the model in the sandbox, where there is one.
            home: Where settings and sessions are, else `TENUTO_HOME` or `~/.tenuto`.
            environ: The environment variables that count for Tenuto, else the process's own.

        Raises:
            UsageError: For what does not fit: a directory that is none, a rule, a server, a setting, a function that
                is no tool.

        """
        check_given(locals())
        values = dict(os.environ if environ is None else environ)
        from tenuto.core.finding import check_directory  # whoever has a start has looked already

        place = check_directory(Path(cwd).expanduser())
        start = Start(
            cwd=place,
            home=Path(home) if home is not None else home_directory(values),
            model=model,
            mode=mode or ("ask" if approve is not None else "auto"),
            resume=resume if isinstance(resume, str) else "",
            resume_latest=resume is True,
            fork=fork,
            temporary=temporary,
            interactive=False,
            extra_prompt=instructions,
            limits=Limits(max_turns, max_cost, "max_turns", "max_cost"),
            rules=(*read_rules("allow", allow), *read_rules("deny", deny)),
            directories=tuple(str(check_directory(place / Path(one).expanduser())) for one in directories),
            servers=read_servers(servers or {}),
            compaction=compaction,
            sandboxed=sandboxed,
            environ=values,
            settings=check_settings(settings or {}),
        )
        self._prepare(start, approve, tools, extensions)

    @classmethod
    def of(cls, start: Start, approve: Approve | None = None) -> Self:
        """Return the agent of a `tenuto.core.start.Start`: what a command line or an editor asks for, as data."""
        agent = cls.__new__(cls)
        agent._prepare(start, approve)
        return agent

    def _prepare(
        self,
        start: Start,
        approve: Approve | None,
        tools: Sequence[Callable[..., object]] = (),
        extensions: Sequence[object] = (),
    ) -> None:
        self._start, self._approve, self._tools, self._extensions = start, approve, tuple(tools), tuple(extensions)
        self._home: Home | None = None
        self._own: tuple[Source, ...] = ()
        if tools or extensions:
            from tenuto.api.own import Home, own_sources

            self._home = Home()
            self._own = own_sources(self._tools, self._extensions, self._home)
        answered = approve is not None
        self.runtime = CommandRuntime(msgspec.structs.replace(start, answered=answered, extensions=self._own))
        self.result = RunResult()
        self.runtime.subscribe(self.result.take)
        self._prompts = Prompts(self.runtime, self.result)
        self._state: Literal["new", "opening", "open", "closed"] = "new"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._works_on: list[str] = []
        self._is_streaming = False
        self._leaving: asyncio.Event | None = None
        self._session_id = ""
        self._usage = Usage()
        self._let_go: list[Callable[[], object]] = []

    # --- opening and closing ---

    async def __aenter__(self) -> Self:
        """Open the session, as `open` does."""
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session, as `close` does."""
        await self.close()

    async def open(self) -> Self:
        """Open the session, and return the agent. Nothing is sent yet.

        Raises:
            AgentClosedError: When it was open before.
            UsageError: For a session that does not exist or is open elsewhere, a limit of cost for a model without a
                known price, an extension or tool that cannot be used.
            ModelError: For a model that does not exist, or has no key.

        """
        if self._state != "new":
            raise AgentClosedError(f"the agent is {self._state} already; make a new one{self._going_on}")
        self._state, self._loop = "opening", asyncio.get_running_loop()
        if self._home is not None:
            self._home.loop = self._loop
        if self._approve is not None:
            from tenuto.api.approving import Approver

            approver = Approver(self.runtime, self._approve)
            self._let_go += [self.runtime.subscribe(approver.note), approver.close]
        try:
            await self.runtime.open()
            await self.runtime.require_price()
            await self._check_own()
        except BaseException:
            await self._close()
            raise
        self._state = "open"
        return self

    async def close(self) -> None:
        """Stop what runs, end background jobs, and close the session. Closing a second time does nothing.

        A `run` that waits meanwhile returns with the outcome `interrupted`.
        """
        if self._state in {"opening", "open"}:
            self._session_id, self._usage = self.session_id, self.usage
            await self._close()
        self._state = "closed"

    async def _close(self) -> None:
        self._state, self._prompts.is_closed = "closed", True
        for let_go in self._let_go:
            let_go()
        self._let_go.clear()
        await self.runtime.close()

    async def _check_own(self) -> None:
        if self._own:
            from tenuto.api.own import find_fault

            if fault := find_fault(self._own, await self.runtime.opener.extensions.host()):
                raise UsageError(fault)

    # --- what it is ---

    @property
    def session_id(self) -> str:
        """The session's id, also when the agent is closed; `resume=` takes it. Empty before it was opened."""
        return self.runtime.session_id if self._state == "open" else self._session_id

    @property
    def usage(self) -> Usage:
        """Tokens and US dollars that the session has used since it began."""
        return self.runtime.live.session.state.usage if self._state == "open" else self._usage

    @property
    def model(self) -> str:
        """The model that is asked next, as `provider/name`. Raises `AgentClosedError`."""
        return self._live.facts.id

    @property
    def effort(self) -> str:
        """How hard the model thinks, `default` where that is its own choice. Raises `AgentClosedError`."""
        from tenuto.api.models import effort_of

        return effort_of(self._live)

    @property
    def efforts(self) -> tuple[str, ...]:
        """What `set_effort` takes for the present model; nothing where it has no levels. Raises `AgentClosedError`."""
        from tenuto.api.models import efforts_of

        return efforts_of(self._live)

    @property
    def mode(self) -> Mode:
        """The approval mode. Raises `AgentClosedError`."""
        return self._live.mode

    @property
    def parting(self) -> str:
        """What its user has to know of the session's log when the agent is closed; empty where all of it is saved."""
        return self.runtime.opener.parting if self._state == "closed" else ""

    def subscribe(self, listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Call `listener` for every event, on the event loop and in order; returns what ends that.

        A listener that raises is told of in a notice, once for each kind of error, and everything goes on.
        """
        check_given({"listener": listener})

        def hear(event: AnyEvent) -> None:
            listener(event)

        return self.runtime.subscribe(hear)

    def hear_commands(self, listener: HearCommand) -> Callable[[], None]:
        """Call `listener` with the text and the `tenuto.command.outcome` of each slash command, once it has run.

        What the command begins goes on meanwhile. Returns what ends that.
        """
        self._prompts.listeners.append(listener)
        return lambda: self._prompts.listeners.remove(listener)

    # --- prompts ---

    @overload
    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: type[T],
        timeout: float | None = None,
        queue: bool = False,
    ) -> Answer[T]: ...
    @overload
    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: Any = None,
        timeout: float | None = None,
        queue: bool = False,
    ) -> Answer[Any]: ...

    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: Any = None,
        timeout: float | None = None,
        queue: bool = False,
    ) -> Answer[Any]:
        """Send a prompt, wait until the session is idle, and return what came of it.

        Cancelling the task that waits stops the run; the session can go on, here or later.

        Args:
            prompt: The text. It is sent as it is: a `/` at its beginning is no command. See `command`.
            images: Images that go along.
            schema: What the answer has to be: a JSON schema, a struct, dataclass, `TypedDict` or pydantic model, or
                `list[str]` and its like. The model is told, and told again what is wrong, at most twice. The value is
                `answer.value`.
            timeout: Seconds after which the run is stopped; the outcome is `limit_reached` then.
            queue: Where the agent works already, stand behind that and raise no `AgentBusyError`. The answers of all
                that stand behind one another come when the session is idle, and say what came of it all.

        Returns:
            The answer. How the run ended is its `outcome`: a run that fails raises nothing. See
            `Answer.raise_for_outcome`.

        Raises:
            UsageError: For an empty prompt, an image that cannot be read, a schema that is none.
            AgentBusyError: When the agent works already, without `queue`.
            AgentClosedError: When the agent is not open, or was opened on another event loop.

        """
        async with self._working("a prompt", queue=queue):
            return await self._prompts.ask(self._read(prompt, images, schema, timeout))

    async def is_command(self, text: str) -> bool:
        """Say whether a text begins with the name of a slash command: Tenuto's, or one that is brought along.

        Extensions, skills and command files bring such names; a path that begins with a slash is none.
        """
        self._require_open()
        return await self.runtime.is_command(text)

    async def command(
        self, line: str, *, schema: Any = None, timeout: float | None = None, queue: bool = False
    ) -> Answer[Any]:
        """Run a slash command, as `/compact names of functions`, and wait until the session is idle.

        The answer's `text` is what the command says, or the last answer of the model where the command has it work:
        a skill, a command file, `/review`. What could not be done has `failed`, and `error` says why. A command that
        opens another session takes the agent there.

        Args:
            line: The command; its `/` may be left out.
            schema: What the answer has to be, where the model works.
            timeout: As with `run`.
            queue: As with `run`.

        Raises `UsageError` for a command that there is not, and what `run` raises.

        """
        check_given({"line": line, "timeout": timeout})
        line = f"/{line.strip().removeprefix('/')}"
        async with self._working("a command", queue=queue):
            return await self._prompts.ask(Prompt(line, (), read_schema(schema), timeout, is_command=True))

    async def stream(
        self, prompt: str, *, images: Sequence[Image] = (), schema: Any = None, timeout: float | None = None
    ) -> AsyncGenerator[AnyEvent | Answer[Any]]:
        """Send a prompt and yield every event (`tenuto.protocol.event`) as it happens; the last item is the answer.

        Arguments and errors are those of `run`. Leaving the loop early stops the run; `contextlib.aclosing` does so at
        once.
        """
        async with self._working("a prompt"):
            self._is_streaming = True
            events: asyncio.Queue[AnyEvent | None] = asyncio.Queue()
            unsubscribe = self.runtime.subscribe(events.put_nowait)
            asked = self._read(prompt, images, schema, timeout)
            running = asyncio.create_task(self._prompts.ask(asked), name="streamed prompt")
            running.add_done_callback(lambda _: events.put_nowait(None))
            try:
                while (event := await events.get()) is not None:
                    yield event
                yield running.result()
            finally:
                self._leaving = asyncio.Event()
                unsubscribe()
                running.cancel()
                try:
                    await asyncio.wait([running])
                finally:
                    self._leaving.set()
                    self._is_streaming, self._leaving = False, None

    async def interrupt(self, *, drop_queue: bool = False) -> None:
        """Stop whatever runs; the `run` that waits for it returns with the outcome `interrupted`.

        What stands behind it in the queue stays there until the next prompt; `drop_queue` lets go of it.
        """
        self._require_open()
        await self._prompts.interrupt(drop_queue=drop_queue)

    # --- the session ---

    async def set_model(self, model: str) -> None:
        """Use another model from the next request on; `model` is `provider/name`, with `:effort` behind it if wanted.

        Where the context is too large for it, it is compacted first.

        Raises:
            UsageError: For what is no model, or none that its provider lists.
            ModelError: For a model that does not exist, has no key, or not this effort.
            TaskFailedError: Where that compaction came to nothing: the model stays as it is.

        """
        from tenuto.api.models import use_model

        check_given({"model": model})
        self._require_open()
        await use_model(self.runtime, model)

    async def set_effort(self, effort: str) -> None:
        """Have the model think as hard: one of `efforts`. Raises `UsageError` for a level that it does not have."""
        from tenuto.api.models import use_effort

        self._require_open()
        await use_effort(self.runtime, effort)

    async def set_mode(self, mode: Mode) -> None:
        """Use another approval mode from the next call on: `ask`, `edits`, `auto` or `plan`. Raises `UsageError`."""
        check_given({"mode": mode or ""})
        self._require_open()
        await self.runtime.submit(ChangeModeOperation(session_id=self.session_id, mode=mode))

    async def compact(self, focus: str = "") -> CompactionEntry:
        """Make the context smaller and return what was written. `focus` is what the summary is to stress.

        Raises:
            TaskFailedError: With the reason, where nothing was done: there is too little to compact, for instance.
            AgentBusyError: When the agent works already.

        """
        async with self._working("a compaction"):
            ends: list[CompactionEndEvent] = []
            unsubscribe = self.subscribe(
                lambda event: ends.append(event) if isinstance(event, CompactionEndEvent) else None
            )
            try:
                operation = CompactSessionOperation(session_id=self.session_id, focus=focus or None)
                await self._prompts.until_stopped(self._wait_for(operation))
            finally:
                unsubscribe()
            if not ends or ends[-1].entry is None:
                raise TaskFailedError((ends[-1].error if ends else None) or "the compaction was cancelled")
            return ends[-1].entry

    async def preview(self, focus: str = "") -> PlanDescription:
        """Return what `compact` would do now, as data: the cut, sizes in tokens, files, requests. No model is asked."""
        from tenuto.core.compacting.preview import describe_compaction
        from tenuto.core.state.compaction_state import CompactionRequest

        async with self._working("a preview"):
            return await describe_compaction(self.runtime.live, CompactionRequest(reason="manual", focus=focus))

    async def undo(self, *, drop_later: bool = False) -> Undone:
        """Take the newest compaction back. `drop_later` goes back to before it: later turns stay behind as a branch.

        Raises:
            TaskFailedError: When there is none; a `UndoRefusedError` where the context would be too large without it.
            AgentBusyError: When the agent works already.

        """
        from tenuto.core.compacting.undo import undo_compaction, undo_without_later_turns

        return await self._change_back(undo_without_later_turns if drop_later else undo_compaction)

    async def redo(self) -> Undone:
        """Take the newest undo back.

        Raises:
            TaskFailedError: When there is none, or another compaction came meanwhile.
            AgentBusyError: When the agent works already.

        """
        from tenuto.core.compacting.undo import redo_compaction

        return await self._change_back(redo_compaction)

    def fork(self) -> Agent:
        """Return an agent that goes on in a copy of this session as it is when that agent is opened.

        It has the same options, and is opened with `async with`. This one stays as it is; both can work side by side.
        Raises `UsageError` for a temporary session, which nobody can copy.
        """
        self._require_open()
        if self.runtime.temporary:
            raise UsageError("a temporary session cannot be forked")
        start = msgspec.structs.replace(self._start, resume=self.session_id, resume_latest=False, fork=True)
        other = Agent.__new__(Agent)
        other._prepare(start, self._approve, self._tools, self._extensions)
        return other

    # --- inside ---

    @property
    def _live(self) -> LiveSession:
        self._require_state()
        return self.runtime.live

    @property
    def _going_on(self) -> str:
        return f", with resume={self._session_id!r} to go on" if self._session_id and not self.runtime.temporary else ""

    def _require_state(self) -> None:
        if self._state in {"new", "opening"}:
            raise AgentClosedError("the agent is not open: use it in `async with`, or await its open() first")
        if self._state == "closed":
            raise AgentClosedError(f"the agent is closed; make a new one{self._going_on}")

    def _require_open(self) -> None:
        self._require_state()
        if self._loop is not asyncio.get_running_loop():
            raise AgentClosedError("the agent was opened on another event loop; use it there, or make a new one here")

    @asynccontextmanager
    async def _working(self, what: str, *, queue: bool = False) -> AsyncGenerator[None]:
        """Do one thing at a time, but for what stands in the queue. Raises `AgentClosedError` and `AgentBusyError`.

        A loop over a stream that was just left is no work any more: its end is on its way, and waited for.
        """
        self._require_open()
        if self._is_streaming:
            for _ in range(FINALISED):
                await asyncio.sleep(0)
            if self._leaving is not None:
                await self._leaving.wait()
        if self._works_on and not queue:
            raise AgentBusyError(f"the agent works on {self._works_on[0]} already: await that, or use a second agent")
        self._works_on.append(what)
        try:
            yield
        finally:
            self._works_on.remove(what)

    def _read(self, prompt: str, images: Sequence[Image], schema: Any, timeout: float | None) -> Prompt:
        """Return what `run` is given, looked at. Raises `UsageError`."""
        check_given({"prompt": prompt, "images": images, "timeout": timeout})
        wanted = read_schema(schema)
        if not prompt.strip() and not images:
            raise UsageError("the prompt is empty")
        return Prompt(prompt, tuple(read_image(self.runtime.live.session, image) for image in images), wanted, timeout)

    async def _wait_for(self, operation: CompactSessionOperation) -> None:
        await self.runtime.wait_for(await self.runtime.submit(operation))
        await self.runtime.wait_settled()

    async def _change_back(self, change: Callable[[LiveSession], Undone]) -> Undone:
        async with self._working("an undo"):
            undone = change(self.runtime.live)
            if undone.has_moved:
                self.runtime.opener.show_again(self.session_id)
            return undone
