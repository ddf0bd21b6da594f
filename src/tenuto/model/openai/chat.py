"""OpenAI Chat Completions, and every server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Transport
from tenuto.model.model_list import facts_from_list
from tenuto.model.openai.chat_encoder import ChatEncoder, with_role
from tenuto.model.openai.chat_stream import ChatDecoder
from tenuto.model.wire.client import Call, Field, WireClient, join_array, join_object
from tenuto.model.wire.conversation import Encoded, LoadBlob, taken_ids
from tenuto.model.wire.quirks import quirky_headers, with_quirks
from tenuto.protocol.model import ModelError, ModelFacts, ModelRequest, StreamPart
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text


async def with_local_windows(facts: list[ModelFacts], base_url: str, transport: Transport) -> list[ModelFacts]:
    """Return the facts with the windows that LM Studio, llama.cpp or Ollama names in its own interface."""
    root = base_url.removesuffix("/v1")
    for path, read in (("/api/v0/models", _lm_studio), ("/props", _llama_cpp), ("/api/ps", _ollama)):
        try:
            windows = read(await transport.get_json(root + path, {}), facts)
        except ModelError as error:
            if error.kind == "unreachable":
                return facts
            continue
        if windows:
            return [_with_window(model, windows.get(model.name)) for model in facts]
    return facts


def _with_window(model: ModelFacts, window: int | None) -> ModelFacts:
    return model if not window else msgspec.structs.replace(model, context_window=window, source="provider")


def _lm_studio(found: dict[str, Any], facts: list[ModelFacts]) -> dict[str, int]:
    """LM Studio lists `loaded_context_length` of what is loaded, `max_context_length` of the rest."""
    del facts
    listed = facts_from_list("", found)
    return {model.name: model.context_window for model in listed if model.context_window}


def _llama_cpp(found: dict[str, Any], facts: list[ModelFacts]) -> dict[str, int]:
    """llama.cpp serves one model with one window for a slot."""
    window = as_count(as_dict(found.get("default_generation_settings")).get("n_ctx")) or as_count(found.get("n_ctx"))
    return {model.name: window for model in facts} if window else {}


def _ollama(found: dict[str, Any], facts: list[ModelFacts]) -> dict[str, int]:
    """Ollama tells the window of what is loaded."""
    del facts
    loaded = [as_dict(entry) for entry in as_list(found.get("models"))]
    windows = {as_text(entry.get("name")): as_count(entry.get("context_length")) for entry in loaded}
    return {name: window for name, window in windows.items() if name and window}


OPTIONAL = {
    "stream_options": "stream_options|include_usage",
    "reasoning_effort": "reasoning_effort|reasoning effort",
    "prompt_cache_key": "prompt_cache_key",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
}
"""Fields that some servers do not know, and how their refusals name them."""
ONE_CALL: Field = ("parallel_tool_calls", b"false")
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
        url, headers = self._endpoint.url("/chat/completions"), self._endpoint.bearer_headers()

        def prepare() -> Call:
            decoder = ChatDecoder(self._endpoint.provider, taken_ids(request.messages))
            return Call(url, quirky_headers(request, headers), self._body(request, encoded), decoder, encoded.prefix)

        return self._wire.call(request, prepare)

    async def models(self) -> list[ModelFacts]:
        """Return what the server says of its models. Raises `ModelError`."""
        found = await self._wire.transport.get_json(self._endpoint.url("/models"), self._endpoint.bearer_headers())
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

    def _options(self, request: ModelRequest) -> dict[str, bytes]:
        """Return the optional fields that the server has not refused so far.

        OpenAI itself takes `max_completion_tokens`, the others know the older name.
        """
        field, other = "max_tokens", "max_completion_tokens"
        if self._is_openai:
            field, other = other, field
        if not self._wire.negotiation.allows(field):
            field = other
        field = request.model.quirks.output_limit_field or field
        options = {"stream_options": b'{"include_usage":true}'}
        if request.max_output_tokens is not None and field != "none":
            options[field] = b"%d" % request.max_output_tokens
        if request.effort:
            options["reasoning_effort"] = json_access.encode(request.effort)
        if self._is_openai and request.cache_key:
            options["prompt_cache_key"] = json_access.encode(request.cache_key)
        return {name: value for name, value in options.items() if self._wire.negotiation.allows(name)}

    def _body(self, request: ModelRequest, encoded: Encoded) -> bytes:
        """Return the request; the conversation comes last, so that each request begins with the one before it."""
        head, bodies = with_role(request.model.quirks.system_role, encoded.head, encoded.bodies)
        fields: list[Field] = [
            ("model", json_access.encode(request.model.name)),
            ("stream", b"true"),
            *self._options(request).items(),
            ("tools", encoded.tools),
            ("messages", join_array([*head, *bodies])),
        ]
        return join_object(with_quirks(request, fields, ONE_CALL))
