"""The Python API as a program uses it."""

from __future__ import annotations

import pytest

import tenuto
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.protocol.event import AssistantTextDeltaEvent
from tests.core.compacting import is_summary_request
from tests.server import Reply, ScriptedServer


async def test_an_agent_answers_and_goes_on_later(tmp_path):
    async with ScriptedServer([Reply("One."), Reply("Two.")]) as server:
        options = {"cwd": tmp_path, "home": tmp_path / "home", "model": "anthropic/test", "environ": server.environ()}
        events = []
        async with tenuto.Agent(**options) as agent:
            agent.subscribe(events.append)
            answer = await agent.run("first")
            assert (answer.text, answer.outcome) == ("One.", "completed")
            session = agent.session_id
        assert any(isinstance(event, AssistantTextDeltaEvent) for event in events)
        async with tenuto.Agent(**options, resume=session) as agent:
            assert (await agent.run("second")).text == "Two."
        assert any("first" in item.text for item in server.requests[1].items)


async def test_compacting_by_the_api(tmp_path):
    def script(request):
        return Reply("## Goal\nGo on.") if is_summary_request(request) else Reply("fine " * 600)

    async with ScriptedServer(script, window=32_000) as server:
        options = {"cwd": tmp_path, "home": tmp_path / "home", "model": "openai-chat/test", "environ": server.environ()}
        async with tenuto.Agent(**options, temporary=True) as agent:
            with pytest.raises(TaskFailedError, match="nothing to compact"):
                await agent.compact()
            for number in range(6):
                await agent.run(f"question {number} " + "because " * 300)
            entry = await agent.compact("the numbers")
            assert entry.focus == "the numbers"
            assert entry.tokens_after < entry.tokens_before


def test_bad_directory_is_named(tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        tenuto.Agent(tmp_path / "nowhere")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nope"):
        _ = tenuto.Nope
