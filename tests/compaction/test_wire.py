"""The summariser against a server that counts, in each provider's protocol."""

import msgspec
import pytest

from tenuto.compaction.measure.budget import budget_for
from tenuto.compaction.summary.summarise import Summariser, SummaryContext
from tenuto.config.settings import CompactionSettings, Settings
from tenuto.model.registry import ModelRegistry
from tests.compaction.build import SUMMARY, History, words
from tests.server import Reply, ScriptedServer

PROVIDERS = ("anthropic/test", "openai/test", "openai-chat/test")


def conversation() -> History:
    history = History()
    for turn in range(40):
        history.user(f"request {turn}")
        history.step(f"output {turn} " + words(900), thinking=words(200))
        history.answer(f"answer {turn}")
    return history


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("believed", [8_000, 60_000, 1_000_000])
async def test_r001_the_summary_is_made_whatever_the_real_window_is(model, believed, tmp_path):
    """With a window that is known every request fits; with one that is believed larger, refusals make them smaller."""
    plan = msgspec.structs.replace(conversation().planned(64_000, keep_tokens=2_000), turn_prefix=())
    async with ScriptedServer(lambda _request: Reply(SUMMARY), window=8_000) as server:
        registry = ModelRegistry(Settings(), tmp_path, server.environ())
        facts = msgspec.structs.replace(registry.facts(model), context_window=believed, max_output_tokens=2_000)
        context = SummaryContext(facts=facts, budget=budget_for(facts, CompactionSettings()))
        maker = Summariser(registry.client(facts.provider), context, lambda *_told: None)
        summary = await maker.summarise(plan)
        await registry.close()
    assert summary.startswith("## Goal\nMend the parser.")
    assert maker.usage.output > 0
    refused = [request for request in server.requests if request.refused]
    assert bool(refused) == (believed > 8_000)
    bodies = [request.body for request in refused]
    assert len(bodies) == len({str(body) for body in bodies}), "the same bytes are never refused twice"
