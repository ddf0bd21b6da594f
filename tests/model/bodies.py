"""The request bodies that our clients would send, without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import register_transport, unregister_transport
from tenuto.model.registry import new_client
from tenuto.model.wire.conversation import LoadBlob
from tenuto.protocol.model import ModelClient, ModelError, ModelRequest
from tests.model.views import load_blob

BASE_URLS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openai-chat": "https://llm.example/v1",
}


class Recorder:
    """A transport that keeps what it is given and then fails."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], bytes]] = []

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        self.calls.append((url, dict(headers), body))
        raise ModelError("cancelled", "recorded")
        yield b""

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        self.calls.append((url, dict(headers), b""))
        return {}

    async def close(self) -> None:
        pass


class Recording:
    """A client over a recorder."""

    def __init__(self, provider: str, load: LoadBlob = load_blob, **endpoint: Any) -> None:
        self.recorder = Recorder()
        register_transport(provider, lambda _: self.recorder)
        fields = {"provider": provider, "kind": provider, "base_url": BASE_URLS[provider], "key": "KEY", **endpoint}
        try:
            self.client: ModelClient = new_client(Endpoint(**fields), load)
        finally:
            unregister_transport(provider)

    async def send(self, request: ModelRequest) -> bytes:
        try:
            async for _ in self.client.stream(request):
                pass
        except ModelError as error:
            assert error.kind == "cancelled", error
        return self.recorder.calls[-1][2]

    async def body(self, request: ModelRequest) -> dict[str, Any]:
        return json.loads(await self.send(request))

    @property
    def headers(self) -> dict[str, str]:
        return self.recorder.calls[-1][1]

    @property
    def url(self) -> str:
        return self.recorder.calls[-1][0]


def conversation_items(provider: str, body: dict[str, Any]) -> list[str]:
    """Tools, system and messages in order, cache marks aside: what must be a prefix of the next request's."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            value = {key: inner for key, inner in value.items() if key != "cache_control"}
        return json.dumps(value, sort_keys=True)

    items = [text(tool) for tool in body.get("tools", [])]
    if provider == "anthropic":
        items += [text(block) for block in body.get("system", [])]
        return items + [message["role"] + text(block) for message in body["messages"] for block in message["content"]]
    if provider == "openai":
        return items + [text(body.get("instructions"))] + [text(item) for item in body["input"]]
    return items + [text(message) for message in body["messages"]]
