"""Writing a summary ahead of time, and using it when a compaction is due (DESIGN section 6, R-060)."""

from __future__ import annotations

from tenuto.compaction.environment import BoundContext, accept
from tenuto.compaction.errors import NothingLeftError, RungError
from tenuto.compaction.files import strip_file_lists
from tenuto.compaction.plan import NothingToCompact
from tenuto.compaction.prepared import PreparedSummary, still_holds
from tenuto.compaction.proposal import propose_summary
from tenuto.compaction.rungs import Rung, serialised_rungs
from tenuto.compaction.same_prefix import same_prefix_rungs
from tenuto.protocol.compaction import CompactionOutcome


async def prepared_rungs(ctx: BoundContext) -> list[Rung]:
    """Return the rung that uses the prepared summary, where there is one that still holds."""
    prepared = ctx.environment.prepared
    # With a focus the person wants another summary than the one that was written without it.
    if prepared is None or ctx.focus or not still_holds(prepared, ctx.environment.standing):
        return []
    return [_use]


async def _use(ctx: BoundContext, _plan: object) -> CompactionOutcome | None:
    environment, prepared = ctx.environment, ctx.environment.prepared
    if prepared is None:
        return None
    plan = environment.plan(manual=ctx.is_manual, first_kept=prepared.first_kept_index)
    if isinstance(plan, NothingToCompact):
        return None
    return propose_summary(plan, prepared.summary, environment.surroundings, environment.prompts, rung="prepared")


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
