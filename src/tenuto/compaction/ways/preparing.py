"""Writing a summary ahead of time, and using it when a compaction is due (DESIGN section 6, R-060)."""

from __future__ import annotations

from tenuto.compaction.data.files import strip_file_lists
from tenuto.compaction.errors import NothingLeftError, RungError
from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.ways.environment import BoundContext, PreparedSummary, accept, still_holds
from tenuto.compaction.ways.rungs import propose_summary, serialised_rungs
from tenuto.compaction.ways.same_prefix import same_prefix_rungs
from tenuto.compaction.ways.validate import weigh
from tenuto.protocol.compaction import CompactionOutcome


def use_prepared(ctx: BoundContext) -> CompactionOutcome | None:
    """Return the outcome of the prepared summary, `None` where there is none that holds and makes enough room.

    With a focus another summary is wanted than the one that was written without it.
    """
    environment, prepared = ctx.environment, ctx.environment.prepared
    if prepared is None or ctx.focus or not still_holds(prepared, environment.standing):
        return None
    plan = environment.plan(manual=ctx.is_manual, first_kept=prepared.first_kept_index)
    if isinstance(plan, NothingToCompact):
        return None
    outcome = propose_summary(plan, prepared.summary, environment.surroundings, environment.prompts, rung="prepared")
    budget = environment.standing.budget
    if weigh(outcome, environment.standing).tokens_after > (budget.target + budget.trigger) // 2:
        return None  # too much was said since: the next compaction would be due at once
    try:
        accept(ctx, outcome)
    except RungError:
        return None
    return outcome


async def prepare(ctx: BoundContext) -> PreparedSummary:
    """Return a summary of what a compaction would replace now. Nothing is written. Raises `RungError`."""
    standing = ctx.environment.standing
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
            covered=standing.path[-1].seq,
            model_id=standing.model_id,
        )
    raise RungError(failure)
