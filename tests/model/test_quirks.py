"""Quirks of a model (K 3): what the settings change in its requests, over every protocol, at a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.config.settings import ModelSettings, Settings
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.message import SystemMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest
from tests.model.views import TOOLS, user
from tests.server import Reply, ScriptedServer

PROVIDERS = ("anthropic", "openai", "openai-chat")


async def sent(tmp_path: Path, provider: str, own: ModelSettings, **options: object):
    """The one request that a model with these settings gets, after the server's own checks."""
    model = f"{provider}/test"
    async with ScriptedServer([Reply("Yes.")], **options) as server:
        models = ModelRegistry(Settings(models={model: own}), tmp_path, server.environ())
        request = ModelRequest(
            model=models.facts(model),
            messages=(SystemMessage(text="You are careful."), user("start")),
            tools=TOOLS,
            max_output_tokens=77,
        )
        parts = [part async for part in models.client(provider).stream(request)]
        await models.close()
        assert isinstance(parts[-1], Finished)
        (seen,) = server.requests
        return seen


ONE_CALL = {
    "anthropic": ("tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
    "openai": ("parallel_tool_calls", False),
    "openai-chat": ("parallel_tool_calls", False),
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_without_settings_nothing_is_added(tmp_path: Path, provider: str):
    body = (await sent(tmp_path, provider, ModelSettings())).body
    assert not {"temperature", "top_p", ONE_CALL[provider][0]} & set(body)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_the_settings_say_is_sent_and_the_conversation_stays_last(tmp_path: Path, provider: str):
    choosing = {} if provider == "anthropic" else {"temperature": 0.2, "top_p": 0.9}
    own = ModelSettings(
        **choosing,  # pyright: ignore
        parallel_tools=False,
        body={"metadata": {"user_id": "me"}},
        headers={"X-Team": "tools"},
    )
    request = await sent(tmp_path, provider, own)
    name, value = ONE_CALL[provider]
    assert request.body[name] == value
    assert {key: request.body[key] for key in choosing} == choosing
    assert request.body["metadata"] == {"user_id": "me"}
    assert request.headers["x-team"] == "tools"
    assert list(request.body)[-1] == ("input" if provider == "openai" else "messages")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_field_of_the_users_stands_once_and_one_of_ours_is_refused_before_anything_is_sent(tmp_path, provider):
    field = {"anthropic": "max_tokens", "openai": "max_output_tokens", "openai-chat": "max_tokens"}[provider]
    request = await sent(tmp_path, provider, ModelSettings(body={field: 50}))
    assert request.raw.count(f'"{field}"'.encode()) == 1
    assert request.body[field] == 50
    for ours in ("messages", "input", "model", "tools", "stream"):
        with pytest.raises(ModelError, match=rf"the field {ours} .*made by Tenuto alone"):
            await sent(tmp_path, provider, ModelSettings(body={ours: []}))


@pytest.mark.parametrize("role", ["system", "developer", "user"])
async def test_the_system_prompt_has_the_role_of_the_settings(tmp_path: Path, role: str):
    body = (await sent(tmp_path, "openai-chat", ModelSettings(system_role=role), alternate=True)).body  # pyright: ignore
    first, *rest = body["messages"]
    assert first["role"] == role
    assert "You are careful." in first["content"]
    assert len(rest) == (0 if role == "user" else 1)
    assert "start" in str(body["messages"][-1]["content"])


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "none"])
async def test_the_output_limit_has_the_name_of_the_settings(tmp_path: Path, name: str):
    body = (await sent(tmp_path, "openai-chat", ModelSettings(output_limit_field=name))).body  # pyright: ignore
    assert {key: body[key] for key in body if key.startswith("max_")} == ({} if name == "none" else {name: 77})
