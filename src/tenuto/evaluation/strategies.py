"""The strategies that are measured: every built-in one, and the ladder without its first rung, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from tenuto.compaction.strategy import (
    CompactionContext,
    CompactionOutcome,
    CompactionStrategy,
    DigestCompaction,
    HidingThenSummaryCompaction,
    LadderCompaction,
    LLMSummaryCompaction,
    RemoteCompaction,
    ToolResultHidingCompaction,
)
from tenuto.compaction.ways.environment import BoundContext
from tenuto.compaction.ways.ladder import on_owner_loop, run_ladder
from tenuto.compaction.ways.rungs import plan_or_shorten, serialised_rungs
from tenuto.compaction.ways.same_prefix import same_prefix_rungs

StrategyName = Literal[
    "ladder", "summary", "hiding", "hiding-then-summary", "digest", "remote", "ladder-without-hiding"
]
STRATEGY_NAMES: tuple[StrategyName, ...] = get_args(StrategyName)


class LadderWithoutHiding:
    """The default strategy without its first rung: what hiding old results before a summary brings and costs."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        return await on_owner_loop(ctx, _summarise_only)


async def _summarise_only(ctx: BoundContext) -> CompactionOutcome:
    plan = plan_or_shorten(ctx)
    if isinstance(plan, CompactionOutcome):
        return plan
    return await run_ladder(ctx, plan, (same_prefix_rungs, serialised_rungs))


STRATEGIES: dict[StrategyName, Callable[[], CompactionStrategy]] = {
    "ladder": LadderCompaction,
    "summary": LLMSummaryCompaction,
    "hiding": ToolResultHidingCompaction,
    "hiding-then-summary": HidingThenSummaryCompaction,
    "digest": DigestCompaction,
    "remote": RemoteCompaction,
    "ladder-without-hiding": LadderWithoutHiding,
}
BUILT_IN: tuple[StrategyName, ...] = tuple(name for name in STRATEGY_NAMES if name != "ladder-without-hiding")
