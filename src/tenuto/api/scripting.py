"""The API without `async`: `tenuto.run` for one prompt, `tenuto.SyncAgent` for several. A thread has the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, TypeVar, Unpack, overload

from tenuto.api.agent import Agent, AgentClosedError

if TYPE_CHECKING:
    from tenuto.api.approving import Approve
    from tenuto.api.prompting import HearCommand
    from tenuto.api.reading import Image
    from tenuto.api.result import Answer
    from tenuto.compaction.ways.preview import PlanDescription
    from tenuto.core.compacting.undo import Undone
    from tenuto.protocol.compaction import CompactionStrategy
    from tenuto.protocol.entry import Mode
    from tenuto.protocol.event import AnyEvent
    from tenuto.protocol.message import CompactionEntry
    from tenuto.protocol.usage import Usage

T = TypeVar("T")


class AgentOptions(TypedDict, total=False):
    """The options of `Agent`, which says what they mean."""

    model: str
    mode: Mode | None
    approve: Approve | None
    tools: Sequence[Callable[..., object]]
    extensions: Sequence[object]
    compaction: CompactionStrategy | None
    instructions: str
    allow: Sequence[str]
    deny: Sequence[str]
    directories: Sequence[str | Path]
    servers: Mapping[str, Mapping[str, Any]] | None
    max_turns: int | None
    max_cost: float | None
    settings: Mapping[str, Any] | None
    resume: str | Literal[True]
    fork: bool
    temporary: bool
    sandboxed: bool
    home: str | Path | None
    environ: Mapping[str, str] | None


class _Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="tenuto", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of `work`. Where the caller is interrupted (Ctrl+C), the work is cancelled."""
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def close(self) -> None:
        """End the thread. Safe to call twice."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


class SyncAgent:
    """An `Agent` for scripts without `async`: the same options and methods, and each waits until it is done.

        with tenuto.SyncAgent("project", mode="edits") as agent:
            print(agent.run("make the tests pass").text)

    Its event loop runs on a thread of its own, so that it can be used where another loop runs, as in a notebook; a
    listener, an `async` tool and an `async` approve function are called there. Ctrl+C stops the run that is waited for.
    """

    def __init__(self, cwd: str | Path = ".", **options: Unpack[AgentOptions]) -> None:
        self._agent = Agent(cwd, **options)
        self._loop: _Loop | None = None

    def __enter__(self) -> Self:
        """Open the session, as `open` does."""
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session, as `close` does."""
        self.close()

    def open(self) -> Self:
        """Open the session, and return the agent. Raises what `Agent.open` does."""
        if self._loop is None:
            self._loop = _Loop()
        try:
            self._loop.wait(self._agent.open())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop what runs and close the session. Closing a second time does nothing."""
        if self._loop is not None:
            try:
                self._loop.wait(self._agent.close())
            finally:
                self._loop.close()
                self._loop = None

    @property
    def session_id(self) -> str:
        """The session's id; `resume=` takes it."""
        return self._agent.session_id

    @property
    def usage(self) -> Usage:
        """Tokens and US dollars that the session has used since it began."""
        return self._agent.usage

    @property
    def model(self) -> str:
        """The model that is asked next: `Agent.model`."""
        return self._agent.model

    @property
    def effort(self) -> str:
        """How hard the model thinks: `Agent.effort`."""
        return self._agent.effort

    @property
    def efforts(self) -> tuple[str, ...]:
        """What `set_effort` takes: `Agent.efforts`."""
        return self._agent.efforts

    @property
    def mode(self) -> Mode:
        """The approval mode: `Agent.mode`."""
        return self._agent.mode

    @property
    def parting(self) -> str:
        """What its user has to know of the session's log when the agent is closed: `Agent.parting`."""
        return self._agent.parting

    def subscribe(self, listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Call `listener` for every event, on the agent's thread; returns what ends that."""
        return self._agent.subscribe(listener)

    def hear_commands(self, listener: HearCommand) -> Callable[[], None]:
        """Call `listener` with what slash commands say, on the agent's thread: `Agent.hear_commands`."""
        return self._agent.hear_commands(listener)

    @overload
    def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: type[T],
        timeout: float | None = None,
        queue: bool = False,
    ) -> Answer[T]: ...
    @overload
    def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: dict[str, Any] | None = None,
        timeout: float | None = None,
        queue: bool = False,
    ) -> Answer[Any]: ...

    def run(
        self,
        prompt: str,
        *,
        images: Sequence[Image] = (),
        schema: Any = None,
        timeout: float | None = None,
        queue: bool = False,
    ) -> Answer[Any]:
        """Send a prompt and return what came of it: `Agent.run`."""
        return self._wait(self._agent.run(prompt, images=images, schema=schema, timeout=timeout, queue=queue))

    def stream(
        self, prompt: str, *, images: Sequence[Image] = (), schema: Any = None, timeout: float | None = None
    ) -> Generator[AnyEvent | Answer[Any]]:
        """Send a prompt and yield every event as it happens, the answer as the last: `Agent.stream`."""
        events = self._agent.stream(prompt, images=images, schema=schema, timeout=timeout)
        try:
            while (event := self._wait(_next(events))) is not None:
                yield event
        finally:
            self._wait(events.aclose())

    def is_command(self, text: str) -> bool:
        """Say whether a text begins with the name of a slash command: `Agent.is_command`."""
        return self._wait(self._agent.is_command(text))

    def command(
        self, line: str, *, schema: Any = None, timeout: float | None = None, queue: bool = False
    ) -> Answer[Any]:
        """Run a slash command and return what it says: `Agent.command`."""
        return self._wait(self._agent.command(line, schema=schema, timeout=timeout, queue=queue))

    def interrupt(self, *, drop_queue: bool = False) -> None:
        """Stop whatever runs: `Agent.interrupt`; for another thread than the one that waits."""
        self._wait(self._agent.interrupt(drop_queue=drop_queue))

    def set_model(self, model: str) -> None:
        """Use another model from the next request on: `Agent.set_model`."""
        self._wait(self._agent.set_model(model))

    def set_effort(self, effort: str) -> None:
        """Have the model think as hard: `Agent.set_effort`."""
        self._wait(self._agent.set_effort(effort))

    def set_mode(self, mode: Mode) -> None:
        """Use another approval mode from the next call on: `Agent.set_mode`."""
        self._wait(self._agent.set_mode(mode))

    def compact(self, focus: str = "") -> CompactionEntry:
        """Make the context smaller and return what was written: `Agent.compact`."""
        return self._wait(self._agent.compact(focus))

    def preview(self, focus: str = "") -> PlanDescription:
        """Return what `compact` would do now: `Agent.preview`."""
        return self._wait(self._agent.preview(focus))

    def undo(self, *, drop_later: bool = False) -> Undone:
        """Take the newest compaction back: `Agent.undo`."""
        return self._wait(self._agent.undo(drop_later=drop_later))

    def redo(self) -> Undone:
        """Take the newest undo back: `Agent.redo`."""
        return self._wait(self._agent.redo())

    def fork(self) -> SyncAgent:
        """Return an agent that goes on in a copy of this session: `Agent.fork`. It is opened with `with`."""

        async def make() -> Agent:
            return self._agent.fork()

        other = SyncAgent.__new__(SyncAgent)
        other._agent, other._loop = self._wait(make()), None
        return other

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise AgentClosedError("the agent is not open: use it in `with`, or call its open() first")
        return self._loop.wait(work)


async def _next(events: AsyncGenerator[T]) -> T | None:
    return await anext(events, None)


def run(
    prompt: str,
    *,
    cwd: str | Path = ".",
    images: Sequence[Image] = (),
    schema: Any = None,
    timeout: float | None = None,
    **options: Unpack[AgentOptions],
) -> Answer[Any]:
    """Send one prompt in a session of its own and return what came of it, in a script without `async`.

        print(tenuto.run("why does the build fail?", cwd="project").text)

    `cwd` and `options` are those of `Agent`, the others those of `Agent.run`; it raises what these raise. The session
    is kept: `answer.session_id` goes on with it, `temporary=True` leaves nothing behind.
    """
    with SyncAgent(cwd, **options) as agent:
        return agent.run(prompt, images=images, schema=schema, timeout=timeout)
