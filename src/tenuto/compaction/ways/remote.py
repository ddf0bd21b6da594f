"""Rung 2: the provider's own compaction (DESIGN section 6, seed 002).

The part of the view before the cut is sent as it always was, with the provider's way of asking for a compaction; what
comes back stands in the view in its place and is sent back byte for byte. The log keeps every entry, so another model
goes on from the history itself: it never sees the items, and this compaction is passed over (`projection.is_usable`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from tenuto.compaction.data.files import format_file_lists, strip_file_lists, with_file_lists
from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.plan.entries import active_compaction
from tenuto.compaction.plan.plan import CompactionPlan, plan_compaction
from tenuto.compaction.summary.digest import MARK, digest, list_room
from tenuto.compaction.summary.prompts import with_length
from tenuto.compaction.summary.summarise import MAX_RETRIES, MAX_WAIT
from tenuto.compaction.summary.summary import shorten
from tenuto.compaction.summary.view import build_remote_replacement, user_messages_block
from tenuto.compaction.ways.environment import BoundContext, CompactionEnvironment, accept
from tenuto.protocol.compaction import CompactionOutcome, RungError
from tenuto.protocol.message import AssistantMessage, ProviderItems, SystemMessage
from tenuto.protocol.model import (
    RETRYABLE,
    CompactedItems,
    ModelError,
    ModelRequest,
    lowered_output,
)
from tenuto.protocol.part import OpaquePart
from tenuto.protocol.usage import Usage
from tenuto.session.view.projection import project
from tenuto.text.estimate import estimate_text
from tenuto.text.writable import tagged

RUNG = "remote"
SEALED = (
    "(The model reads the provider's own compaction, which cannot be shown. What follows is told from the session's "
    "data.)"
)
MIN_ANSWER = 1_024
"""Tokens: with less room for it no compaction is worth asking for."""
EARLIER_HINT = "Notes on what happened even earlier stand in the system prompt; bring over what of them still matters."


def is_chosen(request: ModelRequest) -> bool:
    """Say whether the user lets the provider compact this conversation."""
    return request.server.compaction in {"request", "endpoint"}


async def compact_remotely(
    ctx: BoundContext, plan: CompactionPlan, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> CompactionOutcome | None:
    """Return what the provider made of the part before the cut, `None` where that was not chosen.

    Raises `RungError` with a notice when nothing usable came: the user chose this way and learns why it was left.
    """
    environment = ctx.environment
    request = environment.request
    compactor = environment.compactor
    if not is_chosen(request) or (compactor is not None and not compactor.ways):
        return None  # the server has refused it before, and that was told
    try:
        compacted = await _ask(ctx, plan, sleep)
        outcome = remote_outcome(environment, plan, compacted)
        accept(ctx, outcome)
    except (ModelError, RungError) as error:
        reason = f"the compaction by {request.model.provider} itself could not be used: {error}"
        raise RungError(reason, notice=f"{reason[0].upper()}{reason[1:]}. It was done here instead.") from error
    return outcome


def choose_remote(ctx: BoundContext) -> BoundContext:
    """Return the context of a compaction for which this way is chosen where the settings say nothing of it."""
    request = ctx.environment.request
    if request.server.compaction:
        return ctx
    chosen = msgspec.structs.replace(request, server=msgspec.structs.replace(request.server, compaction="request"))
    return replace(ctx, environment=replace(ctx.environment, request=chosen))


async def _ask(ctx: BoundContext, plan: CompactionPlan, sleep: Callable[[float], Awaitable[None]]) -> CompactedItems:
    """Ask the provider, with at most two retries of passing failures. Raises `ModelError` or `RungError`."""
    environment = ctx.environment
    request, compactor = environment.request, environment.compactor
    if compactor is None or request.server.compaction not in compactor.ways:
        raise RungError(f"{request.model.id} has no remote_compaction “{request.server.compaction}”")
    asked = request_before_cut(environment, plan)
    instructions = with_length(environment.prompts.same_prefix, plan.allowance.summary)
    if earlier_summary(environment):
        instructions = f"{instructions} {EARLIER_HINT}"
    failures, patience = 0, environment.patience
    stage = f"compacting at {request.model.provider}"
    while True:
        environment.progress(stage, 0)
        try:
            compacted = await compactor.compact(asked, instructions=instructions, focus=ctx.focus)
        except ModelError as error:
            changed = _without_fault(asked, error)
            if changed is not None:
                asked = changed
                continue
            failures += 1
            wait = error.retry_after if error.retry_after is not None else 2.0**failures
            if error.kind not in RETRYABLE or failures > MAX_RETRIES or patience.waited + wait > MAX_WAIT:
                raise
            patience.waited += wait
            environment.progress(f"{stage}, waiting to try again: {error}", 0)
            await sleep(wait)
            continue
        if compacted.usage is not None:
            environment.spending.add(compacted.usage)
        return compacted


def _without_fault(request: ModelRequest, error: ModelError) -> ModelRequest | None:
    """Return the request without what was refused in it, where that can be left out or lowered; else `None`."""
    if error.kind == "bad_thinking" and request.thinking:
        return msgspec.structs.replace(request, thinking=False)
    output = lowered_output(request, error)
    if error.kind == "output_budget" and output >= MIN_ANSWER:
        return msgspec.structs.replace(request, max_output_tokens=output)
    return None


def request_before_cut(environment: CompactionEnvironment, plan: CompactionPlan) -> ModelRequest:
    """Return the next step's request without the kept tail: the same bytes up to there, so the prefix cache is read."""
    request, current = environment.request, environment.current
    messages = request.messages
    start = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    end = next((place for place in range(start, len(messages)) if messages[place].seq >= plan.cut), len(messages))
    rest = current.size.tokens - round(plan.kept_tokens * plan.size.calibration)
    return msgspec.structs.replace(
        request, messages=messages[:end], max_output_tokens=current.budget.output_for(max(0, rest))
    )


def remote_outcome(
    environment: CompactionEnvironment, plan: CompactionPlan, compacted: CompactedItems
) -> CompactionOutcome:
    """Return the outcome of a provider's compaction of everything before the plan's cut.

    What the provider may not carry over stands beside its items as always: pins, todo list, jobs, file lists, the
    user's words, and the last summary made here. A summary that cannot be read is told from data (rung 7).
    """
    facts, session_data = environment.request.model, environment.session_data
    room = list_room(plan, session_data)
    earlier = shorten(strip_file_lists(earlier_summary(environment)), plan.allowance.summary)
    answer = AssistantMessage(
        parts=tuple(OpaquePart(provider=facts.provider, block=item) for item in compacted.items), model=facts.id
    )
    taken = plan.kept_tokens + estimate_message(answer) + estimate_text(earlier) + plan.allowance.extras
    words = 0 if compacted.has_user_messages else plan.allowance.free - taken
    beside = (
        tagged("earlier-summary", earlier) if earlier else "",
        format_file_lists(plan.file_operations, room),
        user_messages_block(plan, words),
    )
    text = "\n\n---\n\n".join(part for part in (earlier, compacted.text.strip()) if part)
    if compacted.text:
        summary = with_file_lists(text, plan.file_operations, room)
    else:
        summary = digest(plan, session_data).replace(MARK, SEALED, 1)
    spent = environment.spending.usage
    items = compacted.items[-1:] if compacted.has_user_messages else compacted.items
    return CompactionOutcome(
        summary=summary,
        replacement=build_remote_replacement(plan, answer, beside, session_data, environment.prompts),
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=plan.file_operations.details(),
        usage=spent if spent != Usage() else None,
        rung=RUNG,
        provider_items=ProviderItems(provider=facts.provider, model=facts.name, items=items),
    )


def plan_from_history(environment: CompactionEnvironment, plan: CompactionPlan) -> CompactionPlan:
    """Return the plan with what an unreadable compaction covers as history again, for a summary that is made here.

    Its own summary is told from data alone; the log has what it was made from.
    """
    previous, current = plan.previous, environment.current
    if previous is None or previous.provider_items is None or not previous.summary.startswith(SEALED):
        return plan
    whole = plan_compaction(
        current.path,
        project(current.path),
        size=current.size,
        budget=current.budget,
        meter=current.meter,
        model_id="",
        tracker=environment.tracker,
        directory=environment.directory,
        first_kept=plan.cut,
    )
    if not isinstance(whole, CompactionPlan):
        return plan
    return msgspec.structs.replace(
        plan,
        history=whole.history,
        turn_prefix=whole.turn_prefix,
        replaced_tokens=whole.replaced_tokens,
        previous=whole.previous,
        previous_summary=whole.previous_summary,
        file_operations=whole.file_operations,
    )


def earlier_summary(environment: CompactionEnvironment) -> str:
    """Return the newest summary on the path that was made here, which a provider does not count as conversation."""
    found = active_compaction(environment.current.path, "")
    return found.summary if found is not None else ""
