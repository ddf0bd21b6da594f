"""Asking a model for a summary: rung 4 of the ladder (DESIGN sections 5 and 6).

One request after the other, without tools, each within the summariser's window: a conversation that is larger is
folded, part by part, with the update form. A refused request is made again only with less in it (R-002). Writes
nothing; what was spent is in `usage` even when the work is cancelled or fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import cast

import msgspec

from tenuto.compaction.budget import MIN_FREE, Budget
from tenuto.compaction.entries import Visible
from tenuto.compaction.environment import Progress
from tenuto.compaction.errors import RungError
from tenuto.compaction.meter import estimate_message
from tenuto.compaction.plan import CompactionPlan
from tenuto.compaction.prompts import Prompts, assemble, summariser_system, with_length
from tenuto.compaction.serialize import BOUNDS, SEPARATOR, serialize_blocks, take_blocks
from tenuto.compaction.summary import find_fault, is_too_long, join_summaries, shorten, text_of_summary
from tenuto.compaction.view import clip_to_tokens
from tenuto.protocol.message import AssistantMessage, SystemMessage, UserMessage
from tenuto.protocol.model import RETRYABLE, Finished, ModelClient, ModelError, ModelFacts, ModelRequest, TextDelta
from tenuto.protocol.part import TextPart
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import estimate_text

SHRINK_SHARES = (0.7, 0.5, 0.35)
"""Shares of a refused request that are tried next (rung 5)."""
MAX_PARTS = 12
MAX_RETRIES = 2
MAX_WAIT = 30.0
"""Seconds that one summary waits for an overloaded provider, all retries together."""
MAX_CONSTRAINTS = 4_000
_MARGIN = 0.95
_TIGHTENING = (1, 2, 4, 8)
_OVERFLOW = frozenset({"overflow", "too_many_bytes", "request_too_large_for_rate"})
AMBIGUOUS_SHARE = 0.8
"""A refusal without a reason is taken for an overflow from this share of the window on."""


class SummaryError(RungError):
    """No usable summary came; `str(error)` says why in one line, `cause` is the provider's error if there was one."""

    def __init__(self, reason: str, cause: ModelError | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class SummaryContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who summarises and how. `budget` is the summariser's own; `calibration` real / estimated tokens of that model.

    `constraints` is the text of the instruction files; `focus` what the person asked to stress.
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


class Summariser:
    """Drives one compaction's requests. `usage` is what they have cost so far."""

    def __init__(
        self,
        client: ModelClient,
        context: SummaryContext,
        progress: Progress,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.usage = Usage()
        self._client = client
        self._context = context
        self._progress = progress
        self._sleep = sleep
        self._waited = 0.0
        self._window = context.budget.window
        constraints = clip_to_tokens(context.constraints, min(MAX_CONSTRAINTS, context.budget.window // 16))
        self._system = SystemMessage(text=summariser_system(context.prompts, constraints))

    async def summarise(self, plan: CompactionPlan) -> str:
        """Return the summary of what the plan replaces, within its budget, without file lists.

        Raises `SummaryError`; cancelling closes the connection and leaves nothing behind.
        """
        prompts = self._context.prompts
        history = plan.previous_summary
        if plan.history:
            form = self._form(
                "summarising",
                prompts.update if history else prompts.first,
                prompts.update,
                limits=(plan.allowance.summary, plan.budget.max_summary, plan.replaced_tokens),
            )
            history = await self._fold(plan.history, form, history)
        prefix = ""
        if plan.turn_prefix:
            form = self._form(
                "summarising the present turn",
                prompts.turn_prefix,
                prompts.turn_prefix,
                limits=(plan.allowance.turn_prefix, plan.budget.max_turn_prefix, plan.replaced_tokens),
            )
            prefix = await self._fold(plan.turn_prefix, form, "")
            history = shorten(history, plan.allowance.summary - plan.allowance.turn_prefix)
        return join_summaries(history, prefix)

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
        """Summarise the entries in as few parts as fit, each one brought into the summary of those before it."""
        previous = shorten(previous, int(self._context.budget.window / self._context.calibration) // 4)
        blocks = self._bounded_blocks(entries, form, previous)
        total = sum(map(len, blocks))
        room = self._room(form, previous)
        shrunk = 0
        summary = previous
        while blocks:
            part, used = take_blocks(blocks, min(room, self._room(form, summary)))
            conversation = SEPARATOR.join(part)
            done = total - sum(map(len, blocks))
            stage = form.stage if not done and used == len(blocks) else f"{form.stage} ({100 * done // total} %)"
            try:
                summary = await self._ask(conversation, form, summary, is_first=not done, stage=stage)
            except ModelError as error:
                if not self._is_too_large(error, conversation) or shrunk == len(SHRINK_SHARES):
                    raise SummaryError(f"the summary request failed: {error}", error) from error
                self._window = min(self._window, error.limit or self._window)
                room = int(estimate_text(conversation) * SHRINK_SHARES[shrunk])
                shrunk += 1
                continue
            blocks = blocks[used:]
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

    def _bounded_blocks(self, entries: Sequence[Visible], form: _Form, previous: str) -> list[str]:
        """Serialise as generously as a bounded number of parts allows; beyond that the oldest blocks go, marked."""
        limit = MAX_PARTS * self._room(form, previous)
        blocks: list[str] = []
        for divisor in _TIGHTENING:
            blocks = serialize_blocks(entries, BOUNDS.tightened(divisor))
            if sum(map(estimate_text, blocks)) <= limit:
                return blocks
        kept = len(blocks)
        total = 0
        while kept and total < limit:
            kept -= 1
            total += estimate_text(blocks[kept])
        return [f"[{kept} older entries are left out here]", *blocks[kept:]]

    async def _ask(self, conversation: str, form: _Form, previous: str, *, is_first: bool, stage: str) -> str:
        """Return an accepted summary of one part. Raises `SummaryError` after one retry that named the fault."""
        instructions = with_length(form.first if is_first else form.following, form.length)
        prompt = assemble(conversation, instructions, previous_summary=previous, focus=self._context.focus)
        too_long = ""
        fault = ""
        for _attempt in range(2):
            retry = f"\n\nA first attempt could not be used: {fault}." if fault else ""
            answer = await self._call(prompt + retry, self._output(form), stage)
            fault = find_fault(answer, form.replaced)
            text = "" if fault else text_of_summary(answer)
            if text and not is_too_long(text, form.length):
                return text
            if text:
                too_long = text
                fault = f"it was about {estimate_text(text)} tokens long, and {form.length} is the most"
        if too_long:
            return shorten(too_long, form.length)
        raise SummaryError(f"the summary could not be used: {fault}")

    async def _call(self, prompt: str, output: int, stage: str) -> AssistantMessage:
        """Make one request, with at most two retries of passing failures. Raises `ModelError`."""
        request = ModelRequest(
            model=self._context.facts,
            messages=(self._system, UserMessage(parts=(TextPart(text=prompt),), origin="command")),
            max_output_tokens=output,
            thinking=False,
        )
        failures = 0
        while True:
            self._progress(stage, 0)
            try:
                return await self._stream(request, stage)
            except ModelError as error:
                if error.kind == "output_budget" and request.max_output_tokens > 2 * MIN_FREE // 4:
                    request = msgspec.structs.replace(request, max_output_tokens=_lower(request, error))
                    continue
                failures += 1
                wait = error.retry_after if error.retry_after is not None else 2.0**failures
                if error.kind not in RETRYABLE or failures > MAX_RETRIES or self._waited + wait > MAX_WAIT:
                    raise
                self._waited += wait
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
                    self._progress(stage, characters // 4)
                elif isinstance(part, Finished):
                    if part.message.usage is not None:
                        self.usage += part.message.usage
                    return part.message
        raise ModelError("broken_stream", "the stream ended before the summary was complete")


def _lower(request: ModelRequest, error: ModelError) -> int:
    """Return the output limit that the provider named, or half of the refused one (R-021)."""
    if error.limit is not None and 0 < error.limit < request.max_output_tokens:
        return error.limit
    return request.max_output_tokens // 2
