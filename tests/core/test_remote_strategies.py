"""The provider's own compaction and strategies: the one of that name, and those of others (seed 004)."""

from __future__ import annotations

from pathlib import Path

from tenuto.core.state.windows import change_model, find_model
from tenuto.protocol.compaction import CompactionContext
from tenuto.protocol.message import AssistantMessage, Message
from tests.core.compacting import compact, compactions, fill
from tests.core.harness import agent
from tests.core.remote_compacting import WINDOW, block_of, choose, remote, sent, warnings


class Keeping:
    """A strategy of somebody else that keeps the beginning of the view and the last turn."""

    async def compact(self, ctx: CompactionContext) -> list[Message]:
        first = next(place for place, message in enumerate(ctx.history) if isinstance(message, AssistantMessage))
        return [*ctx.history[: first + 1], *ctx.history[-2:]]


async def test_r051_items_that_another_strategy_keeps_go_to_nobody_else(tmp_path: Path):
    choose(tmp_path, "openai/test", remote_compaction="request")
    async with agent(tmp_path, remote(), model="openai/test", options={"window": 3 * WINDOW}) as running:
        await fill(running, 5)
        await compact(running)
        await fill(running, 4)
        running.runtime.live.compaction.strategy = Keeping()
        await compact(running)
        assert compactions(running)[-1].rung == "Keeping"
        await running.ask("go on")
        assert block_of(running.server.requests[-1])
        change_model(running.runtime.live, await find_model(running.runtime.live, "openai/test-small"))
        assert (await running.ask("and you?")).outcome == "completed"
        assert b'"compaction"' not in running.server.requests[-1].raw
        assert "question 0 because" in sent(running.server.requests[-1])
        assert running.server.refusals == []


async def test_the_strategy_of_that_name_asks_the_provider_unless_the_settings_forbid_it(tmp_path: Path):
    environ = {"TENUTO_COMPACTION__STRATEGY": "tenuto.compaction.ways.strategies:RemoteCompaction"}
    for provider, told in (("anthropic", 0), ("openai", 0), ("openai-chat", 1)):
        place = tmp_path / provider
        place.mkdir()
        if provider == "openai":
            choose(place, "openai/test", remote_compaction="off")
        async with agent(
            place, remote(), model=f"{provider}/test", options={"window": WINDOW}, environ=environ
        ) as running:
            await fill(running, 5)
            await compact(running)
            is_remote = provider == "anthropic"
            assert all((entry.rung == "remote") is is_remote for entry in compactions(running))
            assert len(warnings(running)) == told
