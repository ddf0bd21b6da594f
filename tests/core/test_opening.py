"""Which model a session opens with, and what happens when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.command.model_commands import run_model
from tenuto.core.errors import UsageError
from tenuto.model.endpoints import LocalServer
from tenuto.protocol.event import AssistantMessageEvent, NoticeEvent, SessionOpenedEvent, UserMessageEvent
from tenuto.protocol.model import ModelError
from tests.core.harness import Agent, agent, reopened
from tests.server import Reply, ScriptedServer

NO_KEY = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""}


def warnings(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if event.level == "warning"]


@pytest.mark.parametrize(
    ("environ", "part"),
    [
        ({"TENUTO_MODEL": "anthropic/x"}, "ANTHROPIC_API_KEY"),
        ({"TENUTO_MODEL": "nonsense"}, "provider/name"),
        ({"TENUTO_MODEL": "nobody/x"}, "nobody"),
    ],
)
async def test_a_model_of_the_settings_that_cannot_be_used_keeps_nobody_out(
    tmp_path: Path, environ: dict[str, str], part: str
) -> None:
    async with ScriptedServer([Reply("It works.")]) as server:
        async with reopened(tmp_path, server, model="", environ={**NO_KEY, **environ}) as running:
            (warning,) = warnings(running)
            assert part in warning
            assert "/model" in warning
            assert running.of(SessionOpenedEvent)[-1].model == "offline/tenuto"
            await running.runtime.run_command("/model openai-chat/test")
            assert (await running.ask("hello")).outcome == "completed"
        with pytest.raises((UsageError, ModelError), match=part):
            async with reopened(tmp_path, server, model="", interactive=False, environ={**NO_KEY, **environ}):
                pass


async def test_a_session_whose_model_lost_its_key_can_be_read_and_gone_on_with(tmp_path: Path) -> None:
    async with ScriptedServer([Reply("one"), Reply("two")]) as server:
        async with reopened(tmp_path, server, model="anthropic/test") as running:
            await running.ask("the first thing")
            log = running.session.directory / "events.jsonl"
        with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
            async with reopened(tmp_path, server, model="", resume_latest=True, interactive=False, environ=NO_KEY):
                pass
        with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
            async with reopened(tmp_path, server, model="anthropic/test", resume_latest=True, environ=NO_KEY):
                pass
        assert log.exists()
        async with reopened(tmp_path, server, model="", resume_latest=True, environ=NO_KEY) as running:
            assert "ANTHROPIC_API_KEY" in warnings(running)[0]
            assert len(running.of(UserMessageEvent)) == len(running.of(AssistantMessageEvent)) == 1
            await running.runtime.run_command("/model openai/test")
            assert (await running.ask("go on")).outcome == "completed"
        assert any("the first thing" in item.text for item in server.requests[-1].items)


async def test_a_session_that_cannot_be_entered_leaves_the_open_one_as_it_is(tmp_path: Path) -> None:
    async with ScriptedServer(lambda _: Reply("ok")) as server:
        async with reopened(tmp_path, server, model="anthropic/test") as running:
            await running.ask("in the first")
            first = running.runtime.session_id
        async with reopened(tmp_path, server, model="openai/test", environ=NO_KEY, interactive=False) as running:
            await running.ask("in the second")
            before = running.runtime.session_id
            await running.runtime.run_command(f"/resume {first}")
            assert "ANTHROPIC_API_KEY" in running.of(NoticeEvent)[-1].text
            assert running.runtime.session_id == before
            assert (await running.ask("still here")).outcome == "completed"


async def test_f11_a_default_model_that_the_server_does_not_have_is_changed_and_told(tmp_path: Path) -> None:
    """daily-user.md F11: with another server's address the first run started with a model that is not there."""
    async with agent(tmp_path, [], model="", environ={"ANTHROPIC_API_KEY": ""}) as running:
        live = running.runtime.live
        assert live.facts.id.startswith("openai/test")
        assert running.session.state.model == live.facts.id
        assert any("not in the provider's list" in event.text for event in running.of(NoticeEvent))
        (shown,) = await run_model(running.runtime, "")
        assert [row.value for row in shown.choices if row.present] == [live.facts.id]


async def test_f11_a_model_that_the_user_named_stays(tmp_path: Path) -> None:
    async with agent(tmp_path, [], model="openai/mine") as running:
        assert running.runtime.live.facts.id == "openai/mine"
        (shown,) = await run_model(running.runtime, "")
        assert [row.value for row in shown.choices if row.present] == ["openai/mine"]


@pytest.mark.parametrize("model", ["", "ollama/own"])
async def test_s15_a_server_that_was_only_found_is_named_with_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Whoever listens on a usual port gets the session, on a shared machine another user. A chosen one is not news."""

    async def find() -> list[LocalServer]:
        return [LocalServer("ollama", "http://127.0.0.1:11434/v1", ("found",))]

    monkeypatch.setattr("tenuto.model.registry.find_local_servers", find)
    environ = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "GEMINI_API_KEY": ""}
    async with agent(tmp_path, [], model=model, environ=environ) as running:
        told = [event for event in running.of(NoticeEvent) if "127.0.0.1:11434" in event.text]
        if model:
            assert running.runtime.live.facts.id == model and not told
        else:
            assert running.runtime.live.facts.id == "ollama/found"
            assert [event.level for event in told] == ["warning"], "a run without a screen tells it too"


async def test_s15_a_server_that_was_only_found_is_named_until_it_has_answered_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "GEMINI_API_KEY": ""}
    async with ScriptedServer(lambda _: Reply("yes")) as server:
        environ |= {"TENUTO_PROVIDERS__OLLAMA__BASE_URL": server.openai_url}

        async def find() -> list[LocalServer]:
            return [LocalServer("ollama", server.openai_url, ("found",))]

        monkeypatch.setattr("tenuto.model.registry.find_local_servers", find)

        async def is_named(place: str, *, asks: bool = False) -> bool:
            (tmp_path / place).mkdir(exist_ok=True)
            async with reopened(tmp_path, server, model="", environ=environ, cwd=tmp_path / place) as running:
                if asks:
                    settled = await running.ask("go")
                    assert settled.outcome == "completed", running.events
                return any("No model is set" in text for text in warnings(running))

        assert await is_named("work")
        assert await is_named("work", asks=True), "nobody has said anything to it yet"
        assert not await is_named("work")
        assert await is_named("elsewhere")
