"""The single ways of making the view smaller that need the whole environment, one function each (DESIGN section 6).

Each returns an outcome, `None` where it does not apply, or raises `RungError`; none writes anything.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from tenuto.compaction.budget import MANUAL_KEEP_DIVISOR
from tenuto.compaction.environment import BoundContext, SummaryModel, accept
from tenuto.compaction.errors import NothingLeftError, RungError
from tenuto.compaction.hiding import hide_results, is_worth_a_cold_cache
from tenuto.compaction.plan import CompactionPlan, NothingToCompact
from tenuto.compaction.proposal import propose_digest, propose_summary
from tenuto.compaction.remote import plan_from_history
from tenuto.compaction.summarise import Summariser, SummaryContext
from tenuto.compaction.summary_request import SummaryError
from tenuto.compaction.validate import find_flaw, weigh
from tenuto.protocol.compaction import CompactionOutcome

KEEP_SHARES = (1, 2, 8)
"""What the digest's tail is divided by, one attempt after the other: keep, half, next to nothing."""


class Rung(Protocol):
    """One way of summarising what a plan covers."""

    async def __call__(self, ctx: BoundContext, plan: CompactionPlan, /) -> CompactionOutcome | None:
        """Return the outcome, or `None` where this way does not apply. Raises `RungError`."""
        ...


def hide(ctx: BoundContext) -> CompactionOutcome | None:
    """Return the outcome that hides old results (rung 1), `None` when there is nothing to hide."""
    edits = hide_results(ctx.environment.standing.view)
    return CompactionOutcome(edits=edits, rung="hide") if edits else None


def hide_if_it_pays(ctx: BoundContext, limit: int | None = None) -> CompactionOutcome | None:
    """Return the same only if it brings the context to its target and is worth what a changed prefix costs.

    `limit` is tokens, `None` for the target.
    """
    outcome = hide(ctx)
    if outcome is None:
        return None
    standing = ctx.environment.standing
    proposal = weigh(outcome, standing)
    pays = not ctx.cache.is_warm or is_worth_a_cold_cache(proposal.gain, standing.budget.window)
    limit = standing.budget.target if limit is None else limit
    return outcome if pays and proposal.tokens_after <= limit else None


async def serialised_rungs(ctx: BoundContext) -> list[Rung]:
    """Return rung 4 once for every model that may write the summary, in the order to try them."""
    return [partial(_summarise, model) for model in await ctx.environment.summarisers()]


async def _summarise(model: SummaryModel, ctx: BoundContext, plan: CompactionPlan) -> CompactionOutcome | None:
    """Return the outcome, `None` for a model that could not be reached a moment ago. Raises `SummaryError`."""
    environment = ctx.environment
    if model.model.facts.id in environment.patience.given_up:
        return None
    context = SummaryContext(
        facts=model.model.facts,
        budget=model.budget,
        prompts=environment.prompts,
        focus=ctx.focus,
        constraints=environment.constraints,
        calibration=plan.size.calibration,
    )
    plan = plan_from_history(environment, plan)
    summariser = Summariser(model.model.client, context, environment.progress, environment.patience)
    try:
        summary = await summariser.summarise(plan)
    except SummaryError as error:
        if model.model.facts.id != environment.request.model.id:
            error.notice = f"{model.model.facts.id} could not write the summary: {error}."
        raise
    finally:
        environment.spending.add(summariser.usage)
    return propose_summary(plan, summary, environment.surroundings, environment.prompts, environment.spending.usage)


def condense(ctx: BoundContext, reason: str = "") -> CompactionOutcome:
    """Return the digest that needs no model (rung 7, R-003), with as much of the tail as fits.

    `reason` is why no other way could be used. Raises `RungError` when not even this makes the context smaller.
    """
    environment = ctx.environment
    standing = environment.standing
    usual = standing.budget.keep_recent // (MANUAL_KEEP_DIVISOR if ctx.is_manual else 1)
    keep = environment.keep_tokens or usual
    best: CompactionOutcome | None = None
    for divisor in KEEP_SHARES:
        plan = environment.plan(manual=ctx.is_manual, keep_tokens=keep // divisor)
        if isinstance(plan, NothingToCompact):
            reason = plan.reason
            continue
        usage = environment.spending.usage
        plan = plan_from_history(environment, plan)
        outcome = propose_digest(plan, environment.surroundings, environment.prompts, usage)
        flaw = find_flaw(weigh(outcome, standing), standing)
        if flaw:
            reason = flaw
            continue
        best = outcome
        try:
            accept(ctx, outcome)
        except RungError:
            continue
        break
    if best is None:
        raise RungError(f"the conversation could not be made smaller: {reason}")
    return best


def plan_or_shorten(ctx: BoundContext) -> CompactionPlan | CompactionOutcome:
    """Return the plan, or where there is nothing to summarise the edits that shorten huge results instead.

    Raises `NothingLeftError` when there is neither.
    """
    plan = ctx.environment.plan(manual=ctx.is_manual)
    if not isinstance(plan, NothingToCompact):
        return plan
    if not plan.edits:
        raise NothingLeftError(plan.reason)
    note = f"Shortened {len(plan.edits)} large results in the model's view."
    return CompactionOutcome(edits=plan.edits, rung="truncate", notes=(note,))
