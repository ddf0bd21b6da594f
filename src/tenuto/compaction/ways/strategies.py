"""The built-in strategies besides the ladder (seed 004). Each does one thing and is of use as a part of others."""

from __future__ import annotations

from tenuto.compaction.errors import NothingLeftError
from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.ways.environment import BoundContext
from tenuto.compaction.ways.ladder import LadderCompaction, at_home, climb, remote_rungs
from tenuto.compaction.ways.remote import choose_remote
from tenuto.compaction.ways.rungs import condense, hide, plan_or_shorten, serialised_rungs
from tenuto.protocol.compaction import CompactionContext, CompactionOutcome


class LLMSummaryCompaction:
    """A model's summary of the older part; the digest where no model can write one."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        return await at_home(ctx, _summarise)


async def _summarise(ctx: BoundContext) -> CompactionOutcome:
    plan = plan_or_shorten(ctx)
    return plan if isinstance(plan, CompactionOutcome) else await climb(ctx, plan, (serialised_rungs,))


class ToolResultHidingCompaction:
    """Old tool results become placeholders; `None` when none is left to hide."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome | None:
        """Return the outcome, or `None`."""
        return await at_home(ctx, _hide)


async def _hide(ctx: BoundContext) -> CompactionOutcome | None:
    return hide(ctx)


class HidingThenSummaryCompaction:
    """Hide old tool results; when there are none left, summarise."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        hidden = await ToolResultHidingCompaction().compact(ctx)
        return hidden if hidden is not None else await LLMSummaryCompaction().compact(ctx)


class RemoteCompaction:
    """The provider's own compaction, asked for within a normal request unless the model's settings say otherwise."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome; a summary made here where the provider has none. Raises `RungError`."""
        return await at_home(ctx, _compact_remotely)


async def _compact_remotely(ctx: BoundContext) -> CompactionOutcome:
    plan = plan_or_shorten(ctx)
    if isinstance(plan, CompactionOutcome):
        return plan
    return await climb(choose_remote(ctx), plan, (remote_rungs, serialised_rungs))


class DigestCompaction:
    """The older part condensed from the session's data, without any model."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        return await at_home(ctx, _condense)


async def _condense(ctx: BoundContext) -> CompactionOutcome:
    plan = ctx.environment.plan(manual=ctx.is_manual)
    if isinstance(plan, NothingToCompact):
        raise NothingLeftError(plan.reason)
    return condense(ctx)


__all__ = [
    "DigestCompaction",
    "HidingThenSummaryCompaction",
    "LLMSummaryCompaction",
    "LadderCompaction",
    "RemoteCompaction",
    "ToolResultHidingCompaction",
]
