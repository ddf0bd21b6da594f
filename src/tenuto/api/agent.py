"""`tenuto.Agent`: one session as an object. docs/python.md is the manual; the docstrings here are the reference."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

import msgspec

from tenuto.api.checking import check_given
from tenuto.api.result import Answer, RunResult
from tenuto.config.sources import given_source, home_directory
from tenuto.core.agent.attachments import ImageTooLargeError, NotAnImageError, keep_image
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.core.finding import check_directory
from tenuto.core.runtime import Runtime
from tenuto.core.start import Limits, Start
from tenuto.guard.rules import Rule, RuleError, read_rule
from tenuto.protocol.compaction import CompactionStrategy
from tenuto.protocol.entry import Mode
from tenuto.protocol.event import AnyEvent, CompactionEndEvent, TaskSettledEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import CompactSessionOperation, EditQueueOperation, InterruptOperation
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.protocol.usage import Usage

if TYPE_CHECKING:
    from tenuto.api.approving import Approve
    from tenuto.api.schema import Asked, OutputSchema
    from tenuto.compaction.ways.preview import PlanDescription
    from tenuto.core.compacting.undo import Undone
    from tenuto.core.state.live import LiveSession
    from tenuto.session.session import Session

T = TypeVar("T")
Image = str | Path | bytes
"""A file with an image, or its bytes: PNG, JPEG, GIF or WebP, at most 3.75 MB."""


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
            UsageError: For what does not fit: a directory that is none, a rule, a setting, a function that is no tool.

        """
        check_given(locals())
        values = dict(os.environ if environ is None else environ)
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
            answered=approve is not None,
            extra_prompt=instructions,
            limits=Limits(max_turns, max_cost, "max_turns", "max_cost"),
            rules=(*_read_rules("allow", allow), *_read_rules("deny", deny)),
            directories=tuple(str(check_directory(place / Path(one).expanduser())) for one in directories),
            compaction=compaction,
            sandboxed=sandboxed,
            environ=values,
            settings=_check_settings(settings or {}),
        )
        self._prepare(start, approve, tools, extensions)

    def _prepare(
        self,
        start: Start,
        approve: Approve | None,
        tools: Sequence[Callable[..., object]],
        extensions: Sequence[object],
    ) -> None:
        from tenuto.api.own import Home, own_sources

        self._start, self._approve, self._tools, self._extensions = start, approve, tuple(tools), tuple(extensions)
        self._home = Home()
        self._own = own_sources(self._tools, self._extensions, self._home)
        self.runtime = Runtime(msgspec.structs.replace(start, extensions=self._own))
        self._state: Literal["new", "open", "closed"] = "new"
        self._busy_with = ""
        self._is_streaming = False
        self._leaving: asyncio.Event | None = None
        self._session_id = ""
        self._usage = Usage()
        self._result = RunResult()
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
        self._home.loop = asyncio.get_running_loop()
        if self._approve is not None:
            from tenuto.api.approving import Approver

            approver = Approver(self.runtime, self._approve)
            self._let_go += [self.runtime.subscribe(approver.note), approver.close]
        self.runtime.subscribe(self._result.take)
        try:
            await self.runtime.open()
            await self.runtime.require_price()
            await self._check_own()
        except BaseException:
            await self._close()
            raise
        self._state, self._session_id = "open", self.runtime.session_id
        return self

    async def close(self) -> None:
        """Stop what runs, end background jobs, and close the session. Closing a second time does nothing.

        A `run` that waits meanwhile returns with the outcome `interrupted`.
        """
        if self._state == "open":
            self._state = "closed"
            self._usage = self.runtime.live.session.state.usage
            await self._close()
        self._state = "closed"

    async def _close(self) -> None:
        self._state = "closed"
        for let_go in self._let_go:
            let_go()
        self._let_go.clear()
        await self.runtime.close()

    async def _check_own(self) -> None:
        if not self._own:
            return
        from tenuto.api.own import find_fault

        fault = find_fault(self._own, await self.runtime.opener.extensions.host())
        if fault:
            raise UsageError(fault)

    # --- what it is ---

    @property
    def session_id(self) -> str:
        """The session's id, also when the agent is closed; `resume=` takes it. Empty before it was opened."""
        return self._session_id

    @property
    def usage(self) -> Usage:
        """Tokens and US dollars that the session has used since it began."""
        return self.runtime.live.session.state.usage if self._state == "open" else self._usage

    def subscribe(self, listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Call `listener` for every event, on the event loop and in order; returns what ends that.

        A listener that raises is told of in a notice, once for each kind of error, and everything goes on.
        """
        check_given({"listener": listener})

        def hear(event: AnyEvent) -> None:
            listener(event)

        return self.runtime.subscribe(hear)

    # --- prompts ---

    @overload
    async def run(
        self, prompt: str, *, images: Sequence[Image] = (), schema: type[T], timeout: float | None = None
    ) -> Answer[T]: ...
    @overload
    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Answer[Any]: ...

    async def run(
        self, prompt: str, *, images: Sequence[Image] = (), schema: Any = None, timeout: float | None = None
    ) -> Answer[Any]:
        """Send a prompt, wait until the session is idle, and return what came of it.

        Cancelling the task that waits stops the run; the session can go on, here or later.

        Args:
            prompt: The text. It is sent as it is: a `/` at its beginning is no command.
            images: Images that go along.
            schema: What the answer has to be: a JSON schema, a struct, dataclass, `TypedDict` or pydantic model, or
                `list[str]` and its like. The model is told, and told again what is wrong, at most twice. The value is
                `answer.value`.
            timeout: Seconds after which the run is stopped; the outcome is `limit_reached` then.

        Returns:
            The answer. How the run ended is its `outcome`: a run that fails raises nothing. See
            `Answer.raise_for_outcome`.

        Raises:
            UsageError: For an empty prompt, an image that cannot be read, a schema that is none.
            AgentBusyError: When the agent works already.
            AgentClosedError: When the agent is not open, or was opened on another event loop.

        """
        async with self._working("a prompt"):
            return await self._run(prompt, images, schema, timeout)

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
            running = asyncio.create_task(self._run(prompt, images, schema, timeout), name="streamed prompt")
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

    async def interrupt(self) -> None:
        """Stop whatever runs; the `run` that waits for it returns with the outcome `interrupted`."""
        self._require_open()
        await self.runtime.submit(InterruptOperation(session_id=self.session_id))

    # --- the session ---

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
                await self._until_stopped(self._wait_for(operation))
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
    def _going_on(self) -> str:
        return f", with resume={self._session_id!r} to go on" if self._session_id and not self.runtime.temporary else ""

    def _require_open(self) -> None:
        if self._state == "new":
            raise AgentClosedError("the agent is not open: use it in `async with`, or await its open() first")
        if self._state == "closed":
            raise AgentClosedError(f"the agent is closed; make a new one{self._going_on}")
        if self._home.loop is not asyncio.get_running_loop():
            raise AgentClosedError("the agent was opened on another event loop; use it there, or make a new one here")

    @asynccontextmanager
    async def _working(self, what: str) -> AsyncGenerator[None]:
        """Do one thing at a time. Raises `AgentClosedError` and `AgentBusyError`.

        A loop over a stream that was just left is no work any more: its end is on its way, and waited for.
        """
        self._require_open()
        if self._is_streaming:
            for _ in range(FINALISED):
                await asyncio.sleep(0)
            if self._leaving is not None:
                await self._leaving.wait()
        if self._busy_with:
            raise AgentBusyError(f"the agent works on {self._busy_with} already: await that, or use a second agent")
        self._busy_with = what
        try:
            yield
        finally:
            self._busy_with = ""

    async def _run(self, prompt: str, images: Sequence[Image], schema: Any, timeout: float | None) -> Answer[Any]:
        check_given({"prompt": prompt, "images": images, "timeout": timeout})
        live, wanted = self.runtime.live, None
        if schema is not None:
            from tenuto.api.schema import schema_of

            wanted = schema_of(schema)
        if not prompt.strip() and not images:
            raise UsageError("the prompt is empty")
        parts = [_image_part(live, image) for image in images]
        before = live.session.state.usage
        self._result.begin()
        try:
            async with asyncio.timeout(timeout):
                asked = await self._until_stopped(self._ask(prompt, parts, wanted))
        except TimeoutError:
            return self._answer(live.session, before, None, f"stopped after {timeout:g} s (timeout)")
        return self._answer(live.session, before, asked)

    async def _ask(self, prompt: str, images: Sequence[ImagePart], schema: OutputSchema | None) -> Asked:
        from tenuto.api.schema import ask

        left: list[ContentPart] = list(images)

        async def send(text: str) -> TaskSettledEvent:
            parts = (TextPart(text=text), *left) if text else tuple(left)
            left.clear()
            await self.runtime.submit_prompt(parts)
            return await self.runtime.wait_settled()

        return await ask(send, f"{prompt}\n\n{schema.note}" if schema else prompt, schema, self._result)

    def _answer(self, session: Session, before: Usage, asked: Asked | None, overtime: str = "") -> Answer[Any]:
        result = self._result
        outcome, error, value = "limit_reached", overtime, None
        if asked is not None:
            outcome, error, value = asked.settled.outcome, asked.settled.error, asked.value
            if asked.problem:
                outcome, error = "failed", asked.problem
        return Answer(
            text=result.text,
            value=value,
            outcome=outcome,
            error=error,
            usage=session.state.usage - before,
            turns=result.turns,
            refused=tuple(result.refused),
            changed_files=tuple(result.changed_files),
            sources=tuple(result.sources.values()),
            session_id=session.id,
        )

    async def _wait_for(self, operation: CompactSessionOperation) -> None:
        await self.runtime.wait_for(await self.runtime.submit(operation))
        await self.runtime.wait_settled()

    async def _until_stopped(self, work: Awaitable[T]) -> T:
        """Await work in the session; where the one who waits is cancelled, stop it and leave nothing to be sent."""
        live = self.runtime.live
        newest = max((waiting.seq for waiting in live.session.state.queue), default=0)
        try:
            return await work
        except asyncio.CancelledError:
            if self._state == "open":
                await asyncio.shield(asyncio.ensure_future(self._stop(live, newest)))
            raise

    async def _stop(self, live: LiveSession, newest: int) -> None:
        await self.runtime.executor.stop(live)
        for waiting in live.session.state.queue:
            if waiting.seq > newest:
                operation = EditQueueOperation(session_id=live.id, target=waiting.seq, action="delete")
                await self.runtime.submit(operation)

    async def _change_back(self, change: Callable[[LiveSession], Undone]) -> Undone:
        async with self._working("an undo"):
            undone = change(self.runtime.live)
            if undone.has_moved:
                self.runtime.opener.show_again(self.session_id)
            return undone


def _read_rules(effect: Literal["allow", "deny"], texts: Sequence[str]) -> list[Rule]:
    try:
        return [read_rule(text, effect, "option") for text in texts]
    except RuleError as error:
        raise UsageError(f"{effect}: {error}") from None


def _check_settings(values: Mapping[str, Any]) -> Mapping[str, Any]:
    problems = given_source(values).problems if values else ()
    if problems:
        raise UsageError("; ".join(problems))
    return values


def _image_part(live: LiveSession, image: Image) -> ImagePart:
    name = "" if isinstance(image, bytes) else str(image)
    try:
        data = image if isinstance(image, bytes) else (live.session.cwd / Path(image).expanduser()).read_bytes()
        return keep_image(live.session.store, data, Path(name).name if name else "image")
    except NotAnImageError:
        raise UsageError(f"{name or 'these bytes'}: no PNG, JPEG, GIF or WebP image") from None
    except ImageTooLargeError:
        raise UsageError(f"{name or 'the image'} is too large: 3.75 MB at most") from None
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from None
