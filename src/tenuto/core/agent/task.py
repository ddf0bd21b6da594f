"""The agent task: a loop of steps until the model has nothing more to do and nothing is due from the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenuto.core.agent.step import ModelCall, remind_at_prompt
from tenuto.core.errors import CompactionRefusedError, TaskFailedError
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import LiveSession
from tenuto.core.state.prompt import ensure_system_entry
from tenuto.core.state.windows import describe_sizes
from tenuto.protocol.entry import QueuedEntry
from tenuto.protocol.event import StepStartedEvent, UserMessageEvent
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    NoticeEntry,
    PlanView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ToolCallPart, text_of

TOLD_AT = 3
"""So many equal answers in a row: the model is told. With the next one the task ends."""
WAITING_SECONDS = 5.0
"""A call that takes this long waits for something: to look again is its purpose."""
_SHOWN_CALLS, _SHOWN_CHARACTERS = 3, 120


class Repetition(Struct, frozen=True):
    """An answer whose calls were made so often in a row."""

    times: int
    words: str
    failing: bool

    @property
    def is_last(self) -> bool:
        """Whether the model has been told before."""
        return self.times > TOLD_AT

    @property
    def note(self) -> DeveloperMessage:
        """What the model is told."""
        what = "and each time it failed" if self.failing else "with the same result each time"
        return DeveloperMessage(
            text=f"You have made the same call {self.times} times in a row {what}, with nothing else in between "
            f"({self.words}). The same again will not change anything: do something else, or say what you have found "
            "out or what stops you. Making it once more ends your work here."
        )

    @property
    def reason(self) -> str:
        """What the user is told when the task ends."""
        what = "the same failing call" if self.failing else "the same call with the same result"
        return f"stopped: the model made {what} {self.times} times in a row, also after it was told ({self.words})"


class RepeatedCalls:
    """Compares each answer's calls with those of the one before, since the user's last message."""

    def __init__(self) -> None:
        self._last: frozenset[tuple[object, ...]] = frozenset()
        self._times = 0
        self._compactions = 0

    def clear(self) -> None:
        """The user said something: what comes now is a new attempt."""
        self._last, self._times = frozenset(), 0

    def find(
        self, calls: Sequence[ToolCallPart], results: Sequence[ToolResultMessage], compactions: int
    ) -> Repetition | None:
        """Take in an answer's calls with their results; return the repetition that has to be told or ends the task.

        `compactions` is how many the session has had in this run. Equal calls of one answer count as one.
        """
        pairs = list(zip(calls, results, strict=True))
        failing = all(result.is_error for result in results)
        if not failing and compactions != self._compactions:
            self.clear()
        self._compactions = compactions
        signature = frozenset(_sign(call, result) for call, result in pairs)
        waits = any(result.duration >= WAITING_SECONDS for result in results)
        if not (failing or (compactions and not waits)):
            self.clear()
            return None
        self._times = self._times + 1 if signature == self._last else 1
        self._last = signature
        if self._times < TOLD_AT:
            return None
        return Repetition(self._times, _words(call for call, _ in pairs), failing)


def _sign(call: ToolCallPart, result: ToolResultMessage) -> tuple[object, ...]:
    """Return what makes two calls equal: of failed ones not how the failure is told, of broken ones what was broken."""
    outcome = None if result.is_error else hash(text_of(result.parts))
    return call.name, call.arguments, call.fault, result.is_error, outcome


def _words(calls: Iterable[ToolCallPart]) -> str:
    shown = list(dict.fromkeys(f"{call.name} {call.arguments[:_SHOWN_CHARACTERS]}" for call in calls))
    more = ", …" if len(shown) > _SHOWN_CALLS else ""
    return ", ".join(shown[:_SHOWN_CALLS]) + more


class AgentTask:
    """Serves one `RunAgentOperation`: sends what is queued, oldest first, and works until it is answered."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._step = 0
        self._repeated = RepeatedCalls()

    async def run(self) -> None:
        """Work until the queue is empty and the last answer asks for no tool. Raises what ends the task."""
        live = self._live
        live.task.queue_waiting = False
        live.session.flush_held_usage()
        try:
            while await self._send_next():
                await self._work()
        except asyncio.CancelledError:
            live.task.queue_waiting = True
            live.compaction.background.cancel()
            raise
        finally:
            for step in (live.session.save_meta, live.watch_saving, live.publish_queue):
                live.attempt(step)

    async def _work(self) -> None:
        """Loop over steps until an answer asks for no tool."""
        while True:
            await self._prepare_summary()
            message = await self._run_step()
            calls = list(message.tool_calls)
            if not calls and message.stop_reason != "pause":
                self._explain_end(message)
                return
            if calls:
                from tenuto.core.agent.calls import CallRunner

                results = await CallRunner(self._live, self._submission_id).run(calls)
                if self._is_over(calls, results):
                    return
            await self._live.task.boundary.cross()
            await self._send_steering()
            await self._compact_between_steps()

    async def _run_step(self) -> AssistantMessage:
        live = self._live
        self._step += 1
        self._live.store_side_commands()
        live.bus.publish(StepStartedEvent(session_id=live.id, submission_id=self._submission_id, step=self._step))
        live.watch_saving()
        message = await ModelCall(live, self._submission_id).run()
        live.publish_usage()
        # What a compaction can be judged by is the request; the answer is new, however long it is.
        sent = message.usage.sent if message.usage is not None else 0
        if live.compaction.automatic.note_measured(sent or live.measure().tokens):
            live.notify(
                "Compacting did not bring the context under its limit twice in a row; automatic compaction stops until "
                f"you compact, change the model, or the window is full ({describe_sizes(live)}).",
                "warning",
                keep=True,
            )
        return message

    async def _prepare_summary(self) -> None:
        """Have the next compaction's summary written beside the task, when it is near (R-060)."""
        live = self._live
        if live.compaction.background.is_unused and not live.is_preparation_due():
            return
        from tenuto.core.compacting.preparation import at_boundary

        await live.meter.texts.read(live.session.path())
        at_boundary(live)

    async def _compact_between_steps(self) -> None:
        """Compact when the context is over the trigger; a failure ends the task only where the window is full."""
        live = self._live
        if not live.is_compaction_due():
            return
        from tenuto.core.compacting.compact import run_compaction

        try:
            await run_compaction(live, CompactionRequest(reason="threshold", submission_id=self._submission_id))
        except TaskFailedError as error:
            if not isinstance(error, CompactionRefusedError):
                # The end event has shown it already; the log keeps it for a resumed transcript.
                live.session.append(NoticeEntry(text=f"Automatic compaction failed: {error}", level="warning"))
            if live.measure().tokens >= live.budget().window:
                raise

    async def _send_next(self) -> bool:
        """Put the oldest queued text into the history, with what has to be told before it; `False`: nothing queued."""
        while queue := self._live.session.state.queue:
            ensure_system_entry(self._live)
            self._live.store_side_commands()
            remind_at_prompt(self._live)
            if await self._send(queue[0]):
                self._repeated.clear()
                return True
        return False

    async def _send_steering(self) -> None:
        """Deliver the texts that the user wants heard at this tool boundary."""
        self._live.store_side_commands()
        for entry in self._live.session.state.queue:
            if entry.steer:
                await self._send(entry)

    async def _send(self, entry: QueuedEntry) -> bool:
        """Put a prompt into the history, with the files that it mentions; `False` when it was taken back meanwhile."""
        live = self._live
        mentioned = None
        if entry.origin == "typed" and "@" in (text := text_of(entry.parts)):
            from tenuto.core.agent.mentions import read_mentions

            mentioned = await read_mentions(live, text)
        if all(queued.seq != entry.seq for queued in live.session.state.queue):
            return False
        parts = entry.parts + (mentioned.images if mentioned else ())
        stored = live.session.append(UserMessage(parts=parts, origin=entry.origin, from_queued=entry.seq))
        live.bus.publish(
            UserMessageEvent(
                session_id=live.id,
                submission_id=self._submission_id,
                seq=stored.seq,
                parts=stored.parts,
                origin=stored.origin,
                from_queued=entry.seq,
            )
        )
        if mentioned is not None and mentioned.message is not None:
            live.session.append(mentioned.message)
            live.notify(mentioned.notice, kind=mentioned.message.kind, keep=True)
        live.publish_queue()
        return True

    def _is_over(self, calls: list[ToolCallPart], results: list[ToolResultMessage]) -> bool:
        """Say whether the work ends here: a plan is handed over, or the model goes round in circles.

        Then the model is told first. Where it does not listen the user is told why it ended, and a task whose call
        keeps failing has failed.
        """
        if _is_handed_over(results):
            return True
        found = self._repeated.find(calls, results, self._live.compaction.automatic.done)
        if found is None:
            return False
        if not found.is_last:
            self._live.session.append(found.note)
            return False
        if found.failing:
            raise TaskFailedError(f"{found.reason}; say how to go on")
        self._live.notify(f"{found.reason[0].upper()}{found.reason[1:]}; say how to go on.", "warning", keep=True)
        return True

    def _explain_end(self, message: AssistantMessage) -> None:
        """Say why an answer ended, when it did not end by itself."""
        match message.stop_reason:
            case "max_tokens":
                self._live.notify("The answer reached its output limit; say “continue” to go on.", "warning", keep=True)
            case "refusal":
                self._live.notify("The model declined to answer.", "warning", keep=True)
            case _:
                pass


def _is_handed_over(results: Sequence[ToolResultMessage]) -> bool:
    """Say whether a plan among the results ends the turn: in a run where nobody can be asked it is the answer."""
    views = (view for result in results for view in result.ui)
    return any(isinstance(view, PlanView) and view.outcome == "unasked" for view in views)
