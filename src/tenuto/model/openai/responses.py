"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Transport
from tenuto.model.model_list import facts_from_list
from tenuto.model.openai.responses_encoder import (
    ENDPOINT,
    MANAGEMENT,
    TRIGGER,
    TRIGGER_TYPE,
    ResponsesEncoder,
    context_management,
    encode_message,
    input_text,
    read_endpoint_output,
    the_one,
)
from tenuto.model.openai.responses_stream import ResponsesDecoder, normal_usage
from tenuto.model.openai.web_search import ALLOWED_REFUSAL, REFUSAL, SOURCES, TOOL, allow_others
from tenuto.model.wire.client import Call, Field, Negotiation, WireClient, join_array, join_object, last_part
from tenuto.model.wire.conversation import ConversationCache, Encoded, LoadBlob, taken_ids
from tenuto.model.wire.quirks import quirky_headers, with_quirks
from tenuto.model.wire.stream import priced
from tenuto.protocol.model import WEB_SEARCH, CompactedItems, ModelError, ModelFacts, ModelRequest, StreamPart
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_dict

ONE_CALL: Field = ("parallel_tool_calls", b"false")
MIN_OUTPUT_TOKENS = 16
TOOL_CHOICE = "tool_choice"
OPENAI, OPENAI_HOSTS = "openai", ("openai.com", "openai.azure.com")
WAYS = frozenset({"request", "endpoint"})
FREEFORM_TOOLS = "custom tools"
FREEFORM_REFUSAL = (
    r"(?:tool )?type[\s:='\"`]+custom(?!\w)|custom(?:[ _-]tool(?:s|_calls?)?)?(?!\w)"
    r"|(?:body\.)?tools(?:\[\d+\]|\.\d+)\.(?:type|format|custom)"
)
OPTIONAL = {
    "reasoning.summary": r"reasoning\.summary|reasoning summar(?:y|ies)",
    "reasoning": r"reasoning(?:\.effort)?(?! summar)(?!\.summary)",
    "include": r"include|reasoning\.encrypted_content|encrypted content",
    "prompt_cache_key": "prompt_cache_key",
    "max_output_tokens": "max_output_tokens",
    MANAGEMENT: f"{MANAGEMENT}|compact_threshold",
    WEB_SEARCH: REFUSAL,
    TOOL_CHOICE: ALLOWED_REFUSAL,
    FREEFORM_TOOLS: FREEFORM_REFUSAL,
}
"""Fields that some models and servers do not know, and how their refusals name them."""


class ResponsesClient:
    """A client of one Responses endpoint (see `ModelClient`)."""

    def __init__(self, endpoint: Endpoint, load_blob: LoadBlob, transport: Transport | None = None) -> None:
        self._endpoint = endpoint
        self._trigger = Negotiation({TRIGGER_TYPE: TRIGGER_TYPE})
        # Tools that take one text are known at OpenAI alone; where that turns out to be wrong, they are functions.
        knows = endpoint.provider == OPENAI or endpoint.host.endswith(OPENAI_HOSTS)
        encoder = ResponsesEncoder(endpoint.provider, freeform=knows)
        others = frozenset({FREEFORM_TOOLS})
        self._wire = WireClient(endpoint, load_blob, encoder, OPTIONAL, transport, alternatives=others)
        self._plain = ConversationCache(ResponsesEncoder(endpoint.provider), load_blob)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart]:
        """Yield the parts of one answer, `Finished` last. Raises `ModelError`."""
        url, headers = self._endpoint.url("/responses"), self._endpoint.bearer_headers()

        def prepare() -> Call:
            encoded = self._encode(request)
            decoder = ResponsesDecoder(self._endpoint.provider, taken_ids(request.messages))
            body = self._body(request, encoded)
            ignored = self._wire.negotiation.ignored(MANAGEMENT, context_management(request.server))
            return Call(url, quirky_headers(request, headers), body, decoder, encoded.prefix, ignored)

        return self._wire.call(request, prepare)

    @property
    def ways(self) -> frozenset[str]:
        """The ways of compacting that this wire knows (see `RemoteCompactor`)."""
        return WAYS

    async def compact(self, request: ModelRequest, *, instructions: str, focus: str) -> CompactedItems:
        """Return what stands for the conversation (see `RemoteCompactor`). The provider takes no instructions.

        A server that does not know the trigger is asked at the endpoint, from then on at once.
        """
        del instructions
        encoded = self._encode(request)
        wish = [encode_message("developer", [input_text(focus)])] if focus else []
        if request.server.compaction == "request" and self._trigger.allows(TRIGGER_TYPE):
            try:
                return await self._compact_by_trigger(request, encoded, wish)
            except ModelError as error:
                if not self._trigger.learn(error, is_value=True):
                    raise
        return await self._compact_at_endpoint(request, encoded, wish)

    async def _compact_by_trigger(self, request: ModelRequest, encoded: Encoded, wish: list[bytes]) -> CompactedItems:
        """Ask by the last item of a request that is otherwise like every other."""

        def prepare() -> Call:
            decoder = ResponsesDecoder(self._endpoint.provider, set())
            body = self._body(request, encoded, [*wish, TRIGGER])
            return Call(self._endpoint.url("/responses"), self._endpoint.bearer_headers(), body, decoder, "")

        end = await last_part(self._wire.call(request, prepare))
        if end.compacted is None and end.message.stop_reason == "max_tokens":
            raise ModelError("invalid", "the provider's compaction was cut off at the output limit")
        return msgspec.structs.replace(the_one(end.compacted), usage=end.message.usage)

    async def _compact_at_endpoint(self, request: ModelRequest, encoded: Encoded, wish: list[bytes]) -> CompactedItems:
        """Ask at the address that is for nothing else; it takes no tools and does not stream."""
        key = json_access.encode(request.cache_key) if request.cache_key else b""
        fields = [field for field in self._conversation(request, encoded, wish) if field[0] != "tools"]
        body = join_object([*fields, ("prompt_cache_key", key)])
        self._wire.check_size(body)
        found = await self._wire.post_json(self._endpoint.url(ENDPOINT), self._endpoint.bearer_headers(), body)
        usage = normal_usage(as_dict(found.get("usage")))
        items = read_endpoint_output(found)
        return msgspec.structs.replace(items, usage=None if usage is None else priced(usage, request.model))

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models. Raises `ModelError`."""
        found = await self._wire.transport.get_json(self._endpoint.url("/models"), self._endpoint.bearer_headers())
        return facts_from_list(self._endpoint.provider, found)

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's count of the request's tokens. Raises `ModelError`."""
        body = join_object(self._conversation(request, self._encode(request)))
        found = await self._wire.post_json(
            self._endpoint.url("/responses/input_tokens"), self._endpoint.bearer_headers(), body
        )
        return as_count(found.get("input_tokens")) or None

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    def _body(self, request: ModelRequest, encoded: Encoded, further: Sequence[bytes] = ()) -> bytes:
        """Return the request. Nothing is stored at the provider; reasoning comes back encrypted instead.

        `further` items come after the conversation; with them it is a compaction that is asked for.
        """
        output = request.max_output_tokens
        options = {
            "prompt_cache_key": json_access.encode(request.cache_key) if request.cache_key else b"",
            "max_output_tokens": b"" if output is None else b"%d" % max(MIN_OUTPUT_TOKENS, output),
            "reasoning": self._reasoning(request),
            "include": self._include(request, encoded),
            TOOL_CHOICE: allow_others(encoded.tools) if request.web_search == "off" and _searches(encoded) else b"",
            MANAGEMENT: b"" if further else context_management(request.server),
        }
        allowed: list[Field] = [(name, value) for name, value in options.items() if self._wire.negotiation.allows(name)]
        model, *conversation = self._conversation(request, encoded, further)
        fields = [model, ("stream", b"true"), ("store", b"false"), *allowed, *conversation]
        return join_object(with_quirks(request, fields, ONE_CALL))

    def _encode(self, request: ModelRequest) -> Encoded:
        """Return the conversation without what the server has refused: tools that take one text are functions then, and
        there is no web search where it cannot be switched off.
        """
        if request.web_search == "off" and not self._wire.negotiation.allows(TOOL_CHOICE):
            request = msgspec.structs.replace(request, web_search="")
        return self._wire.encode(request, None if self._wire.negotiation.allows(FREEFORM_TOOLS) else self._plain)

    def _include(self, request: ModelRequest, encoded: Encoded) -> bytes:
        """Return what an answer is to hold beyond the usual; empty bytes for nothing."""
        wanted = ["reasoning.encrypted_content"] if request.model.thinking else []
        wanted += [SOURCES] if _searches(encoded) else []
        return json_access.encode(wanted) if wanted else b""

    def _reasoning(self, request: ModelRequest) -> bytes:
        """Return the `reasoning` field for a model that reasons, or that the user asks to; else empty bytes."""
        fields: dict[str, str] = {}
        if request.effort:
            fields["effort"] = request.effort
        if request.model.thinking and self._wire.negotiation.allows("reasoning.summary"):
            fields["summary"] = "auto"
        return json_access.encode(fields) if fields else b""

    def _conversation(self, request: ModelRequest, encoded: Encoded, further: Sequence[bytes] = ()) -> list[Field]:
        """Return model, instructions, tools and input; the input comes last, so that requests share their start."""
        instructions, summaries = encoded.head[:1], encoded.head[1:]
        return [
            ("model", json_access.encode(request.model.name)),
            ("instructions", instructions[0] if instructions else b""),
            ("tools", encoded.tools),
            ("input", join_array([*summaries, *encoded.bodies, *further])),
        ]


def _searches(encoded: Encoded) -> bool:
    return encoded.tools.endswith(b",%s]" % TOOL)
