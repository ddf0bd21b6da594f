"""Rung 3: the present model summarises in place (DESIGN section 6, seed 002).

The request is what the last step sent, and one user message behind it: the provider reads nearly all of it from its
prefix cache (R-058). What came since is in it only where it does not stay word for word behind the notes. An earlier
summary is in the view already: the form is always that of a whole conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile

import msgspec

from tenuto.compaction.images import images_of
from tenuto.compaction.measure.budget import SUMMARY_SHARE
from tenuto.compaction.measure.weight import MESSAGE_OVERHEAD, estimate_message
from tenuto.compaction.plan.entries import Visible
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.judge import expect
from tenuto.compaction.summary.prompts import with_length
from tenuto.compaction.summary.summarise import Notes, SummaryCalls, SummaryError, accept_summary, check_notes
from tenuto.compaction.summary.summary import without_names
from tenuto.compaction.ways.environment import BoundContext, SummaryModel
from tenuto.compaction.ways.rungs import Rung, propose_summary
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, ShellEntry
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, ToolResultMessage, UserMessage
from tenuto.protocol.model import ModelError, ModelRequest, ServerContext
from tenuto.protocol.part import TextPart, text_of
from tenuto.text.estimate import estimate_text

RUNG = "same prefix"
STAGE = "summarising"
FEEDBACK_ROOM = 100
"""Tokens that what was wrong with a first answer may add to the request."""
LEAST_NOTES, GROWTH = 1_000, 1.25
LEAST_SHARE, LEAST_SHARE_REASONING = 0.2, 0.5
"""How short the notes may be where the window has no room for those that were planned: in estimated tokens, by the
length of the notes that they bring up to date, and as a share of the planned length; a model that reasons does so in
the same room. Shorter ones would lose more than the cache saves."""
LEAST_LEFT_OUT = 0.005
"""Of the context: what is left out of the request if it is new and stays anyway."""
_QUOTED = 60
"""Characters of the kept tail's first words by which it is named."""


async def same_prefix_rungs(ctx: BoundContext) -> list[Rung]:
    """Return rung 3 where the prefix cache pays: it is warm, and the present model is the one that would summarise."""
    if not _is_possible(ctx):
        return []
    models = await ctx.environment.summarisers()
    return [partial(_summarise, models[0])] if _pays(ctx, models) else []


def _pays(ctx: BoundContext, models: Sequence[SummaryModel]) -> bool:
    return _is_possible(ctx) and bool(models) and models[0].model.facts.id == ctx.environment.request.model.id


def _is_possible(ctx: BoundContext) -> bool:
    """Say whether the cache helps. Images are not sent a second time for a text (R-052)."""
    environment = ctx.environment
    if not (ctx.cache.is_warm and environment.shares_prefix):
        return False
    return not any(images_of(message) for message in environment.request.messages)


def planned_tokens(ctx: BoundContext, plan: CompactionPlan, models: Sequence[SummaryModel]) -> int:
    """Return the size of the request that would be made, 0 where this way does not apply."""
    asked = _fit(models[0], ctx, plan) if _pays(ctx, models) else None
    if asked is None:
        return 0
    instruction = round(estimate_text(asked.instruction) * plan.size.calibration)
    return plan.size.tokens - plan.size.queued - asked.left_out + instruction


async def _summarise(model: SummaryModel, ctx: BoundContext, plan: CompactionPlan) -> CompactionOutcome | None:
    """Return the outcome, or `None` where the request does not fit the window. Raises `SummaryError`."""
    environment = ctx.environment
    asked = _fit(model, ctx, plan)
    if asked is None:
        return None
    asker = SummaryCalls(model.model.client, environment.progress, environment.patience)

    async def ask(feedback: str) -> AssistantMessage:
        try:
            return await asker.call(_with_instruction(asked.request, asked.instruction + feedback), STAGE)
        except ModelError as error:
            raise SummaryError(f"the summary request failed: {error}", error) from error

    try:
        expected = expect(
            environment.prompts.same_prefix,
            covered=plan.replaced_tokens,
            length=asked.length,
            previous=without_names(plan.previous_summary),
        )
        summary = await accept_summary(ask, length=asked.length, replaced=plan.replaced_tokens, expected=expected)
        notes = Notes(
            text=summary,
            previous=plan.previous_summary,
            request=_with_instruction(asked.request, asked.instruction),
            room=asked.room,
            length=asked.length,
            calibration=plan.size.calibration,
            answers=[one for one in (*plan.history, *plan.turn_prefix) if isinstance(one, AssistantMessage)],
        )
        summary = await check_notes(asker, notes, environment.prompts.check)
    finally:
        environment.spending.add(asker.usage)
    usage = environment.spending.usage
    return propose_summary(plan, summary, environment.session_data, environment.prompts, usage, rung=RUNG)


class _Asked(msgspec.Struct, frozen=True):
    """What the last step sent, what is said behind it, and how long the summary may be in estimated tokens.

    `left_out` is the counted tokens of what the next step would send in addition, `room` those of the window that the
    request leaves to notes and what is asked about them.
    """

    request: ModelRequest
    instruction: str
    length: int
    left_out: int
    room: int


def _fit(model: SummaryModel, ctx: BoundContext, plan: CompactionPlan) -> _Asked | None:
    """Return what to ask if the window has room for it and for a summary, a shorter one than planned if need be.

    After a request that the window cut off, only the provider's own number counts.
    """
    request, left_out = _without_new(ctx.environment.request, plan)
    size = plan.size
    is_observed = ctx.reason == "overflow"
    tokens = ctx.environment.observed if is_observed else size.tokens - size.queued
    if not tokens:
        return None
    tokens = max(0, tokens - left_out)
    planned = min(plan.allowance.summary, int(model.budget.planned_output / size.calibration))
    asked = MESSAGE_OVERHEAD + int(
        (estimate_text(instruct(ctx, plan, request, planned)) + FEEDBACK_ROOM) * size.calibration
    )
    # The step's own output limit may have been lowered for a queue that is not in this request.
    most = request.max_output_tokens
    if most is not None:
        most = max(most, int(planned * size.calibration))
    room = model.budget.room_behind(tokens + asked)
    if not is_observed:
        # What is free for the error of an estimate makes no notes shorter than usual, and the request none too long.
        usual = int(_usual_length(plan) * size.calibration)
        sure = model.budget.room_behind(tokens + asked, size.uncounted)
        room = max(sure, usual) if room >= usual else sure
    output = room if most is None else min(most, room)
    length = min(planned, int(output / size.calibration))
    if length < min(planned, _least_length(request, plan)):
        return None
    # What the server does to a context that has grown must not happen while the context is summarised.
    server = ServerContext(clear_over=request.server.clear_over, clear_at_least=request.server.clear_at_least)
    return _Asked(
        msgspec.structs.replace(request, max_output_tokens=most and output, server=server),
        instruct(ctx, plan, request, length),
        length,
        left_out,
        room,
    )


def _without_new(request: ModelRequest, plan: CompactionPlan) -> tuple[ModelRequest, int]:
    """Return the request without the last answer and its results, and their counted tokens.

    They are new to the provider's cache. The notes do without them where they stay behind the notes word for word; a
    short answer goes along all the same, because it says how things stand. So does one behind notes of the program:
    without it these would go behind the request for notes, and not where they were sent.
    """
    messages = request.messages
    place = max((at for at, one in enumerate(messages) if isinstance(one, AssistantMessage)), default=0)
    if not place or messages[place].seq < plan.cut:
        return request, 0
    before = takewhile(lambda one: not isinstance(one, AssistantMessage), reversed(messages[:place]))
    if any(isinstance(one, DeveloperMessage) for one in before):
        return request, 0
    left_out = round(sum(map(estimate_message, messages[place:])) * plan.size.calibration)
    if left_out < LEAST_LEFT_OUT * plan.size.tokens:
        return request, 0
    return msgspec.structs.replace(request, messages=messages[:place]), left_out


def _least_length(request: ModelRequest, plan: CompactionPlan) -> int:
    """Return how short notes may be asked for, in estimated tokens, before another way is better."""
    planned = _usual_length(plan)
    share = int(planned * (LEAST_SHARE_REASONING if request.model.thinking else LEAST_SHARE))
    update = int(estimate_text(plan.previous_summary) * GROWTH)
    return min(planned, max(LEAST_NOTES, share, update))


def _usual_length(plan: CompactionPlan) -> int:
    """Return the length that is planned without what a short tail lends: that makes no longer notes necessary."""
    return min(plan.allowance.summary, int(SUMMARY_SHARE * plan.allowance.free))


def _with_instruction(request: ModelRequest, text: str) -> ModelRequest:
    message = UserMessage(parts=(TextPart(text=text),), origin="command")
    return msgspec.structs.replace(request, messages=(*request.messages, message))


def instruct(ctx: BoundContext, plan: CompactionPlan, request: ModelRequest, length: int) -> str:
    """Return the message behind `request`: the prompt, what stays word for word, the length, the focus."""
    parts = [ctx.environment.prompts.same_prefix, describe_kept(plan, request)]
    instruction = with_length("\n\n".join(parts), length)
    return f"{instruction}\n\nAdditional focus: {ctx.focus}" if ctx.focus else instruction


def describe_kept(plan: CompactionPlan, request: ModelRequest) -> str:
    """Say which part of a request's messages stays word for word, so that it is not repeated in the notes."""
    shown = {message.seq for message in request.messages}
    kept = [entry for entry in plan.kept if entry.seq in shown]
    turn = "this turn's request" if plan.turn_message else ""
    if kept:
        also = f", like {turn}" if turn else ""
        return f"Cover nothing from {_name(kept[0])} on: it stays{also}."
    also = f", but {turn}" if turn else ""
    return f"Cover all of it{also}: nothing of it stays."


def _name(entry: Visible) -> str:
    """Return how the model, which has read a message, recognises it."""
    match entry:
        case UserMessage():
            return f"the user's message {_quote(text_of(entry.parts))}"
        case AssistantMessage():
            calls = "; ".join(f"{call.name} {_quote(call.arguments)}" for call in entry.tool_calls[:2])
            text = text_of(entry.parts).strip()
            return f"your answer {_quote(text)}" if text else f"your call of {calls}"
        case ShellEntry():
            return f"the command {_quote(entry.command)}, which the user ran"
        case BranchSummaryEntry():
            return f"the notes on another branch, {_quote(entry.summary)}"
        case DeveloperMessage():
            return f"the note {_quote(entry.text)}"
        case ExtensionEntry() | ToolResultMessage():
            return f"the message {_quote(text_of(entry.parts))}"


def _quote(text: str) -> str:
    flat = " ".join(text.split())
    return f"“{flat}”" if len(flat) <= _QUOTED else f"“{flat[:_QUOTED].rstrip()} …”"
