"""An agent's prompts and slash commands on their way: sent, stopped, asked again until they fit, and what they came to.

Whoever sends a prompt and waits for its end goes this way: a program, print mode, an editor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tenuto.api.result import Answer, Asked, RunResult
from tenuto.core.errors import UsageError
from tenuto.protocol.event import AnyEvent, NoticeEvent, TaskSettledEvent
from tenuto.protocol.operation import EditQueueOperation, InterruptOperation
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.protocol.usage import Usage

if TYPE_CHECKING:
    from tenuto.api.schema import OutputSchema
    from tenuto.command.outcome import CommandOutcome
    from tenuto.command.runtime import CommandRuntime
    from tenuto.core.state.live import LiveSession
    from tenuto.session.session import Session

T = TypeVar("T")
HearCommand = Callable[[str, "CommandOutcome"], object]
"""Is told what a slash command says, and what it asks of a front-end."""


class Prompt(msgspec.Struct, frozen=True):
    """What is asked for. `timeout` is seconds."""

    text: str
    images: tuple[ImagePart, ...] = ()
    schema: OutputSchema | None = None
    timeout: float | None = None
    is_command: bool = False


class _Sending(msgspec.Struct, eq=False):
    """A prompt that is being sent: nothing runs that an interrupt could stop, so it is noted here."""

    is_stopped: bool = False
    drops_queue: bool = False
    command: asyncio.Task[list[CommandOutcome]] | None = None
    """A slash command at work that can be stopped."""


class Prompts:
    """Sends what an agent is asked, and gathers what came of it in `result`."""

    def __init__(self, runtime: CommandRuntime, result: RunResult) -> None:
        self.is_closed = False
        """The agent is closed: whoever is cancelled leaves the session alone."""
        self.listeners: list[HearCommand] = []
        self._runtime = runtime
        self._result = result
        self._waiting = 0
        self._sending: list[_Sending] = []

    async def ask(self, prompt: Prompt) -> Answer[Any]:
        """Send a prompt, or run a command, and return what came of it when the session is idle."""
        session = self._runtime.live.session
        before = session.state.usage
        if not self._waiting:  # else it stands behind another one, and has its result
            self._result.begin()
        self._waiting += 1
        try:
            async with asyncio.timeout(prompt.timeout):
                answer = self._answer(session, before, await self.until_stopped(self._ask(prompt)))
                return self._with_compaction(answer) if prompt.is_command else answer
        except TimeoutError:
            return self._answer(session, before, None, f"stopped after {prompt.timeout or 0:g} s (timeout)")
        finally:
            self._waiting -= 1

    async def interrupt(self, *, drop_queue: bool) -> None:
        """Stop what runs, and what is just being sent; with `drop_queue` let go of what waits behind it."""
        for sending in self._sending:
            sending.is_stopped = True
            sending.drops_queue = sending.drops_queue or drop_queue
            if sending.command is not None:
                sending.command.cancel()
        await self._interrupt(drop_queue)

    async def until_stopped(self, work: Awaitable[T]) -> T:
        """Await work in the session; where the one who waits is cancelled, stop it and leave nothing to be sent.

        A run that ends by itself is closed then, which stops it too: what it has not sent waits in the log.
        """
        live = self._runtime.live
        newest = max((waiting.seq for waiting in live.session.state.queue), default=0)
        try:
            return await work
        except asyncio.CancelledError:
            if not (self.is_closed or live.ends_by_itself):
                await asyncio.shield(asyncio.ensure_future(self._stop(live, newest)))
            raise

    # --- sending ---

    async def _ask(self, prompt: Prompt) -> Asked:
        schema, turns = prompt.schema, self._result.turns
        note = schema.note if schema is not None and schema.note != self._runtime.start.answer_note else ""
        if prompt.is_command:
            settled = await self._send_command(prompt.text)
        else:
            settled = await self._send("\n\n".join(filter(None, (prompt.text, note))), prompt.images)
            note = ""
        if schema is None or settled.outcome != "completed" or self._result.turns == turns:
            return Asked(settled)  # a command may only say something
        from tenuto.api.schema import insist

        async def again(text: str) -> TaskSettledEvent:
            return await self._send("\n\n".join(filter(None, (text, note))))

        return await insist(settled, schema, again, self._result)

    async def _send(self, text: str, images: Sequence[ImagePart] = ()) -> TaskSettledEvent:
        parts: tuple[ContentPart, ...] = (TextPart(text=text), *images) if text else (*images,)
        with self._while_sending() as sending:
            await self._runtime.submit_prompt(parts)
        return await self._settle(sending)

    async def _send_command(self, line: str) -> TaskSettledEvent:
        """Run a slash command, tell what it says, and wait for what it has begun; one that is refused has failed.

        Raises `UsageError` for a command that there is not.
        """
        with self._while_sending() as sending:
            if not await self._runtime.is_command(line):
                raise UsageError(f"there is no command {line.split(maxsplit=1)[0]}; /help lists them")
            refusal = await self._run_command(line, sending)
        if self._has_begun_nothing() and not sending.is_stopped:
            settled = TaskSettledEvent(session_id=self._runtime.session_id, outcome="completed")
        else:
            settled = await self._settle(sending)
        if refusal and settled.outcome == "completed":
            return msgspec.structs.replace(settled, outcome="failed", error=refusal)
        return settled

    async def _run_command(self, line: str, sending: _Sending) -> str:
        """Run a slash command and tell what it says; return why it did not do what was asked, empty where it did."""
        from tenuto.api.words import describe_outcome
        from tenuto.command.outcome import Edit, is_warning, refusal_of

        refused: list[str] = []

        def note(event: AnyEvent) -> None:  # an operation that the command asked for and that was not carried out
            if isinstance(event, NoticeEvent) and event.submission_id and event.level != "info":
                refused.append(event.text)

        unsubscribe = self._runtime.subscribe(note)
        try:
            outcomes = await self._stoppable(line, sending)
        finally:
            unsubscribe()
        said: list[str] = []
        for outcome in outcomes:
            text = describe_outcome(outcome)
            if not is_warning(outcome):
                said.append(text)
            for listener in self.listeners:
                listener(text, outcome)
            if isinstance(outcome, Edit) and outcome.sent:  # nobody here could change it, and send it then
                await self._runtime.submit_prompt((TextPart(text=outcome.sent), *outcome.images), origin="command")
        if not self._result.turns:  # else what it began is further already
            self._result.text = "\n".join(said) or self._result.text
        return refusal_of(outcomes) or "\n".join(refused)

    async def _stoppable(self, line: str, sending: _Sending) -> list[CommandOutcome]:
        """Run a slash command; one that an interrupt may stop says nothing when it was stopped."""
        can_stop = await self._runtime.is_stoppable(line)
        if sending.is_stopped:
            return []
        if not can_stop:
            return await self._runtime.run_command(line)
        sending.command = asyncio.create_task(self._runtime.run_command(line), name="slash command")
        try:
            await asyncio.wait([sending.command])
        finally:
            sending.command.cancel()  # where who waits is cancelled
        return [] if sending.command.cancelled() else sending.command.result()

    def _has_begun_nothing(self) -> bool:
        result = self._result
        return self._runtime.live.task.settled and result.settled is None and result.returned is None

    @contextmanager
    def _while_sending(self) -> Generator[_Sending]:
        sending = _Sending()
        self._sending.append(sending)
        try:
            yield sending
        finally:
            self._sending.remove(sending)

    async def _settle(self, sending: _Sending) -> TaskSettledEvent:
        if sending.is_stopped:
            await self._interrupt(sending.drops_queue)
        settled = await self._runtime.wait_settled()
        return msgspec.structs.replace(settled, outcome="interrupted") if sending.is_stopped else settled

    # --- stopping ---

    async def _interrupt(self, drop_queue: bool) -> None:
        live = self._runtime.live
        if drop_queue:
            await self._drop(live, 0)
        await self._runtime.submit(InterruptOperation(session_id=live.id))

    async def _stop(self, live: LiveSession, newest: int) -> None:
        await self._runtime.executor.stop(live)
        await self._drop(live, newest)

    async def _drop(self, live: LiveSession, newest: int) -> None:
        """Take out of the queue what came behind the entry `newest`."""
        for waiting in live.session.state.queue:
            if waiting.seq > newest:
                operation = EditQueueOperation(session_id=live.id, target=waiting.seq, action="delete")
                await self._runtime.submit(operation)

    # --- what came of it ---

    def _answer(self, session: Session, before: Usage, asked: Asked | None, overtime: str = "") -> Answer[Any]:
        result = self._result
        outcome, error, value = "limit_reached", overtime, None
        if asked is not None:
            outcome, error, value = asked.settled.outcome, asked.settled.error, asked.value
            if asked.problem:
                outcome, error = "failed", asked.problem
            elif outcome != "completed":
                error = error or result.returned or ""
        live = self._runtime.opener.open_one
        now = session if live is None else live.session  # a command may have opened another one
        return Answer(
            text=result.text,
            value=value,
            outcome=outcome,
            error=error,
            usage=now.state.usage - before if now.id == session.id else Usage(),
            turns=result.turns,
            refused=tuple(result.refused),
            changed_files=tuple(result.changed_files),
            sources=tuple(result.sources.values()),
            session_id=now.id,
        )

    def _with_compaction(self, answer: Answer[Any]) -> Answer[Any]:
        """Return the answer of a command that says nothing itself with what its compaction did, or why it did not."""
        end = self._result.compaction
        if answer.text or end is None:
            return answer
        from tenuto.api.words import describe_compaction

        return msgspec.structs.replace(answer, text=describe_compaction(end))
