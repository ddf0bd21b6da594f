"""OpenAI Chat Completions, and every server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from tenuto.model import wire_json
from tenuto.model.calls import taken_ids
from tenuto.model.chat_encoder import ChatEncoder
from tenuto.model.chat_stream import ChatDecoder
from tenuto.model.client import Call, WireClient, join_array, join_object
from tenuto.model.conversation import Encoded, LoadBlob
from tenuto.model.endpoint import Endpoint
from tenuto.model.local_windows import with_local_windows
from tenuto.model.model_list import facts_from_list
from tenuto.model.transport import Transport
from tenuto.protocol.model import ModelFacts, ModelRequest, StreamPart

OPTIONAL = {
    "stream_options": "stream_options|include_usage",
    "reasoning_effort": "reasoning_effort|reasoning effort",
    "prompt_cache_key": "prompt_cache_key",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
}
"""Fields that some servers do not know, and how their refusals name them."""
OUTPUT_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
"""Two names of one thing."""


class ChatClient:
    """A client of one Chat Completions endpoint (see `ModelClient`)."""

    def __init__(self, endpoint: Endpoint, load_blob: LoadBlob, transport: Transport | None = None) -> None:
        self._endpoint = endpoint
        self._is_openai = endpoint.host.endswith("openai.com")
        self._wire = WireClient(
            endpoint, load_blob, ChatEncoder(endpoint.host), OPTIONAL, transport, alternatives=OUTPUT_LIMITS
        )

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart]:
        """Yield the parts of one answer, `Finished` last. Raises `ModelError`."""
        encoded = self._wire.cache.encode(request)
        url, headers = self._endpoint.url("/chat/completions"), self._headers()

        def prepare() -> Call:
            decoder = ChatDecoder(self._endpoint.provider, taken_ids(request.messages))
            return Call(url, headers, self._body(request, encoded), decoder, encoded.prefix)

        return self._wire.call(request, prepare)

    async def models(self) -> list[ModelFacts]:
        """Return what the server says of its models. Raises `ModelError`."""
        found = await self._wire.transport.get_json(self._endpoint.url("/models"), self._headers())
        facts = facts_from_list(self._endpoint.provider, found)
        if self._endpoint.is_local and not any(model.context_window for model in facts):
            return await with_local_windows(facts, self._endpoint.base_url, self._wire.transport)
        return facts

    async def count(self, request: ModelRequest) -> int | None:
        """Return `None`: this wire has no count."""
        del request
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if self._endpoint.key:
            headers["authorization"] = f"Bearer {self._endpoint.key}"
        return {**headers, **self._endpoint.headers}

    def _options(self, request: ModelRequest) -> dict[str, bytes]:
        """Return the optional fields that the server has not refused so far.

        OpenAI itself takes `max_completion_tokens`, the others know the older name.
        """
        field, other = "max_tokens", "max_completion_tokens"
        if self._is_openai:
            field, other = other, field
        if not self._wire.negotiation.allows(field):
            field = other
        options = {"stream_options": b'{"include_usage":true}', field: b"%d" % request.max_output_tokens}
        if request.effort:
            options["reasoning_effort"] = wire_json.encode(request.effort)
        if self._is_openai and request.cache_key:
            options["prompt_cache_key"] = wire_json.encode(request.cache_key)
        return {name: value for name, value in options.items() if self._wire.negotiation.allows(name)}

    def _body(self, request: ModelRequest, encoded: Encoded) -> bytes:
        """Return the request; the conversation comes last, so that each request begins with the one before it."""
        return join_object(
            [
                ("model", wire_json.encode(request.model.name)),
                ("stream", b"true"),
                *self._options(request).items(),
                ("tools", encoded.tools),
                ("messages", join_array([*encoded.head, *encoded.bodies])),
            ]
        )
