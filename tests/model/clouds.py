"""A conversation with a model in a cloud, against the scripted server."""

from __future__ import annotations

from pathlib import Path

from tenuto.config.settings import ProviderSettings, Settings
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.message import AssistantMessage, Message, SystemMessage
from tenuto.protocol.model import Finished, ModelRequest, StreamPart
from tests.model.views import TOOLS, result, user

CLOUDS = ("bedrock", "vertex", "azure")
NAMES = {
    "bedrock": "eu.anthropic.claude-opus-5-5-v1:0",
    "vertex": "claude-opus-5-5@20261012",
    "azure": "my-deployment",
    "gemini": "gemini-3.8-flash",
}


def settings_of(values: dict[str, str], **more: ProviderSettings) -> Settings:
    """Settings that point Bedrock and Vertex to the scripted server; `more` replaces or adds providers."""
    own = {name: values[f"TENUTO_PROVIDERS__{name.upper()}__BASE_URL"] for name in ("bedrock", "vertex")}
    return Settings(providers={**{name: ProviderSettings(base_url=url) for name, url in own.items()}, **more})


class Talk:
    """A conversation with one cloud; `provider` may be one of `more`."""

    def __init__(self, values: dict[str, str], home: Path, provider: str, **more: ProviderSettings) -> None:
        self.models = ModelRegistry(settings_of(values, **more), home, values)
        self.provider = provider
        self.view: list[Message] = [SystemMessage(text="You are careful."), user("start")]

    async def parts(self, **fields: object) -> list[StreamPart]:
        facts = self.models.facts(f"{self.provider}/{NAMES[self.provider]}")
        asked = ModelRequest(model=facts, messages=tuple(self.view), tools=TOOLS, cache_key="s", **fields)  # pyright: ignore
        return [part async for part in self.models.client(self.provider).stream(asked)]

    async def ask(self, **fields: object) -> AssistantMessage:
        end = (await self.parts(**fields))[-1]
        assert isinstance(end, Finished)
        self.view.append(end.message)
        self.view += [result(call.id, "output") for call in end.message.tool_calls] or [user("go on")]
        return end.message
