"""Gemini, at Google's own address or one that speaks like it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import quote

import msgspec

from tenuto.model.efforts import BUDGETS
from tenuto.model.endpoint import Endpoint
from tenuto.model.gemini.encoder import GeminiEncoder, join_contents
from tenuto.model.gemini.stream import GeminiDecoder
from tenuto.model.http.transport import Transport
from tenuto.model.wire.client import Call, Field, WireClient, join_array, join_object
from tenuto.model.wire.conversation import ConversationCache, Encoded, LoadBlob, taken_ids
from tenuto.model.wire.quirks import quirky_headers, with_quirks
from tenuto.protocol.model import ModelFacts, ModelRequest, StreamPart
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict, as_list, as_text

OPTIONAL = {
    "thinkingConfig": r"thinking_?config|thinking_?level|thinking_?budget|include_?thoughts|thinking (?:level|budget)"
}
"""Fields that older models do not know, and how their refusals name them."""
SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models that refuse calls without a thought signature."""
NO_THINKING = re.compile(r"gemini-(?:1|2[.-]0)|gemma")
LEVELLED = SIGNING
"""Models that are told a level; those before are told tokens."""
MAX_BUDGET = 24_576
"""Tokens: what every model that thinks in tokens takes."""
MAX_PAGES = 10
ONE_CALL: Field = ("", b"")
"""Gemini has no word for one call at a time."""


class GeminiClient:
    """A client of one Gemini endpoint (see `ModelClient`)."""

    def __init__(self, endpoint: Endpoint, load_blob: LoadBlob, transport: Transport | None = None) -> None:
        self._endpoint = endpoint
        encoder = GeminiEncoder(endpoint.provider, signs=True)
        self._wire = WireClient(endpoint, load_blob, encoder, OPTIONAL, transport)
        self._unsigned = ConversationCache(GeminiEncoder(endpoint.provider, signs=False), load_blob)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart]:
        """Yield the parts of one answer, `Finished` last. Raises `ModelError`."""
        url = self._url(request.model.name, "streamGenerateContent?alt=sse")

        def prepare() -> Call:
            encoded = self._encode(request)
            decoder = GeminiDecoder(self._endpoint.provider, taken_ids(request.messages))
            fields: list[Field] = [("generationConfig", self._config(request)), *self._conversation(encoded)]
            body = join_object(with_quirks(_unchosen(request), fields, ONE_CALL))
            # A view that ends with an answer is sent with a line after it that no later request has.
            prefix = "" if encoded.runs and encoded.runs[-1][0] else encoded.prefix
            return Call(url, quirky_headers(request, self._headers()), body, decoder, prefix)

        return self._wire.call(request, prepare)

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models, page by page. Raises `ModelError`."""
        facts: list[ModelFacts] = []
        page = ""
        for _ in range(MAX_PAGES):
            url = self._endpoint.url("/models?pageSize=1000") + (f"&pageToken={quote(page)}" if page else "")
            found = await self._wire.transport.get_json(url, self._headers())
            facts += [
                one
                for entry in as_list(found.get("models"))
                if (one := _facts(self._endpoint.provider, as_dict(entry)))
            ]
            page = as_text(found.get("nextPageToken"))
            if not page:
                break
        return facts

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's count of the request's tokens. Raises `ModelError`."""
        name = json_access.encode(f"models/{request.model.name}")
        inner = join_object([("model", name), *self._conversation(self._encode(request))])
        url = self._url(request.model.name, "countTokens")
        found = await self._wire.post_json(url, self._headers(), join_object([("generateContentRequest", inner)]))
        return as_count(found.get("totalTokens")) or None

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    def _url(self, name: str, method: str) -> str:
        return self._endpoint.url(f"/models/{quote(name)}:{method}")

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        return {**headers, **self._endpoint.key_headers(self._endpoint.key), **self._endpoint.headers}

    def _encode(self, request: ModelRequest) -> Encoded:
        return self._wire.encode(request, None if SIGNING.match(request.model.name) else self._unsigned)

    def _conversation(self, encoded: Encoded) -> list[Field]:
        """Return system instruction, tools and contents; these come last, so that requests share their start."""
        head = join_object([("parts", join_array(encoded.head))]) if encoded.head else b""
        return [("systemInstruction", head), ("tools", encoded.tools), ("contents", join_contents(encoded.runs))]

    def _config(self, request: ModelRequest) -> bytes:
        config: dict[str, Any] = {}
        if request.max_output_tokens is not None:
            config["maxOutputTokens"] = request.max_output_tokens
        quirks = request.model.quirks
        if quirks.temperature is not None:
            config["temperature"] = quirks.temperature
        if quirks.top_p is not None:
            config["topP"] = quirks.top_p
        if self._wire.negotiation.allows("thinkingConfig") and (thinking := _thinking(request)):
            config["thinkingConfig"] = thinking
        return json_access.encode(config) if config else b""


def _unchosen(request: ModelRequest) -> ModelRequest:
    """Return the request without what stands in the generation config, or has no word in this protocol."""
    quirks = msgspec.structs.replace(request.model.quirks, temperature=None, top_p=None, one_call=False)
    return msgspec.structs.replace(request, model=msgspec.structs.replace(request.model, quirks=quirks))


def _thinking(request: ModelRequest) -> dict[str, Any]:
    """Return how a model is to think: thoughts are shown where it has some; a level, or tokens for older ones."""
    name, effort = request.model.name, request.effort
    if NO_THINKING.match(name):
        return {}
    if LEVELLED.match(name):
        return {"includeThoughts": True, **({"thinkingLevel": effort.upper()} if effort else {})}
    if not name.startswith("gemini-2") and not effort:
        return {}
    if effort == "none":
        return {"thinkingBudget": 0}
    budget = BUDGETS.get(effort)
    return {"includeThoughts": True, **({"thinkingBudget": min(MAX_BUDGET, budget)} if budget else {})}


def _facts(provider: str, entry: dict[str, Any]) -> ModelFacts | None:
    """Return what the list says of one model, `None` for one that answers no conversation."""
    name = as_text(entry.get("name")).removeprefix("models/")
    methods = as_list(entry.get("supportedGenerationMethods"))
    if not name or (methods and "generateContent" not in methods):
        return None
    window = as_count(entry.get("inputTokenLimit")) or None
    output = as_count(entry.get("outputTokenLimit")) or None
    return ModelFacts(
        provider=provider,
        name=name,
        context_window=window,
        max_output_tokens=output,
        input_only_limit=True,
        thinking=bool(entry.get("thinking")),
        source="provider" if window else "default",
        output_source="provider" if output else "",
    )
