"""What the settings name for compaction and cannot be used is said when the program starts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.protocol.event import NoticeEvent
from tests.core.compacting import SUMMARY, compact, fill, is_summary_request, words
from tests.core.harness import agent
from tests.server import Reply, Request

BROKEN = "import nothing_that_exists\n\n\nclass Own:\n    pass\n"


def script(request: Request) -> Reply:
    return Reply(SUMMARY) if is_summary_request(request) else Reply("fine " + words(900))


def told(running, word: str) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if word in event.text]


@pytest.mark.parametrize("name", ["no.such.module:Strategy", "tenuto.version:Missing", "nonsense", "own:Own"])
async def test_a_strategy_that_cannot_be_loaded_is_named_at_the_start_and_once(tmp_path: Path, name: str):
    """A module that is not there, a class that is not, no name at all, a file that fails."""
    folder = tmp_path / "home" / "strategies"
    folder.mkdir(parents=True)
    (folder / "own.py").write_text(BROKEN)
    async with agent(tmp_path, script, environ={"TENUTO_COMPACTION__STRATEGY": name}) as running:
        await running.runtime.opener.wait_for_checks()
        (said,) = told(running, name)
        assert "built-in strategy is used" in said
        await running.ask("hello")
        await fill(running, 12)
        assert (await compact(running)).outcome == "completed"
        assert told(running, name) == [said]


@pytest.mark.parametrize(
    "name", ["nobody/at-all", "openai-chat/not-in-the-list", "no-slash", "offline/other", "openai-chat/test:hihg"]
)
async def test_a_summariser_that_no_provider_has_is_named_at_the_start(tmp_path: Path, name: str):
    """A provider that is not known, a model that its provider does not list, no name of a model."""
    async with agent(tmp_path, script, environ={"TENUTO_COMPACTION__MODEL": name}) as running:
        await running.runtime.opener.wait_for_checks()
        (said,) = told(running, "compaction.model")
        assert name in said and "cannot be used" in said
        await running.ask("hello")


@pytest.mark.parametrize("name", ["openai-chat/test-small", "offline/tenuto"])
async def test_what_can_be_used_is_not_spoken_of(tmp_path: Path, name: str):
    environ = {
        "TENUTO_COMPACTION__MODEL": name,
        "TENUTO_COMPACTION__STRATEGY": "tenuto.compaction.strategy:LadderCompaction",
    }
    async with agent(tmp_path, script, environ=environ) as running:
        await running.runtime.opener.wait_for_checks()
        assert told(running, "compaction.") == []


async def test_leaving_does_not_wait_for_a_strategy_that_never_loads(tmp_path: Path):
    folder = tmp_path / "home" / "strategies"
    folder.mkdir(parents=True)
    (folder / "own.py").write_text("import threading\n\nthreading.Event().wait(600)\n")
    async with asyncio.timeout(60):
        environ = {"TENUTO_COMPACTION__STRATEGY": "own:Own", "TENUTO_EXTENSIONS__HOOK_TIMEOUT": "300"}
        async with agent(tmp_path, script, environ=environ) as running:
            await running.ask("hello")
