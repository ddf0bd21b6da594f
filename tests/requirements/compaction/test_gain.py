"""A compaction that would save under a tenth says so and asks (issue F2, truth.md T10)."""

from __future__ import annotations

import asyncio

from tenuto.api.words import describe_outcome
from tenuto.command.outcome import Choose
from tenuto.command.registry import run_command
from tests.core.harness import agent
from tests.requirements.compaction.support import compactions, summary_requests, talk


async def test_t10_a_compaction_that_saves_under_a_tenth_asks_and_a_yes_does_it(tmp_path):
    rules = "Follow this rule always. " * 700
    async with agent(tmp_path, talk(), options={"window": 32_000}, extra_prompt=rules) as running:
        await running.ask("look " + "because " * 250)
        await running.ask("again " + "because " * 60)
        [question] = await run_command(running.runtime, "/compact the names")
        assert isinstance(question, Choose)
        assert "a summary would save" in question.title
        assert not summary_requests(running), "no model is asked for that"
        stay, go = question.choices
        assert (stay.value, stay.present) == ("", True)
        assert go.value.endswith(" the names")
        assert go.value in describe_outcome(question), "where nothing can be picked it says how"

        assert await run_command(running.runtime, f"/{question.command} {go.value}") == []
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert compactions(running)[0].focus == "the names"
        assert str(compactions(running)[0].first_kept_index) == go.value.split()[1]


async def test_t10_a_compaction_that_is_worth_it_asks_nothing(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        for number in range(6):
            await running.ask(f"question {number} " + "because " * 300)
        assert await run_command(running.runtime, "/compact") == []
