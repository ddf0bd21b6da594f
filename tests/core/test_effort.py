"""How hard a model is to think, from the start to the wire (finding B11); the scripted server keeps the bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.command.outcome import Choose, Say
from tenuto.model.registry import OFFLINE_MODEL
from tenuto.protocol.event import ModelChangedEvent, NoticeEvent, SessionOpenedEvent
from tenuto.protocol.model import ModelError
from tenuto.protocol.part import TextPart
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.server import Call, Reply, Request, ScriptedServer

NAMES = ("claude-opus-5-5", "claude-haiku-4-5", "claude-opus-4-5", "claude-3-5-haiku", "gpt-6.1-sol", "gpt-6-sol", "q")
OPTIONS = {"models": NAMES}


def echo(_request: Request) -> Reply:
    return Reply("fine")


def told(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


def asked_for(body: dict[str, Any]) -> dict[str, Any]:
    """What a body says of thinking."""
    names = ("thinking", "output_config", "reasoning", "reasoning_effort")
    return {name: body[name] for name in names if name in body}


SENT: list[tuple[str, dict[str, Any]]] = [
    ("anthropic/claude-opus-5-5", {"thinking": {"type": "adaptive", "display": "summarized"}}),
    (
        "anthropic/claude-opus-5-5:xhigh",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
    ),
    ("anthropic/claude-opus-4-5:low", {"output_config": {"effort": "low"}}),
    ("anthropic/claude-haiku-4-5", {}),
    ("anthropic/claude-haiku-4-5:none", {}),
    ("anthropic/claude-haiku-4-5:low", {"thinking": {"type": "enabled", "budget_tokens": 4_096}}),
    ("anthropic/claude-haiku-4-5:high", {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
    ("anthropic/q:max", {"output_config": {"effort": "max"}}),
    ("openai/gpt-6.1-sol", {"reasoning": {"summary": "auto"}}),
    ("openai/gpt-6.1-sol:max", {"reasoning": {"effort": "max", "summary": "auto"}}),
    ("openai/gpt-6-sol:none", {"reasoning": {"effort": "none", "summary": "auto"}}),
    ("openai/q:high", {"reasoning": {"effort": "high"}}),
    ("openai-chat/gpt-6.1-sol:xhigh", {"reasoning_effort": "xhigh"}),
    ("openai-chat/q:high", {"reasoning_effort": "high"}),
    ("openai-chat/q", {}),
]


@pytest.mark.parametrize(("model", "expected"), SENT)
async def test_b11_each_model_is_asked_in_the_way_it_understands(
    tmp_path: Path, model: str, expected: dict[str, Any]
) -> None:
    async with agent(tmp_path, echo, options=OPTIONS, model=model) as running:
        assert (await running.ask("hi")).outcome == "completed", told(running)
        request = running.server.requests[-1]
        assert asked_for(request.body) == expected
        assert request.body["model"] == model.partition("/")[2].partition(":")[0]
        assert len(running.server.requests) == 1, "nothing is refused"


REFUSED = [
    ("openai/gpt-6.1-sol:ultra", "no effort “ultra”; it has low, medium, high, xhigh, max"),
    ("openai/gpt-6.1-sol:none", "it has low, medium, high, xhigh, max"),
    ("openai/gpt-6.1-sol:ultar", "“ultar” behind openai/gpt-6.1-sol is no effort"),
    ("openai-chat/gpt-6.1-sol:hihg", "did you mean openai-chat/gpt-6.1-sol:high?"),
    ("openai-chat/q:hihg", "did you mean openai-chat/q:high?"),
    ("anthropic/claude-opus-5-5:none", "it has low, medium, high, xhigh, max"),
    ("anthropic/claude-haiku-4-5:max", "it has none, low, medium, high"),
    ("anthropic/claude-3-5-haiku:high", "has no levels of effort"),
]


@pytest.mark.parametrize(("model", "words"), REFUSED)
async def test_b11_what_a_model_does_not_have_is_refused_and_nothing_is_sent(
    tmp_path: Path, model: str, words: str
) -> None:
    async with ScriptedServer(echo, **OPTIONS) as server:
        for interactive in (True, False):
            with pytest.raises(ModelError, match="effort") as caught:
                async with reopened(tmp_path, server, model=model, interactive=interactive):
                    pass
            assert words in str(caught.value)
        async with reopened(tmp_path, server, model="openai-chat/q") as running:
            said = await running.runtime.run_command(f"/model {model}")
            assert any(isinstance(one, Say) and words in one.text for one in said) or words in " ".join(told(running))
            assert (running.session.state.model, running.session.state.effort) == ("openai-chat/q", "")
        assert server.requests == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b11_the_command_offers_the_levels_sets_one_and_a_resumed_session_has_it(
    tmp_path: Path, protocol: str
) -> None:
    name = "claude-opus-5-5" if protocol == "anthropic" else "gpt-6.1-sol"
    model = f"{protocol}/{name}"
    async with ScriptedServer(echo, **OPTIONS) as server:
        async with reopened(tmp_path, server, model=model) as running:
            (offer,) = await running.runtime.run_command("/effort")
            assert isinstance(offer, Choose)
            assert [choice.value for choice in offer.choices] == ["default", "low", "medium", "high", "xhigh", "max"]
            assert [choice.value for choice in offer.choices if choice.present] == ["default"]
            assert await running.runtime.run_command("/effort high") == [Say("Effort set to high.")]
            assert await running.runtime.run_command("/effort high") == []
            (offer,) = await running.runtime.run_command("/effort")
            assert [choice.value for choice in offer.choices if choice.present] == ["high"]
            event = running.of(ModelChangedEvent)[-1]
            assert (event.model, event.effort) == (model, "high")
            (bad,) = await running.runtime.run_command("/effort hihg")
            assert "did you mean high?" in bad.text
            await running.ask("one")
        async with reopened(tmp_path, server, model="", resume_latest=True) as running:
            assert running.of(SessionOpenedEvent)[-1].effort == "high"
            await running.ask("two")
            await running.runtime.run_command("/effort default")
            await running.ask("three")
    first, second, third = (str(asked_for(request.body)) for request in server.requests)
    assert "high" in first
    assert first == second
    assert "high" not in third


async def test_b11_a_model_without_levels_says_so_and_one_nobody_knows_offers_all(tmp_path: Path) -> None:
    async with agent(tmp_path, echo, options=OPTIONS, model="anthropic/claude-3-5-haiku") as running:
        for line in ("/effort", "/effort high"):
            (said,) = await running.runtime.run_command(line)
            assert "has no levels of effort" in said.text
        await running.runtime.run_command(f"/model {OFFLINE_MODEL}")
        (said,) = await running.runtime.run_command("/effort")
        assert "has no levels of effort" in said.text
        await running.runtime.run_command("/model openai-chat/q")
        (offer,) = await running.runtime.run_command("/effort")
        assert [choice.value for choice in offer.choices][-1] == "ultra"
        assert "no list says" in offer.title


async def test_b11_an_effort_of_the_settings_that_the_model_lacks_is_told_and_not_sent(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(
        'model = "openai/gpt-6.1-sol:ultra"\n[models."openai/gpt-6-sol"]\neffort = "ultra"\n'
    )
    async with ScriptedServer(echo, **OPTIONS) as server:
        async with reopened(tmp_path, server, model="", interactive=True) as running:
            assert running.session.state.model == "openai/gpt-6.1-sol"
            assert any("no effort “ultra”" in text and "/effort" in text for text in told(running)), told(running)
            await running.ask("hi")
            await running.runtime.run_command("/model openai/gpt-6-sol")
            await running.ask("hi")
        for model in ("", "openai/gpt-6-sol"):
            with pytest.raises(ModelError, match="ultra"):
                async with reopened(tmp_path, server, model=model, interactive=False):
                    pass
    assert [request.body["reasoning"] for request in server.requests] == [{"summary": "auto"}] * 2


async def test_b11_what_the_list_says_later_counts_and_is_told(tmp_path: Path) -> None:
    def listing() -> list[dict[str, Any]]:
        effort = {"low": {"supported": True}, "high": {"supported": True}}
        thinking = {"types": {"adaptive": {"supported": True}}}
        return [{"id": "claude-opus-5-5", "capabilities": {"effort": effort, "thinking": thinking}}]

    async with ScriptedServer(echo, listing=listing()) as server:
        async with reopened(tmp_path, server, model="anthropic/claude-opus-5-5:max") as running:
            assert any("no effort “max”; it has low, high" in text for text in told(running)), told(running)
            await running.ask("hi")
            assert running.of(ModelChangedEvent)[-1].effort == ""
        assert "output_config" not in server.requests[-1].body


@pytest.mark.parametrize("steered", [False, True])
async def test_b11_thinking_in_a_budget_begins_with_a_turn_and_not_within_one(tmp_path: Path, steered: bool) -> None:
    """An older Claude refuses it otherwise; the scripted server is as strict."""
    look, further = Call("glob", {"pattern": "*"}), Call("glob", {"pattern": "*.py"})
    first = [Reply(tool_calls=[look]), Reply(tool_calls=[further]), Reply("Done.")]
    left = [*first, Reply(thinking="Hm.", tool_calls=[look]), Reply(tool_calls=[further]), Reply("Done.")]

    async def answer(_request: Request) -> Reply:
        if len(running.server.requests) == 1:
            await running.runtime.run_command("/effort low")
            if steered:
                await running.runtime.submit_prompt((TextPart(text="and quickly"),), steer=True)
        return left.pop(0)

    async with agent(tmp_path, answer, options=OPTIONS, model="anthropic/claude-haiku-4-5") as running:
        for text in ("one", "two"):
            assert (await running.ask(text)).outcome == "completed", told(running)
        bodies = [request.body for request in running.server.requests]
    assert ["thinking" in body for body in bodies] == [False] * 3 + [True] * 3
