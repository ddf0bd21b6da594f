"""One step's model call: a request, its stream, its retries.

A stream that ends without its terminal event, or fails in the middle, never becomes an assistant entry: what was
shown of it is withdrawn and the request is made again (R-092). What a user interrupted keeps its text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import msgspec
from msgspec import Struct, field

from tenuto.compaction.measure.budget import aim_for
from tenuto.core.agent.kinds import look_for_agents
from tenuto.core.agent.overflow import (
    ImageRecovery,
    OverflowChain,
    concerns_images,
    is_overflow,
    leaves_no_room,
    run_preflight,
)
from tenuto.core.agent.plans import plan_begun
from tenuto.core.agent.turn import fall_back
from tenuto.core.state.instructions import tell_nested, tell_remembered
from tenuto.core.state.live import LiveSession
from tenuto.core.state.pins import tell_pins
from tenuto.core.state.place import find_place
from tenuto.core.state.reminders import (
    FILES_KIND,
    JOBS_KIND,
    changed_files_message,
    due_messages,
    fill_message,
    finished_jobs_message,
    is_place_due,
    last_told,
    names_in,
)
from tenuto.core.state.request import build_request, tell_dropped, tell_edit, tell_ignored
from tenuto.core.state.skills import tell_skills
from tenuto.core.state.windows import learn_window, note_served
from tenuto.protocol.event import (
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    RetryEvent,
    ToolCallDeltaEvent,
    WebSearchEvent,
)
from tenuto.protocol.message import AssistantMessage, DeveloperMessage
from tenuto.protocol.model import (
    Finished,
    ModelError,
    ModelRequest,
    SearchDelta,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    lowered_output,
    next_delay,
)
from tenuto.protocol.part import TextPart
from tenuto.session.plans import PLAN_CALL, Piece, PlanReader, shown_answer, with_mark


async def remind_at_prompt(live: LiveSession) -> None:
    """Tell what has changed before a new prompt goes into the history; what was told of jobs before is old by now."""
    live.reminders.ended_jobs.clear()
    look_for_agents(live)
    await _remind_of_context(live)
    changed = live.reminders.changed_files.find(live.session.state.files)
    if changed:
        live.session.append(changed_files_message(changed))


async def remind_before_request(live: LiveSession) -> None:
    """Tell what the request that is made next has to carry and does not: each one, also when a step is repeated."""
    ended = live.tool_context.jobs.take_finished()
    if ended:
        live.reminders.ended_jobs.extend(ended)
        live.session.append(finished_jobs_message(ended))
    tell_pins(live)
    tell_skills(live)
    await _remind_of_context(live)
    compaction = live.session.reading.compaction
    if compaction is not live.reminders.compaction:
        live.reminders.compaction = compaction
        _remind_again(live)
    tell_remembered(live)
    tell_nested(live)
    _remind_of_fill(live)


async def _remind_of_context(live: LiveSession) -> None:
    cwd = live.session.cwd
    notes = live.reminders
    told = last_told(notes.seen.follow(live.session.get_llm_history()).notes)
    if is_place_due(told, cwd):
        notes.place = await find_place(cwd, live.tool_context.environ)
        told = last_told(notes.seen.follow(live.session.get_llm_history()).notes)
    for message in due_messages(told, live.mode_text, cwd, live.clock(), notes.place, agents=notes.agents):
        live.session.append(message)


def _remind_of_fill(live: LiveSession) -> None:
    """Tell how full the context is, where there is something that the model can do about it or that will come."""
    can_ask = live.can_ask_compaction
    if not (can_ask or live.settings.compaction.enabled):
        return
    size = live.measure()
    trigger = aim_for(live.budget(), size.fixed + size.queued).trigger
    note = fill_message(live.session.path(), size.tokens, trigger, can_ask=can_ask)
    if note is not None:
        live.session.append(note)


def _remind_again(live: LiveSession) -> None:
    """Tell of files and jobs what was told before, still holds, and is not in the view any more."""
    notes = [message for message in live.session.get_llm_history() if isinstance(message, DeveloperMessage)]
    files = names_in(notes, FILES_KIND)
    changed = [path for path in live.reminders.changed_files.told(live.session.state.files) if path not in files]
    if changed:
        live.session.append(changed_files_message(changed))
    jobs = "\n".join(message.text for message in notes if message.kind == JOBS_KIND)
    ended = [job for job in live.reminders.ended_jobs if f"Background job {job.id} " not in jobs]
    if ended:
        live.session.append(finished_jobs_message(ended))


MAX_BUDGET_CUTS = 3
MIN_ANSWER = 16
"""Tokens: a model that is refused more than this has no room for an answer."""
ITEM_REFUSALS = frozenset({"bad_thinking", "invalid", "not_found"})
INTERRUPTED = "Interrupted before there was an answer."
INTERRUPTED_RETRY = "Interrupted before there was an answer. Attempt {attempt} had failed: {reason}"
FULL_SHARE = 0.99
"""Of the window: an empty answer above this was cut off by the window (R-022)."""


class Shown(Struct):
    """What of the present attempt the front-ends have been shown."""

    texts: list[str] = field(default_factory=list)
    call_characters: dict[int, int] = field(default_factory=dict)
    anything: bool = False
    thinking_began: float = 0.0
    thinking_ended: float = 0.0

    @property
    def text(self) -> str:
        """The answer's text so far."""
        return "".join(self.texts)


class ModelCall:
    """One step's call of the model, until an answer is complete or the error is final."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._shown = Shown()
        self._chain = OverflowChain(live, submission_id)
        self._images = ImageRecovery(live, submission_id)
        self._failures = 0
        self._tried: set[str] = set()
        """The models that this step has had."""
        self._last_failure = ""
        self._budget_cuts = 0
        self._plan_begun = ""
        self._reader: PlanReader | None = None
        """Divides the text of an attempt in plan mode; `None` in every other mode, where a block is just text."""

    async def run(self) -> AssistantMessage:
        """Return the stored answer.

        Raises `ModelError` or `TaskFailedError` when the failure is final, `CancelledError` when interrupted.
        """
        run_preflight(self._live, self._submission_id)
        self._plan_begun = plan_begun(self._live)
        request = await self._build_request()
        while True:
            estimate = self._live.measure().estimate
            try:
                end = await self._stream(request)
                answer = self._check(end.message)
            except ModelError as error:
                self._withdraw(error)
                request = await self._next_request(request, error)
            except asyncio.CancelledError:
                self._keep_interrupted_text()
                raise
            else:
                thinking = self._shown.thinking_ended - self._shown.thinking_began
                if end.edit is not None or end.compacted is not None:
                    estimate = 0  # what the server counted is not what was sent: nothing to calibrate by
                note_served(self._live, end.message)
                self._note_limit(request, end.message)
                stored = self._publish(msgspec.structs.replace(answer, estimate=estimate, thinking_duration=thinking))
                self._note_server(stored, end)
                return stored

    async def _build_request(self) -> ModelRequest:
        await remind_before_request(self._live)
        return build_request(self._live)

    def _note_server(self, answer: AssistantMessage, end: Finished) -> None:
        """Take over what the server did to the context while it answered."""
        if end.edit is not None:
            tell_edit(self._live, end.edit)
        if end.ignored:
            tell_ignored(self._live, end.ignored)
        for name in end.dropped:
            if name != end.ignored:
                tell_dropped(self._live, name)
        if end.compacted is not None:
            from tenuto.core.compacting.compact import adopt_compaction

            adopt_compaction(self._live, self._submission_id, answer, end.compacted)

    async def _next_request(self, request: ModelRequest, error: ModelError) -> ModelRequest:
        """Return what to send after a failure; raises when the failure is final."""
        live = self._live
        if error.kind == "bad_thinking" and request.thinking:
            return msgspec.structs.replace(request, thinking=False)
        if error.kind in ITEM_REFUSALS:
            from tenuto.core.compacting.compact import give_up_items, refuses_items

            if refuses_items(live, error, request):
                await give_up_items(live, self._submission_id, error)
                return await self._build_request()
        if error.kind == "output_budget" and self._budget_cuts < MAX_BUDGET_CUTS:
            self._budget_cuts += 1
            learn_window(live, error)
            if not leaves_no_room(error):
                limit = lowered_output(request, error)
                if limit < MIN_ANSWER:
                    raise error
                self._remember_output_limit(error, limit)
                return msgspec.structs.replace(request, max_output_tokens=limit)
        if concerns_images(error, request) and self._images.leave_out(error, request):
            return await self._build_request()
        too_long = leaves_no_room(error) or is_overflow(error, live.measure().tokens, live.budget().window)
        if too_long:
            await self._chain.recover(error, request)
            return await self._build_request()
        self._failures += 1
        if await self._wait_before_retry(error, self._failures):
            return request
        if not await fall_back(live, error, self._tried):
            raise error
        self._failures = 0
        run_preflight(live, self._submission_id)
        return await self._build_request()

    def _remember_output_limit(self, error: ModelError, limit: int) -> None:
        """The model's own limit holds for the next steps too; one that the size of this request makes does not."""
        if error.observed is None:
            self._live.model.facts = msgspec.structs.replace(self._live.facts, max_output_tokens=limit)

    def _note_limit(self, request: ModelRequest, answer: AssistantMessage) -> None:
        """Where a request named no output limit and the server's own cut the answer off, the next one asks for more."""
        usage = answer.usage
        if request.max_output_tokens is None and answer.stop_reason == "max_tokens" and usage is not None:
            self._live.model.cut_at = max(self._live.model.cut_at, usage.output)

    def _check(self, answer: AssistantMessage) -> AssistantMessage:
        """Raise for an answer that is none: the window cut it off (R-019, R-022)."""
        window = self._live.facts.context_window
        sent = answer.usage.sent if answer.usage is not None else 0
        if answer.stop_reason == "window_exceeded":
            raise ModelError("overflow", "the answer ran into the end of the context window", observed=sent)
        if answer.parts:
            return answer
        if answer.stop_reason == "max_tokens" and window is not None and sent >= FULL_SHARE * window:
            raise ModelError("overflow", "the request filled the whole window", observed=sent)
        return answer

    async def _stream(self, request: ModelRequest) -> Finished:
        """Make one attempt, publish what arrives, and return its end."""
        self._shown = Shown()
        self._reader = PlanReader(self._plan_begun) if self._live.plans else None
        client = self._live.models.client(request.model.provider)
        answer = cast("AsyncGenerator[StreamPart, None]", client.stream(request))
        async with aclosing(answer) as stream:
            async for part in stream:
                if isinstance(part, Finished):
                    self._show_pieces(self._reader.finish() if self._reader is not None else [])
                    return part
                self._show(part)
        raise ModelError("broken_stream", "the stream ended before the answer was complete")

    def _show(self, part: StreamPart) -> None:
        live, shown = self._live, self._shown
        shown.anything = True
        match part:
            case TextDelta(text=text):
                shown.texts.append(text)
                self._show_pieces([Piece(text, 0)] if self._reader is None else self._reader.feed(text))
            case ThinkingDelta(text=text):
                shown.thinking_began = shown.thinking_began or time.monotonic()
                shown.thinking_ended = time.monotonic()
                live.bus.publish(
                    AssistantThinkingDeltaEvent(session_id=live.id, submission_id=self._submission_id, text=text)
                )
            case ToolCallDelta():
                if not (shown.call_characters or live.tools.is_warm):
                    asyncio.get_running_loop().run_in_executor(None, live.tools.warm_up)
                plans = self._reader.begun if self._reader is not None else 0
                self._show_call(plans + part.index, part.name, len(part.fragment))
            case SearchDelta(search=search):
                live.bus.publish(WebSearchEvent(session_id=live.id, submission_id=self._submission_id, search=search))
            case Finished():
                pass

    def _show_pieces(self, pieces: Sequence[Piece]) -> None:
        """Publish text; what is in a plan as a call that is being written."""
        for piece in pieces:
            if piece.block:
                self._show_call(piece.block - 1, PLAN_CALL, len(piece.text))
            else:
                self._live.bus.publish(
                    AssistantTextDeltaEvent(
                        session_id=self._live.id, submission_id=self._submission_id, text=piece.text
                    )
                )

    def _show_call(self, index: int, name: str, characters: int) -> None:
        """Publish that a call, the `index`-th of the answer, has grown."""
        characters += self._shown.call_characters.get(index, 0)
        self._shown.call_characters[index] = characters
        self._live.bus.publish(
            ToolCallDeltaEvent(
                session_id=self._live.id,
                submission_id=self._submission_id,
                index=index,
                name=name,
                characters=characters,
            )
        )

    def _withdraw(self, error: ModelError) -> None:
        """Take back what a failed attempt has shown; a notice stays in the log."""
        live, shown = self._live, self._shown
        if not shown.anything:
            return
        self._shown = Shown()
        live.bus.publish(
            AssistantWithdrawnEvent(session_id=live.id, submission_id=self._submission_id, reason=str(error))
        )
        characters = len(shown.text)
        if characters:
            live.notify(f"Discarded a partial answer ({characters:,} characters): {error}", "warning", keep=True)

    async def _wait_before_retry(self, error: ModelError, failures: int) -> bool:
        """Wait, where the failure may pass; whether it may."""
        live = self._live
        attempts = live.settings.request.retries
        import random

        delay = next_delay(error, failures, attempts, random.random())
        if delay is None:
            return False
        self._last_failure = str(error)
        live.bus.publish(
            RetryEvent(
                session_id=live.id,
                submission_id=self._submission_id,
                attempt=failures,
                attempts=attempts,
                wait=delay,
                reason=str(error),
            )
        )
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self._keep_interrupted_text()
            raise
        return True

    def _keep_interrupted_text(self) -> None:
        """What the user read before the interrupt stays in the conversation; calls and thinking do not."""
        if self._shown.text.strip():
            parts = (TextPart(text=self._shown.text),)
            self._publish(AssistantMessage(parts=parts, model=self._live.facts.id, stop_reason="interrupted"))
            return
        live = self._live
        if self._shown.anything:
            live.bus.publish(
                AssistantWithdrawnEvent(session_id=live.id, submission_id=self._submission_id, reason="interrupted")
            )
        if self._last_failure:
            text = INTERRUPTED_RETRY.format(attempt=self._failures, reason=self._last_failure)
            live.notify(text, "warning", keep=True)
            return
        live.notify(INTERRUPTED, "info", keep=True)

    def _publish(self, message: AssistantMessage) -> AssistantMessage:
        if self._reader is not None:
            message = with_mark(message, self._plan_begun)
        stored = self._live.session.append(message)
        self._live.bus.publish(
            AssistantMessageEvent(
                session_id=self._live.id, submission_id=self._submission_id, message=shown_answer(stored)
            )
        )
        return stored
