"""OpenAI Chat Completions, and every server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tenuto.model import wire_json
from tenuto.model.calls import taken_ids
from tenuto.model.chat_encoder import ChatEncoder
from tenuto.model.chat_stream import ChatDecoder
from tenuto.model.client import WireClient, join_array, join_object
from tenuto.model.conversation import Encoded, LoadBlob
from tenuto.model.endpoint import Endpoint
from tenuto.model.model_list import facts_from_list
from tenuto.model.transport import Transport
from tenuto.protocol.model import ModelError, ModelFacts, ModelRequest, StreamPart

OPTIONAL = ("stream_options", "reasoning_effort", "prompt_cache_key", "max_tokens", "max_completion_tokens")


class ChatClient:
    """A client of one Chat Completions endpoint (see `ModelClient`)."""

    def __init__(self, endpoint: Endpoint, load_blob: LoadBlob, transport: Transport | None = None) -> None:
        self._endpoint = endpoint
        self._is_openai = endpoint.host.endswith("openai.com")
        self._wire = WireClient(endpoint, load_blob, ChatEncoder(endpoint.host), OPTIONAL, transport)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart]:
        """Yield the parts of one answer, `Finished` last. Raises `ModelError`.

        A field that the server does not know is left out and the request made again at once, and for good.
        """
        wire = self._wire
        encoded = wire.cache.encode(request)
        while True:
            options = self._options(request)
            body = self._body(request, options, encoded)
            decoder = ChatDecoder(self._endpoint.provider, taken_ids(request.messages))
            started = False
            try:
                call = wire.call(
                    self._endpoint.url("/chat/completions"), self._headers(), body, decoder, request, encoded.prefix
                )
                async with aclosing(call):
                    async for part in call:
                        started = True
                        yield part
            except ModelError as error:
                if started or not wire.negotiation.learn(error, options):
                    raise
            else:
                return

    async def models(self) -> list[ModelFacts]:
        """Return what the server says of its models. Raises `ModelError`."""
        found = await self._wire.transport.get_json(self._endpoint.url("/models"), self._headers())
        return facts_from_list(self._endpoint.provider, found)

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
        """Return the optional fields that the server has not refused so far."""
        fields = ("max_completion_tokens", "max_tokens") if self._is_openai else ("max_tokens", "max_completion_tokens")
        field = fields[0] if self._wire.negotiation.allows(fields[0]) else fields[1]
        options = {
            "stream_options": b'{"include_usage":true}',
            field: b"%d" % request.max_output_tokens,
        }
        if request.effort:
            options["reasoning_effort"] = wire_json.encode(request.effort)
        if self._is_openai and request.cache_key:
            options["prompt_cache_key"] = wire_json.encode(request.cache_key)
        return {name: value for name, value in options.items() if self._wire.negotiation.allows(name)}

    def _body(self, request: ModelRequest, options: dict[str, bytes], encoded: Encoded) -> bytes:
        """Return the request; the conversation comes last, so that each request begins with the one before it."""
        messages = join_array([*encoded.head, *encoded.bodies])
        return join_object(
            [
                ("model", wire_json.encode(request.model.name)),
                ("stream", b"true"),
                *options.items(),
                ("tools", encoded.tools),
                ("messages", messages),
            ]
        )
