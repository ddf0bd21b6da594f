"""What the three wire clients share: an endpoint, a transport, encoded conversations, one call from start to end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from tenuto.model import json_access
from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Body, Transport, make_transport
from tenuto.model.wire.conversation import ConversationCache, LoadBlob, WireEncoder
from tenuto.model.wire.negotiation import Negotiation
from tenuto.model.wire.stream import StreamDecoder, finished, read_answer
from tenuto.protocol.model import Finished, ModelError, ModelRequest, StreamPart


class Call(Struct, frozen=True):
    """One request, ready to be sent, and what reads its answer. `prefix` is what the answer stores.

    `ignored` names a field that was asked for and that the server has refused before.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes
    decoder: StreamDecoder
    prefix: str
    ignored: str = ""


class WireClient:
    """The common ground of the clients; a wire adds its encoder, its decoder and its URLs."""

    def __init__(
        self,
        endpoint: Endpoint,
        load_blob: LoadBlob,
        encoder: WireEncoder,
        optional: Mapping[str, str],
        transport: Transport | None = None,
        *,
        alternatives: frozenset[str] = frozenset(),
    ) -> None:
        self.endpoint = endpoint
        self.transport = transport or make_transport(endpoint)
        self.cache = ConversationCache(encoder, load_blob)
        self.negotiation = Negotiation(optional, alternatives)

    async def call(self, request: ModelRequest, prepare: Callable[[], Call]) -> AsyncGenerator[StreamPart]:
        """Make a call: yield its deltas, then `Finished`. Raises `ModelError`.

        When the server refuses an optional field, the call is prepared without it and made again at once, and the
        field is left out from then on. The same bytes are never sent twice (R-002).
        """
        call = prepare()
        while True:
            started = False
            try:
                async with aclosing(self._attempt(request, call)) as parts:
                    async for part in parts:
                        started = True
                        yield part
            except ModelError as error:
                new = frozenset[str]() if started else self.negotiation.learn(error)
                refused, call = call, prepare() if new else call
                if call.body == refused.body and call.headers == refused.headers:
                    self.negotiation.forget(new)
                    raise
            else:
                return

    async def _attempt(self, request: ModelRequest, call: Call) -> AsyncGenerator[StreamPart]:
        self.check_size(call.body)
        chunks = self.transport.post_stream(call.url, call.headers, call.body)
        async with aclosing(chunks), aclosing(read_answer(chunks, call.decoder, self.endpoint.base_url)) as parts:
            async for part in parts:
                yield part
        end = finished(call.decoder.finish(), request.model, call.prefix, call.ignored)
        yield msgspec.structs.replace(end, dropped=self.negotiation.dropped)

    def check_size(self, body: bytes) -> None:
        """Raise `ModelError` for a body that is over the byte limit, before it is sent (R-053)."""
        limit = self.endpoint.max_request_bytes
        if len(body) > limit:
            text = f"the request has {len(body):,} bytes, the limit is {limit:,}"
            hint = "leave out images, or compact (/compact)"
            raise ModelError("too_many_bytes", text, observed=len(body), limit=limit, hint=hint)

    async def post_json(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Return the JSON object that a request is answered with. Raises `ModelError`."""
        answer = Body()
        chunks = self.transport.post_stream(url, headers, body)
        async with aclosing(chunks):
            async for chunk in chunks:
                answer.add(chunk)
        return json_access.decode_object(answer.data) or {}

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()


async def last_part(parts: AsyncGenerator[StreamPart]) -> Finished:
    """Read an answer to its end and return the last part alone. Raises `ModelError`."""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Finished):
                return part
    raise ModelError("broken_stream", "the stream ended before the answer was complete")


Field = tuple[str, bytes | Sequence[bytes]]
"""A field of a JSON object: its name and its value, encoded already, in one piece or in several."""


def join_object(fields: Iterable[Field]) -> bytes:
    """Return a JSON object; fields with empty values are left out.

    Every byte is copied once: a body may have megabytes and is built before each request.
    """
    pieces: list[bytes] = []
    for name, value in fields:
        if value:
            pieces.append(b'%s"%s":' % (b"," if pieces else b"{", name.encode()))
            if isinstance(value, bytes):
                pieces.append(value)
            else:
                pieces += value
    return b"".join((*pieces, b"}"))


def join_array(items: Iterable[bytes]) -> list[bytes]:
    """Return the pieces of a JSON array of items that are encoded already."""
    pieces = [b"["]
    for item in items:
        pieces += (item, b",")
    if len(pieces) > 1:
        pieces.pop()
    pieces.append(b"]")
    return pieces
