"""Asking a model for a summary: rung 4 of the ladder (DESIGN sections 5 and 6).

One request after the other, without tools, each within the summariser's window: a conversation that is larger is
folded, part by part, with the update form. A refused request is made again only with less in it (R-002). Writes
nothing; what was spent is in `usage` even when the work is cancelled or fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol, cast

import msgspec

from tenuto.compaction.measure.budget import MIN_FREE, Budget
from tenuto.compaction.measure.weight import MESSAGE_OVERHEAD, estimate_message
from tenuto.compaction.plan.entries import Visible
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.judge import Expected, Fault, expect
from tenuto.compaction.summary.prompts import Prompts, assemble, summariser_system, with_length
from tenuto.compaction.summary.serialize import (
    BOUNDS,
    SEPARATOR,
    Bounds,
    group_steps,
    serialize,
    serialize_step,
    take_blocks,
)
from tenuto.compaction.summary.summary import (
    find_fault,
    is_too_long,
    join_summaries,
    shorten,
    text_of_summary,
    without_names,
)
from tenuto.compaction.summary.vanished import (
    Check,
    Line,
    complete,
    length_for_lines,
    question,
    read_answer,
    vanished,
    without_answer,
)
from tenuto.compaction.summary.view import clip_to_tokens
from tenuto.protocol.compaction import RungError
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, SystemMessage, UserMessage
from tenuto.protocol.model import (
    RETRYABLE,
    ErrorKind,
    Finished,
    ModelClient,
    ModelError,
    ModelFacts,
    ModelRequest,
    TextDelta,
    lowered_output,
)
from tenuto.protocol.part import TextPart
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import estimate_text


class Progress(Protocol):
    """Told how far a summary is."""

    def __call__(self, stage: str, tokens: int, text: str = "", /) -> None:
        """Take the stage, how many tokens of the summary have arrived (an estimate), and the text that came last.

        Without tokens the summary begins: what arrived before does not count.
        """


Sleep = Callable[[float], Awaitable[None]]

MAX_RETRIES = 2
"""Retries of one request after passing failures."""
MAX_WAIT = 30.0
"""Seconds that one compaction waits for overloaded providers, all rungs and retries together."""
MAX_ATTEMPTS = 2
"""How often a usable text is asked for: once, and once more with what was wrong."""
MIN_LOWERED_OUTPUT = MIN_FREE // 4
HOPELESS: frozenset[ErrorKind] = frozenset({"quota", "auth", "not_found", "rate_limit", "overloaded", "unreachable"})
"""Failures of a model as such: another request to the same model would fail in the same way."""


class SummaryError(RungError):
    """No usable summary came; `str(error)` says why in one line, `cause` is the provider's error if there was one."""

    def __init__(self, reason: str, cause: ModelError | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


@dataclass(slots=True)
class Patience:
    """What one compaction has put up with: seconds waited, and the models (`provider/name`) that it gave up on."""

    waited: float = 0.0
    given_up: set[str] = field(default_factory=set[str])

    def note(self, model_id: str, error: ModelError) -> None:
        """Remember a model that cannot be reached at all, so that no other rung asks it again."""
        if error.kind in HOPELESS:
            self.given_up.add(model_id)


class SummaryCalls:
    """Makes summary requests to one model. `usage` is what they have cost, also when they were cancelled or failed."""

    def __init__(
        self, client: ModelClient, progress: Progress, patience: Patience, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.usage = Usage()
        self._client = client
        self._progress = progress
        self._patience = patience
        self._sleep = sleep

    async def call(self, request: ModelRequest, stage: str) -> AssistantMessage:
        """Make one request, with at most two retries of passing failures. Raises `ModelError`."""
        failures = 0
        while True:
            self._progress(stage, 0)
            try:
                return await self._stream(request, stage)
            except ModelError as error:
                limit = lowered_output(request, error)
                if error.kind == "output_budget" and limit > MIN_LOWERED_OUTPUT:
                    request = msgspec.structs.replace(request, max_output_tokens=limit)
                    continue
                failures += 1
                wait = error.retry_after if error.retry_after is not None else 2.0**failures
                is_final = error.kind not in RETRYABLE or failures > MAX_RETRIES
                if is_final or self._patience.waited + wait > MAX_WAIT:
                    self._patience.note(request.model.id, error)
                    raise
                self._patience.waited += wait
                self._progress(f"{stage}, waiting to try again: {error}", 0)
                await self._sleep(wait)

    async def _stream(self, request: ModelRequest, stage: str) -> AssistantMessage:
        """Read one answer to its end. A stream without an end is a broken one."""
        characters = 0
        stream = cast("AsyncGenerator[object, None]", self._client.stream(request))
        async with aclosing(stream):
            async for part in stream:
                if isinstance(part, TextDelta):
                    characters += len(part.text)
                    self._progress(stage, max(1, characters // 4), part.text)
                elif isinstance(part, Finished):
                    if part.message.usage is not None:
                        self.usage += part.message.usage
                    return part.message
        raise ModelError("broken_stream", "the stream ended before the summary was complete")


async def accept_summary(
    ask: Callable[[str], Awaitable[AssistantMessage]], *, length: int, replaced: int, expected: Expected
) -> str:
    """Return a text of at most `length` estimated tokens that can stand for `replaced` ones (R-009, R-010).

    `ask` is called with what to add to the request: nothing at first, then what was wrong with the first answer and
    what to do instead. Raises `SummaryError` in words for the user, and whatever `ask` raises.
    """
    too_long = feedback = reason = ""
    for _attempt in range(MAX_ATTEMPTS):
        answer = await ask(feedback)
        text = text_of_summary(answer)
        fault = find_fault(answer, replaced, expected)
        if fault is None:
            if not is_too_long(text, length):
                return text
            too_long = text
            fault = Fault(f"it was about {estimate_text(text)} tokens long, and {length} is the most")
        reason = fault.what
        feedback = f"\n\nA first attempt could not be used: {fault.tell_model()}"
    if too_long:
        return shorten(too_long, length)
    raise SummaryError(f"the summary could not be used: {reason}")


CHECK_STAGE = "checking the notes"
MIN_CHECK_TOKENS = 200
"""Tokens of the window below which nothing is asked about notes."""


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """Notes that were written, and the `previous` ones, of which nothing may vanish unnoticed.

    `request` is what the model wrote them for, and `room` what that leaves of the window, in tokens; `length` is how
    long they may become, in estimated tokens. `answers` are those that the notes stand for.
    """

    text: str
    previous: str
    request: ModelRequest
    room: int
    length: int
    calibration: float
    answers: Sequence[AssistantMessage]


async def check_notes(asker: SummaryCalls, notes: Notes, instructions: str) -> str:
    """Return notes with the lines of the previous ones that they leave out and that still hold (`vanished`).

    What is asked stands behind the notes, so nearly all of the request is in the prefix cache. Where the model cannot
    be asked, or does not answer as it should, the lines stay that do not get old. Empty `instructions` ask nothing.
    """
    space = length_for_lines(notes.text, notes.length)
    lines = vanished(notes.previous, notes.text) if instructions and space > 0 else []
    if not lines:
        return notes.text
    asked = question(with_length(instructions, space), lines)
    room = notes.room - round(estimate_text(f"{notes.text}\n{asked}") * notes.calibration) - 2 * MESSAGE_OVERHEAD
    check = await _ask_about(asker, notes, asked, lines, room) if room >= MIN_CHECK_TOKENS else None
    # Thousands of sentences take a part of a second; keys wait for none.
    return await asyncio.to_thread(complete, notes.text, check or without_answer(lines), notes.answers, space)


async def _ask_about(asker: SummaryCalls, notes: Notes, asked: str, lines: Sequence[Line], room: int) -> Check | None:
    """Return what the model says of the lines, `None` where it says nothing that can be read."""
    request = notes.request
    written = AssistantMessage(parts=(TextPart(text=notes.text),), stop_reason="end_turn")
    message = UserMessage(parts=(TextPart(text=asked),), origin="command")
    request = msgspec.structs.replace(
        request,
        messages=(*request.messages, written, message),
        max_output_tokens=min(room, request.max_output_tokens or room),
    )
    try:
        answer = await asker.call(request, CHECK_STAGE)
    except ModelError:
        return None  # the notes are there: what is asked about them is worth no failure
    return None if answer.stop_reason == "max_tokens" else read_answer(text_of_summary(answer), lines)


SHRINK_SHARES = (0.7, 0.5, 0.35)
"""Shares of a refused request that are tried next (rung 5)."""
MAX_PARTS = 12
MAX_CONSTRAINTS = 4_000
_MARGIN = 0.95
_TIGHTENING = (1, 2, 4, 8)
_OVERFLOW = frozenset({"overflow", "too_many_bytes", "request_too_large_for_rate"})
AMBIGUOUS_SHARE = 0.8
"""A refusal without a reason is taken for an overflow from this share of the window on."""


class SummaryContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who summarises and how. `budget` is the summariser's own; `calibration` real / estimated tokens of that model.

    `constraints` is the text of the instruction files; `focus` what the user asked to stress.
    """

    facts: ModelFacts
    budget: Budget
    prompts: Prompts = Prompts()
    focus: str = ""
    constraints: str = ""
    calibration: float = 1.0


class _Form(msgspec.Struct, frozen=True):
    """One kind of summary: its instructions, for the first part and for further ones, and its limits in tokens.

    `replaced` is the size of what the summary will stand for, as an estimate.
    """

    stage: str
    first: str
    following: str
    length: int
    output: int
    replaced: int


class _Step(msgspec.Struct, frozen=True):
    """A step, or what stands by itself, as text; the entries and bounds that it was made from."""

    text: str
    entries: Sequence[Visible]
    bounds: Bounds


class _Part(msgspec.Struct, frozen=True):
    """Steps that go into one request, as text, and the answers among them."""

    text: str
    answers: Sequence[AssistantMessage]


class Summariser:
    """Drives one compaction's requests to one model."""

    def __init__(
        self,
        client: ModelClient,
        context: SummaryContext,
        progress: Progress,
        patience: Patience | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._asker = SummaryCalls(client, progress, patience or Patience(), sleep=sleep)
        self._context = context
        self._window = context.budget.window
        constraints = clip_to_tokens(context.constraints, min(MAX_CONSTRAINTS, context.budget.window // 16))
        self._system = SystemMessage(text=summariser_system(context.prompts, constraints))

    @property
    def usage(self) -> Usage:
        """What the requests have cost so far."""
        return self._asker.usage

    async def summarise(self, plan: CompactionPlan) -> str:
        """Return the summary of what the plan replaces, within its budget, without file lists.

        Raises `SummaryError`; cancelling closes the connection and leaves nothing behind.
        """
        prefix = await self._summarise_turn(plan) if plan.turn_prefix else ""
        room = plan.allowance.summary - estimate_text(join_summaries("", prefix))
        history = plan.previous_summary
        if any(not isinstance(entry, DeveloperMessage) for entry in plan.history):
            prompts = self._context.prompts
            form = self._form(
                "summarising",
                prompts.update if history else prompts.first,
                prompts.update,
                limits=(room, plan.budget.max_summary, plan.replaced_tokens),
            )
            history = await self._fold(plan.history, form, history)
        return join_summaries(shorten(history, room), prefix) if prefix else history

    async def _summarise_turn(self, plan: CompactionPlan) -> str:
        """Return the notes on a split turn's first part.

        They are made first, because the notes on what came before have the room that these leave: asked for with that
        length, they lose nothing to a cut afterwards.
        """
        instructions = self._context.prompts.turn_prefix
        length = min(plan.allowance.turn_prefix, plan.allowance.summary // 2)
        limits = (length, plan.budget.max_turn_prefix, plan.replaced_tokens)
        form = self._form("summarising the present turn", instructions, instructions, limits=limits)
        return await self._fold(plan.turn_prefix, form, "")

    async def summarise_entries(self, entries: Sequence[Visible], instructions: str, length: int, replaced: int) -> str:
        """Return notes on `entries` of at most `length` estimated tokens, by instructions of their own.

        `replaced` is the estimate of what the notes will stand for. Raises `SummaryError`.
        """
        limits = (length, length, replaced)
        form = self._form("summarising what is left", instructions, instructions, limits=limits)
        return await self._fold(entries, form, "")

    def _form(self, stage: str, first: str, following: str, *, limits: tuple[int, int, int]) -> _Form:
        """Bound the output by the model's own limit and its window, never by the history's size (R-008).

        `limits` are the wished length, the output budget, and the size of what is replaced. The output is larger than
        the length, because some models reason within it.
        """
        length, output, replaced = limits
        facts, budget = self._context.facts, self._context.budget
        output = max(1, min(output, facts.max_output_tokens or output, budget.window // 4))
        return _Form(stage, first, following, min(length, int(output / self._context.calibration)), output, replaced)

    async def _fold(self, entries: Sequence[Visible], form: _Form, previous: str) -> str:
        """Summarise the entries in as few parts as fit, each one brought into the summary of those before it.

        No part divides a step: a call is never summarised without its result.
        """
        previous = shorten(previous, int(self._context.budget.window / self._context.calibration) // 4)
        steps = self._bounded_steps(entries, form, previous)
        total = sum(len(step.text) for step in steps)
        room = self._room(form, previous)
        shrunk = 0
        summary = previous
        while steps:
            part, used = _take_steps(steps, min(room, self._room(form, summary)))
            conversation = SEPARATOR.join(part)
            done = total - sum(len(step.text) for step in steps)
            stage = form.stage if not done and used == len(steps) else f"{form.stage} ({100 * done // total} %)"
            try:
                answers = [one for step in steps[:used] for one in step.entries if isinstance(one, AssistantMessage)]
                summary = await self._ask(_Part(conversation, answers), form, summary, is_first=not done, stage=stage)
            except ModelError as error:
                if not self._is_too_large(error, conversation) or shrunk == len(SHRINK_SHARES):
                    raise SummaryError(f"the summary request failed: {error}", error) from error
                self._window = min(self._window, error.limit or self._window)
                room = int(estimate_text(conversation) * SHRINK_SHARES[shrunk])
                shrunk += 1
                continue
            steps = steps[used:]
        return summary

    def _output(self, form: _Form) -> int:
        """Return a request's output limit within the window that the provider has named since."""
        return max(1, min(form.output, self._window // 4))

    def _is_too_large(self, error: ModelError, conversation: str) -> bool:
        """Say whether less in the request would help; an answer without a reason counts if it was large (R-020)."""
        if error.kind == "ambiguous":
            return (
                estimate_text(conversation) * self._context.calibration > AMBIGUOUS_SHARE * self._context.budget.window
            )
        return error.kind in _OVERFLOW

    def _room(self, form: _Form, previous: str) -> int:
        """Return the estimated tokens that a request has for conversation."""
        context = self._context
        usable = int((self._window - self._output(form)) / context.calibration * _MARGIN)
        texts = (previous, form.following, context.focus)
        taken = estimate_message(self._system) + sum(map(estimate_text, texts)) + 100
        return max(MIN_FREE // 4, usable - taken)

    def _bounded_steps(self, entries: Sequence[Visible], form: _Form, previous: str) -> list[_Step]:
        """Serialise as generously as a bounded number of parts allows; beyond that the oldest steps go, marked."""
        limit = MAX_PARTS * self._room(form, previous)
        groups = group_steps(entries)
        steps: list[_Step] = []
        for divisor in _TIGHTENING:
            bounds = BOUNDS.tightened(divisor)
            steps = [_Step(text, group, bounds) for group in groups if (text := serialize(group, bounds))]
            if sum(estimate_text(step.text) for step in steps) <= limit:
                return steps
        kept = len(steps)
        total = 0
        while kept and total < limit:
            kept -= 1
            total += estimate_text(steps[kept].text)
        return [_Step(f"[{kept} older steps are left out here]", (), BOUNDS), *steps[kept:]]

    async def _ask(self, part: _Part, form: _Form, previous: str, *, is_first: bool, stage: str) -> str:
        """Return an accepted summary of one part. Raises `SummaryError` after one retry that named the fault."""
        conversation = part.text
        instructions = with_length(form.first if is_first else form.following, form.length)
        prompt = assemble(conversation, instructions, previous_summary=previous, focus=self._context.focus)

        def request_with(text: str) -> ModelRequest:
            return ModelRequest(
                model=self._context.facts,
                messages=(self._system, UserMessage(parts=(TextPart(text=text),), origin="command")),
                max_output_tokens=self._output(form),
                thinking=False,
            )

        async def ask(feedback: str) -> AssistantMessage:
            return await self._asker.call(request_with(prompt + feedback), stage)

        # A part is judged by what of the conversation it was shown.
        covered = min(form.replaced, estimate_text(conversation) + estimate_text(previous))
        expected = expect(instructions, covered=covered, length=form.length, previous=without_names(previous))
        text = await accept_summary(ask, length=form.length, replaced=form.replaced, expected=expected)
        calibration = self._context.calibration
        taken = (estimate_message(self._system) + estimate_text(prompt)) * calibration
        notes = Notes(
            text=text,
            previous=previous,
            request=request_with(prompt),
            room=int(self._window * _MARGIN - taken),
            length=form.length,
            calibration=calibration,
            answers=part.answers,
        )
        return await check_notes(self._asker, notes, self._context.prompts.check)


def _take_steps(steps: Sequence[_Step], room: int) -> tuple[list[str], int]:
    """Return the texts of as many leading steps as fit `room` tokens, and how many that are; at least one."""
    first = steps[0]
    texts = [serialize_step(first.entries, room, first.bounds) or first.text, *(step.text for step in steps[1:])]
    return take_blocks(texts, room)
