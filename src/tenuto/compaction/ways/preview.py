"""What a compaction would do, as data, and what of a proposal a user may change, and a summary written ahead of time.

Pure but for the summary itself (DESIGN section 6, R-060).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenuto.compaction.data.files import strip_file_lists
from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact
from tenuto.compaction.summary.prompts import assemble, summariser_system
from tenuto.compaction.summary.serialize import serialize
from tenuto.compaction.ways.environment import BoundContext, PreparedSummary, SummaryModel, accept, still_holds
from tenuto.compaction.ways.remote import is_chosen
from tenuto.compaction.ways.rungs import hide_if_it_pays, propose_summary, serialised_rungs
from tenuto.compaction.ways.same_prefix import RUNG as SAME_PREFIX
from tenuto.compaction.ways.same_prefix import planned_tokens, same_prefix_rungs
from tenuto.compaction.ways.validate import evaluate
from tenuto.protocol.compaction import CompactionOutcome, NothingLeftError, RungError, StrategyError
from tenuto.protocol.message import Message, SystemMessage
from tenuto.protocol.operation import CompactionReason
from tenuto.text.estimate import estimate_text


def use_prepared(ctx: BoundContext) -> CompactionOutcome | None:
    """Return the outcome of the prepared summary, `None` where there is none that holds and makes enough room.

    With a focus another summary is wanted than the one that was written without it.
    """
    environment, prepared = ctx.environment, ctx.environment.prepared
    if prepared is None or ctx.focus or not still_holds(prepared, environment.current):
        return None
    plan = environment.plan(manual=ctx.is_manual, first_kept=prepared.first_kept_index)
    if isinstance(plan, NothingToCompact):
        return None
    outcome = propose_summary(plan, prepared.summary, environment.session_data, environment.prompts, rung="prepared")
    budget = environment.current.budget
    if evaluate(outcome, environment.current).tokens_after > (budget.target + budget.trigger) // 2:
        return None  # too much was said since: the next compaction would be due at once
    try:
        accept(ctx, outcome)
    except RungError:
        return None
    return outcome


async def prepare(ctx: BoundContext) -> PreparedSummary:
    """Return a summary of what a compaction would replace now. Nothing is written. Raises `RungError`."""
    current = ctx.environment.current
    plan = ctx.environment.plan()
    if isinstance(plan, NothingToCompact):
        raise NothingLeftError(plan.reason)
    failure = "no model can write a summary"
    for rung in (*await same_prefix_rungs(ctx), *await serialised_rungs(ctx)):
        try:
            outcome = await rung(ctx, plan)
            if outcome is None:
                continue
            accept(ctx, outcome)
        except RungError as error:
            failure = str(error)
            continue
        return PreparedSummary(
            summary=strip_file_lists(outcome.summary),
            first_kept_index=outcome.first_kept_index,
            covered=current.path[-1].seq,
            model_id=current.model_id,
        )
    raise RungError(failure)


class RungRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One way of making the view smaller, in the order in which they are tried.

    `tokens` is the estimated size of its whole request (0: it needs none), `parts` in how many requests that is made.
    """

    rung: str
    tokens: int = 0
    parts: int = 0
    model: str = ""


class PlanDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction would do now. Sizes are tokens; those of parts are estimates.

    `cut` is the seq that stays word for word with everything after it, `turn_start` the seq of the turn that it falls
    into (0: none). With `nothing`, the one line why nothing would be summarised, all of that is 0. `strategy` names a
    strategy that is not the built-in one: then `requests` is what the built-in one would do instead of it.
    """

    reason: CompactionReason
    rung: str
    requests: tuple[RungRequest, ...]
    tokens_before: int
    window: int
    trigger: int
    target: int
    nothing: str = ""
    strategy: str = ""
    cut: int = 0
    is_split_turn: bool = False
    turn_start: int = 0
    entries_summarised: int = 0
    entries_kept: int = 0
    tokens_summarised: int = 0
    tokens_kept: int = 0
    edited_results: int = 0
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


def describe_plan(ctx: BoundContext, summarisers: Sequence[SummaryModel] = (), strategy: str = "") -> PlanDescription:
    """Return what a compaction of this context would do; `summarisers` are the models that would be asked."""
    current = ctx.environment.current
    plan = ctx.environment.plan(manual=ctx.is_manual)
    requests = _requests(ctx, plan, summarisers)
    frame = PlanDescription(
        reason=ctx.reason,
        rung=strategy or (requests[0].rung if requests else ""),
        requests=requests,
        tokens_before=current.size.tokens,
        window=current.budget.window,
        trigger=current.budget.trigger,
        target=current.budget.target,
        strategy=strategy,
    )
    if isinstance(plan, NothingToCompact):
        return msgspec.structs.replace(frame, nothing=plan.reason, edited_results=len(plan.edits))
    details = plan.file_operations.details()
    return msgspec.structs.replace(
        frame,
        cut=plan.cut,
        is_split_turn=plan.is_split_turn,
        turn_start=plan.turn_start,
        entries_summarised=len(plan.history) + len(plan.turn_prefix),
        entries_kept=len(plan.kept),
        tokens_summarised=plan.replaced_tokens,
        tokens_kept=plan.kept_tokens,
        edited_results=len(plan.edits),
        read_files=details.read_files,
        modified_files=details.modified_files,
    )


def _requests(
    ctx: BoundContext, plan: CompactionPlan | NothingToCompact, summarisers: Sequence[SummaryModel]
) -> tuple[RungRequest, ...]:
    """Return the ways that would be tried, in order."""
    requests: list[RungRequest] = []
    if use_prepared(ctx) is not None:
        requests.append(RungRequest(rung="prepared"))
    if ctx.reason == "threshold" and hide_if_it_pays(ctx) is not None:
        requests.append(RungRequest(rung="hide"))
    if isinstance(plan, NothingToCompact):
        return (*requests, RungRequest(rung="truncate")) if plan.edits else tuple(requests)
    if ctx.reason not in {"overflow", "model_switch"} and is_chosen(ctx.environment.request):
        requests.append(RungRequest(rung="remote", tokens=plan.tokens_before, parts=1, model=ctx.llm.facts.id))
    shared = planned_tokens(ctx, plan, summarisers)
    if shared:
        requests.append(RungRequest(rung=SAME_PREFIX, tokens=shared, parts=1, model=ctx.llm.facts.id))
    requests += [_serialised(ctx, plan, model) for model in summarisers]
    return (*requests, RungRequest(rung="digest"))


def _serialised(ctx: BoundContext, plan: CompactionPlan, model: SummaryModel) -> RungRequest:
    """Return the size of the request that shows the older part as text, and in how many parts it would be made."""
    prompts, focus = ctx.environment.prompts, ctx.focus
    texts = [summariser_system(prompts, ctx.environment.constraints)]
    previous = plan.previous_summary
    if plan.history:
        instructions = prompts.update if previous else prompts.first
        texts.append(assemble(serialize(plan.history), instructions, previous_summary=previous, focus=focus))
    if plan.turn_prefix:
        texts.append(assemble(serialize(plan.turn_prefix), prompts.turn_prefix, focus=focus))
    tokens = round(sum(map(estimate_text, texts)) * plan.size.calibration)
    usable = max(1, model.budget.window - min(plan.budget.max_summary, model.budget.window // 4))
    parts = max(len(texts) - 1, -(-tokens // usable))
    return RungRequest(rung="serialised", tokens=tokens, parts=parts, model=model.model.facts.id)


def editable_summary(outcome: CompactionOutcome) -> str:
    """Return the part of a proposal's summary that can be changed: without its file lists, which come from data.

    Empty where nothing can be: the proposal has no summary, or the view does not show it as it is.
    """
    return strip_file_lists(outcome.summary) if _holder(outcome) is not None else ""


def with_summary(outcome: CompactionOutcome, text: str) -> CompactionOutcome:
    """Return the proposal with another summary; its file lists stay. Raises `StrategyError` where that cannot be."""
    place = _holder(outcome)
    bare = strip_file_lists(text)
    if place is None:
        raise StrategyError("this proposal has no summary that could be changed")
    if not bare:
        raise StrategyError("the summary is empty")
    old = strip_file_lists(outcome.summary)
    if bare == old:
        return outcome
    at = outcome.summary.find(old)
    summary = bare + (outcome.summary[at + len(old) :] if at >= 0 else "")
    holder = outcome.replacement[place]
    assert isinstance(holder, SystemMessage)
    changed = msgspec.structs.replace(holder, text=holder.text.replace(outcome.summary, summary, 1))
    replacement: tuple[Message, ...] = (*outcome.replacement[:place], changed, *outcome.replacement[place + 1 :])
    return msgspec.structs.replace(outcome, summary=summary, replacement=replacement)


def _holder(outcome: CompactionOutcome) -> int | None:
    """Return the place of the message that shows the summary word for word, `None` where none does."""
    if not strip_file_lists(outcome.summary) or outcome.provider_items is not None:
        return None
    for place, message in enumerate(outcome.replacement):
        if isinstance(message, SystemMessage) and outcome.summary in message.text:
            return place
    return None
