"""The offline model through the whole agent: without key and network it reads, searches, runs and replaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenuto.protocol.event import ApprovalRequestedEvent, AssistantMessageEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import text_of
from tests.core.harness import Agent, copy_sample, reopened
from tests.server import ScriptedServer


@asynccontextmanager
async def offline(tmp_path: Path, mode: str = "auto") -> AsyncIterator[Agent]:
    """An agent on a copy of the sample repository; the server is there only to see that nobody asks it."""
    async with ScriptedServer([]) as server:
        work = tmp_path / "repo"
        if not work.exists():
            copy_sample(work)
            (work / "README.md").write_text("# Shop\n\nPrices and carts.\n\nTODO: write more.\n")
        async with reopened(tmp_path, server, model="offline/tenuto", cwd=work, mode=mode) as running:
            yield running
        assert server.all_requests == []


def last_said(running: Agent) -> str:
    return text_of(running.of(AssistantMessageEvent)[-1].message.parts)


@pytest.mark.parametrize(
    ("request_text", "tool", "words"),
    [
        ("read README.md", "read", ["Prices and carts."]),
        ("search TODO", "grep", ["README.md"]),
        ("run python -m pytest -q", "bash", ["failed"]),
        ("replace Shop by Store in README.md", "edit", ["README.md"]),
    ],
)
async def test_what_it_understands_it_does_through_the_real_tools(
    tmp_path: Path, request_text: str, tool: str, words: list[str]
) -> None:
    async with offline(tmp_path) as running:
        settled = await running.ask(request_text, timeout=60)
        assert settled.outcome == "completed", settled.error
        names = [event.message.name for event in running.of(ToolResultEvent)]
        assert tool in names
        for word in words:
            assert word in last_said(running)
        changed = (tmp_path / "repo" / "README.md").read_text().startswith("# Store")
        assert changed == (tool == "edit")


async def test_it_asks_before_it_changes_anything_and_a_denial_holds(tmp_path: Path) -> None:
    async with offline(tmp_path, mode="ask") as running:
        await running.send("replace Shop by Store in README.md")
        question = await running.until(ApprovalRequestedEvent)
        assert question.tool == "edit"
        assert question.diffs
        answer = AnswerApprovalOperation(
            session_id=running.runtime.session_id, request_id=question.request_id, decision="deny"
        )
        await running.runtime.submit(answer)
        await running.runtime.wait_settled()
        assert (tmp_path / "repo" / "README.md").read_text().startswith("# Shop")


async def test_a_session_with_it_is_resumed_like_any_other(tmp_path: Path) -> None:
    async with offline(tmp_path) as running:
        await running.ask("read README.md")
        first = running.runtime.session_id
    async with ScriptedServer([]) as server:
        async with reopened(tmp_path, server, model="", cwd=tmp_path / "repo", resume_latest=True) as running:
            assert running.runtime.session_id == first
            assert running.session.state.model == "offline/tenuto"
            assert "Prices and carts." in last_said(running)
            assert (await running.ask("search TODO")).outcome == "completed"
            assert "README.md" in last_said(running)
