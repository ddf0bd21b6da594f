"""The default strategy: one way after the other, until one of them holds (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from tenuto.compaction.environment import BoundContext, accept
from tenuto.compaction.errors import RungError
from tenuto.compaction.lending import at_home
from tenuto.compaction.plan import CompactionPlan
from tenuto.compaction.preparing import use_prepared
from tenuto.compaction.remote import compact_remotely, is_chosen
from tenuto.compaction.rungs import Rung, condense, hide_if_it_pays, plan_or_shorten, serialised_rungs
from tenuto.compaction.same_prefix import same_prefix_rungs
from tenuto.protocol.compaction import CompactionContext, CompactionOutcome

Rungs = Callable[[BoundContext], Awaitable[Sequence[Rung]]]


class LadderCompaction:
    """Take what is prepared, hide, let the provider compact if chosen, summarise cheaply, condense without a model."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the first outcome that holds. Raises `RungError` when nothing can make the context smaller."""
        return await at_home(ctx, _compact)


async def _compact(ctx: BoundContext) -> CompactionOutcome:
    prepared = use_prepared(ctx)
    if prepared is not None:
        return prepared  # it is paid for, and whatever else changed the view would make it useless
    if ctx.reason == "threshold":
        hidden = hide_if_it_pays(ctx)
        if hidden is not None:
            return hidden
    plan = plan_or_shorten(ctx)
    if isinstance(plan, CompactionOutcome):
        return plan
    return await climb(ctx, plan, (remote_rungs, same_prefix_rungs, serialised_rungs))


async def remote_rungs(ctx: BoundContext) -> list[Rung]:
    """Return rung 2 where the user chose it and it can be of use.

    It is not before another model takes over, which could not read it, nor after the provider refused a request as too
    long: its compaction would be one more.
    """
    if ctx.reason in {"overflow", "model_switch"}:
        return []
    return [compact_remotely] if is_chosen(ctx.environment.request) else []


async def climb(ctx: BoundContext, plan: CompactionPlan, groups: Sequence[Rungs]) -> CompactionOutcome:
    """Try the rungs of each group in turn; the digest is below all of them. Raises `RungError`."""
    notes: list[str] = []
    failure = ""
    for group in groups:
        for rung in await group(ctx):
            try:
                outcome = await rung(ctx, plan)
                if outcome is None:
                    continue
                accept(ctx, outcome)
            except RungError as error:
                failure = str(error)
                notes += [error.notice] if error.notice else []
            else:
                return msgspec.structs.replace(outcome, notes=(*notes, *outcome.notes))
    outcome = condense(ctx, failure)
    if failure:
        notes.append(f"No model summary could be used ({failure}); the older part was condensed without a model.")
    return msgspec.structs.replace(outcome, notes=(*notes, *outcome.notes))
