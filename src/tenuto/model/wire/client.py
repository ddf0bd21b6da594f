"""What the three wire clients share: an endpoint, a transport, encoded conversations, one call from start to end.

Optional request fields that a server does not know are left out once it said so, and that is remembered.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import Body, Transport, make_transport
from tenuto.model.wire.conversation import ConversationCache, Encoded, LoadBlob, WireEncoder
from tenuto.model.wire.stream import StreamDecoder, finished, read_answer
from tenuto.protocol.model import WEB_SEARCH, Finished, ModelError, ModelRequest, StreamPart
from tenuto.text import json_access
from tenuto.text.late import late

_KIND = r"(?:parameters?|arguments?|fields?|propert(?:y|ies)|keys?|inputs?|options?|headers?|values?|types?)(?:\(s\))?"
_UNKNOWN = r"(?:unsupported|unrecogni[sz]ed|unknown|unexpected|extra|additional|disallowed)"
_NOT = (
    r"(?:(?:is|are|was|were) )?(?:not (?:currently )?(?:supported|permitted|allowed|recogni[sz]ed|known|available|"
    r"enabled)|unsupported|unknown|unrecogni[sz]ed|unexpected|forbidden)|cannot be used|can't be used|must be verified"
)
_QUOTE = r"[\s:\[({'\"`]*"
_FORMS = (
    # Unsupported parameter: 'X' · unknown field `X` · Unrecognized request argument supplied: X
    rf"{_UNKNOWN} (?:\w+ ){{0,2}}?{_KIND}(?: (?:supplied|provided|found|received|passed))?{_QUOTE}"
    rf"(?:[\w.]+['\"`]*, ?['\"`]?){{0,6}}(?:FIELD)(?![\w-])",
    # 'X' is not supported · X: Extra inputs are not permitted · X cannot be used with this model
    rf"(?<![\w.-])(?:FIELD)(?:\.\w+)*['\"`)\]]*:? ?(?:{_KIND} )?(?:[\w ]{{0,12}} )?"
    rf"(?:{_NOT}|extra inputs are not permitted)",
    # does not support X · Argument not supported on this model: X
    rf"(?:does not|doesn't|do not) support (?:the |parameter |field |setting )*{_QUOTE}(?:FIELD)(?![\w-])",
    rf"not supported (?:\w+ ){{0,4}}?\w*:{_QUOTE}(?:FIELD)(?![\w-])",
    # 'X' does not support 'minimal': the value is refused, and nothing tells another one
    r"(?<![\w.-])(?:FIELD)(?:\.\w+)*['\"`]* (?:does not|doesn't) support",
    # Input tag 'X' found using 'type' does not match any of the expected tags · Invalid value: 'X'
    rf"(?:input tag|invalid value:?|tools? of type|tool types?:?){_QUOTE}(?:FIELD)(?![\w-])",
    # Your organization must be verified to generate reasoning summaries
    r"must be verified[^.]{0,60}(?:FIELD)(?![\w-])",
    # no such parameter: X
    rf"no such {_KIND}{_QUOTE}(?:FIELD)(?![\w-])",
)
_ADVICE = late(
    r"\b(?:please )?(?:use|try)\b|\bsupported (?:values|parameters|fields|types)\b|\bexpected one of\b"
    r"|\bmust be one of\b|\b(?:allowed|valid|available) (?:values|options|fields|parameters)\b|\bmoved to\b",
    re.IGNORECASE,
)
"""What comes after is what may be sent."""


class Negotiation:
    """Which of a client's optional fields its server has refused.

    `optional` gives for each field the words (a regular expression) by which a refusal names it. Of `alternatives` one
    takes the place of the other, so that nothing is missing when one is refused.
    """

    def __init__(self, optional: Mapping[str, str], alternatives: frozenset[str] = frozenset()) -> None:
        self._optional = optional
        self._alternatives = alternatives
        self._refused: set[str] = set()

    @property
    def dropped(self) -> tuple[str, ...]:
        """The fields that are left out from now on and that nothing stands for, in the order of their names."""
        return tuple(sorted(self._refused - self._alternatives))

    def allows(self, field: str) -> bool:
        """Whether the field may be sent."""
        return field not in self._refused

    def ignored(self, field: str, wanted: bytes) -> str:
        """Return the field's name if a value for it is wanted and the server has refused it, else an empty text."""
        return field if wanted and not self.allows(field) else ""

    def learn(self, error: ModelError, *, is_value: bool = False) -> frozenset[str]:
        """Note the fields that an error refuses, and return those that are new.

        `is_value`: the names are values (kinds of items), so that a refused value is what is looked for.
        """
        if error.kind not in {"invalid", "not_found", "unknown"}:
            return frozenset()
        new = frozenset(field for field in self._named(error, is_value=is_value) if field not in self._refused)
        self._refused |= new
        return new

    def forget(self, fields: frozenset[str]) -> None:
        """Take back what was noted: leaving the fields out has changed nothing."""
        self._refused -= fields

    def _named(self, error: ModelError, *, is_value: bool) -> set[str]:
        complaint = " ".join(_ADVICE.split(error.text, maxsplit=1)[0].split())
        if is_value and re.search(rf"invalid|{_SAYS_NO.pattern}", complaint, re.IGNORECASE):
            return {field for field, words in self._optional.items() if re.search(words, complaint)}
        if not error.param:
            return {field for field, words in self._optional.items() if _is_refused(words, complaint)}
        at = {field for field, words in self._optional.items() if _is_at(words, error.param)}
        if error.param.startswith("tools"):  # which tool it is stands in the sentence, in quotes
            said = {name for name, words in self._optional.items() if re.search(rf"['\"`](?:{words})['\"`]", complaint)}
            at = said or at
        return at if _SAYS_NO.search(complaint) else set()


_SAYS_NO = late(
    rf"{_UNKNOWN}|{_NOT}|(?:does not|doesn't) support|no such|not a valid|invalid value|extra inputs|"
    r"(?:expected|should be) 'function'",
    re.IGNORECASE,
)


def _is_at(words: str, place: str) -> bool:
    """Say whether the place that an error object names is the field, or within it."""
    return re.match(rf"(?:{words})(?:$|[.\[])", place, re.IGNORECASE) is not None


def _is_refused(words: str, complaint: str) -> bool:
    return any(re.search(form.replace("FIELD", words), complaint, re.IGNORECASE) for form in _FORMS)


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

    def encode(self, request: ModelRequest, cache: ConversationCache | None = None) -> Encoded:
        """Return the request's conversation, without the provider's web search where it was refused.

        `cache`: of another encoder than the client's own.
        """
        if request.web_search and not self.negotiation.allows(WEB_SEARCH):
            request = msgspec.structs.replace(request, web_search="")
        return (cache or self.cache).encode(request)

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
        price = self.endpoint.search_price
        end = finished(call.decoder.finish(), request.model, call.prefix, call.ignored, search_price=price)
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
