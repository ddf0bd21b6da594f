"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from urllib.parse import quote

import msgspec

from tenuto.model.anthropic.encoder import (
    CACHE_MARK,
    CLEAR_TOOL_USES,
    COMPACTION,
    COMPACTION_BETA,
    EDITING_BETA,
    MANAGEMENT,
    AnthropicEncoder,
    ask_on,
    begins_with_block,
    can_think,
    compaction_field,
    editing_field,
    explain_absence,
    join_betas,
    join_messages,
)
from tenuto.model.anthropic.stream import AnthropicDecoder
from tenuto.model.anthropic.web_search import REFUSAL, is_paused_search, open_queries
from tenuto.model.efforts import thinking_budget
from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Transport
from tenuto.model.model_list import facts_from_list
from tenuto.model.wire.client import Call, Field, Negotiation, WireClient, join_array, join_object, last_part
from tenuto.model.wire.conversation import Encoded, LoadBlob, Run, taken_ids
from tenuto.model.wire.quirks import quirky_headers, with_quirks
from tenuto.protocol.model import (
    UNNAMED_OUTPUT,
    WEB_SEARCH,
    CompactedItems,
    ModelError,
    ModelFacts,
    ModelRequest,
    StreamPart,
)
from tenuto.text import json_access
from tenuto.text.json_access import as_count, as_text

VERSION = "2026-10-21"
ONE_CALL: Field = ("tool_choice", b'{"type":"auto","disable_parallel_tool_use":true}')
MAX_MARKS = 4
MAX_PAGES = 10
WAYS = frozenset({"request"})
OPTIONAL = {
    "thinking": "thinking|adaptive",
    "output_config": "output_config|effort",
    MANAGEMENT: f"{MANAGEMENT}|{CLEAR_TOOL_USES}|{EDITING_BETA}",
    WEB_SEARCH: REFUSAL,
}
"""Fields that gateways and older models do not know, and how their refusals name them."""


class AnthropicClient:
    """A client of one Anthropic endpoint (see `ModelClient`)."""

    def __init__(self, endpoint: Endpoint, load_blob: LoadBlob, transport: Transport | None = None) -> None:
        self._endpoint = endpoint
        encoder = AnthropicEncoder(endpoint.provider, is_vendors_own=endpoint.is_vendors_own)
        self._wire = WireClient(endpoint, load_blob, encoder, OPTIONAL, transport)
        self._compaction = Negotiation({COMPACTION: f"{COMPACTION}|{COMPACTION_BETA}"})

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart]:
        """Yield the parts of one answer, `Finished` last. Raises `ModelError`."""
        url = self._endpoint.url("/v1/messages")

        def prepare() -> Call:
            encoded = self._wire.encode(request)
            queries = open_queries(request.messages)
            decoder = AnthropicDecoder(self._endpoint.provider, taken_ids(request.messages), queries)
            runs = encoded.runs if is_paused_search(request.messages) else ask_on(encoded.runs)
            # A view that ends with an answer is sent with a line after it that no later request has.
            prefix = encoded.prefix if len(runs) == len(encoded.runs) else ""
            wanted = editing_field(request.server)
            ignored = self._wire.negotiation.ignored(MANAGEMENT, wanted)
            editing = b"" if ignored else wanted
            head: list[Field] = [
                ("max_tokens", b"%d" % (request.max_output_tokens or UNNAMED_OUTPUT)),
                ("stream", b"true"),
                (MANAGEMENT, editing),
            ]
            headers = self._headers(request, EDITING_BETA if editing else "")
            body = self._body(request, encoded, head, runs)
            return Call(url, quirky_headers(request, headers), body, decoder, prefix, ignored)

        return self._wire.call(request, prepare)

    @property
    def ways(self) -> frozenset[str]:
        """The ways of compacting that this wire knows and the server has not refused (see `RemoteCompactor`)."""
        return WAYS if self._compaction.allows(COMPACTION) else frozenset()

    async def compact(self, request: ModelRequest, *, instructions: str, focus: str) -> CompactedItems:
        """Return the signed block that stands for the conversation (see `RemoteCompactor`).

        That a server does not have this beta is remembered.
        """
        encoded = self._wire.encode(request)
        head: list[Field] = [
            ("max_tokens", b"%d" % (request.max_output_tokens or UNNAMED_OUTPUT)),
            ("stream", b"true"),
            (COMPACTION, compaction_field(instructions, focus)),
        ]

        def prepare() -> Call:
            decoder = AnthropicDecoder(self._endpoint.provider, set())
            body = self._body(request, encoded, head, encoded.runs)
            headers = self._headers(request, COMPACTION_BETA)
            return Call(self._endpoint.url("/v1/messages"), headers, body, decoder, "")

        try:
            end = await last_part(self._wire.call(request, prepare))
        except ModelError as error:
            self._compaction.learn(error)
            raise
        if end.compacted is None or len(end.compacted.items) != 1:
            raise explain_absence(end.message.stop_reason)
        return msgspec.structs.replace(end.compacted, usage=end.message.usage)

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models, page by page. Raises `ModelError`."""
        facts: list[ModelFacts] = []
        after = ""
        for _ in range(MAX_PAGES):
            url = self._endpoint.url("/v1/models?limit=1000") + (f"&after_id={quote(after)}" if after else "")
            found = await self._wire.transport.get_json(url, self._headers())
            facts += facts_from_list(self._endpoint.provider, found)
            after = as_text(found.get("last_id"))
            if not (found.get("has_more") and after):
                break
        return facts

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's count of the request's tokens. Raises `ModelError`."""
        encoded = self._wire.encode(request)
        body = self._body(request, encoded, [], ask_on(encoded.runs))
        url = self._endpoint.url("/v1/messages/count_tokens")
        found = await self._wire.post_json(url, self._headers(request), body)
        return as_count(found.get("input_tokens")) or None

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    def _headers(self, request: ModelRequest | None = None, beta: str = "") -> dict[str, str]:
        """Return the headers. A request that carries a compaction block names its beta (anchors A1.9)."""
        endpoint = self._endpoint
        headers = {"content-type": "application/json", "anthropic-version": VERSION}
        headers |= endpoint.key_headers(endpoint.key)
        headers.update(endpoint.headers)
        carries = request is not None and begins_with_block(request.messages, endpoint.provider)
        own = [headers.pop(name) for name in list(headers) if name.lower() == "anthropic-beta"]
        betas = join_betas(*own, beta, COMPACTION_BETA if carries else "")
        return {**headers, "anthropic-beta": betas} if betas else headers

    def _body(self, request: ModelRequest, encoded: Encoded, head: list[Field], runs: Sequence[Run]) -> bytes:
        """Return the request with its cache marks: the end of each of the first two system blocks, then of as many of
        the last user messages as are left of four.

        The mark on the user message before the last stands where the last request ended, so it hits exactly,
        however many blocks one step adds (DESIGN section 3).
        """
        system = [block[:-1] + CACHE_MARK if place < 2 else block for place, block in enumerate(encoded.head)]
        marks = MAX_MARKS - min(2, len(system))
        fields: list[Field] = [
            ("model", json_access.encode(request.model.name)),
            *head,
            *self._thinking(request),
            ("tools", encoded.tools),
            ("system", join_array(system) if system else b""),
            ("messages", join_messages(runs, marks)),
        ]
        return join_object(with_quirks(request, fields, ONE_CALL) if head else fields)

    def _thinking(self, request: ModelRequest) -> list[Field]:
        """Return the fields for thinking and effort, where the model has them and the server takes them."""
        facts, effort = request.model, request.effort
        if facts.thinks_in_budget:
            return self._budget(request)
        fields: list[Field] = []
        if facts.thinking and self._wire.negotiation.allows("thinking"):
            kind = b'{"type":"disabled"}' if effort == "none" else b'{"type":"adaptive","display":"summarized"}'
            fields.append(("thinking", kind))
        if effort not in ("", "none") and self._wire.negotiation.allows("output_config"):
            fields.append(("output_config", json_access.encode({"effort": effort})))
        return fields

    def _budget(self, request: ModelRequest) -> list[Field]:
        """Return the field for thinking of a model that is told how many tokens it may take; none by default.

        Within a turn that began without thinking it stays off: the API takes no such answer back with it.
        """
        budget = thinking_budget(request.effort, request.max_output_tokens or UNNAMED_OUTPUT)
        may_think = self._wire.negotiation.allows("thinking") and can_think(request, self._endpoint.provider)
        if not (budget and may_think):
            return []
        return [("thinking", b'{"type":"enabled","budget_tokens":%d}' % budget)]
