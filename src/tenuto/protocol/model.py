"""What passes between the core and a model client: the model's facts, a request, the parts of a stream, an error."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Literal, Protocol, runtime_checkable

import msgspec

from tenuto.protocol.message import AssistantMessage, Message, ToolSchema
from tenuto.protocol.part import WebSearch
from tenuto.protocol.usage import Usage

ErrorKind = Literal[
    "overflow",
    "output_budget",
    "too_many_bytes",
    "rate_limit",
    "request_too_large_for_rate",
    "overloaded",
    "quota",
    "auth",
    "not_found",
    "invalid",
    "bad_thinking",
    "broken_stream",
    "unreachable",
    "refused",
    "ambiguous",
    "server",
    "cancelled",
    "unknown",
]
RETRYABLE: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "broken_stream", "unreachable", "server"})


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """What the user's settings change in the requests of one model. `body`: JSON by the name of a field."""

    one_call: bool = False
    system_role: str = ""
    output_limit_field: str = ""
    temperature: float | None = None
    top_p: float | None = None
    body: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model. Token counts; `None` where nobody says; prices are US dollars per million tokens.

    `source` names where the window comes from: provider, settings, learned, catalogue (its address is known there),
    name (another provider's model of that name), nearest (an older version of its family), default. `output_source`
    and `price_source` say the same of the output limit and the prices, empty where there is none. `assumed_from` is
    the catalogue's model behind what comes by name or is nearest. `quirks` are what the
    settings change in its requests. `efforts` are the levels that it has, empty where
    nobody knows; with `thinks_in_budget` each of them is a number of tokens.
    """

    provider: str
    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    input_only_limit: bool = False
    can_summarise: bool = True
    images: bool = True
    thinking: bool = False
    efforts: tuple[str, ...] = ()
    thinks_in_budget: bool = False
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    source: str = "default"
    output_source: str = ""
    price_source: str = ""
    assumed_from: str = ""
    quirks: Quirks = Quirks()

    @property
    def id(self) -> str:
        """The model as the user writes it: `provider/name`."""
        return f"{self.provider}/{self.name}"


Family = Literal["claude", "gpt", "gemini", "other"]
"""Whose habits a model has: which tools and words it was trained on, whoever serves it."""
_START = r"(?:^|/|[a-z]\.|:)"
_FAMILIES: tuple[tuple[Family, str], ...] = (
    ("claude", rf"(?:{_START}|-)claude(?![a-z])"),
    ("gpt", rf"{_START}(?:(?:chat)?gpt(?![a-z]|-jt?(?![a-z])|-neo)|o[1-9](?![a-z\d])|codex(?![a-z]))"),
    ("gemini", rf"{_START}gemini(?![a-z])"),
)
"""Names begin after a gateway's prefixes: `openrouter/anthropic/…`, `us.anthropic.…`, `ft:…`."""


def family_of(facts: ModelFacts) -> Family:
    """Return the family of a model: what its name says, at whatever address it is served."""
    name = facts.name.lower()
    for family, pattern in _FAMILIES:
        if re.search(pattern, name):
            return family
    return "other"


RemoteWay = Literal["", "off", "request", "endpoint"]
"""How a provider is asked for a compaction: within a normal request, or at an address of its own; off: never; empty:
nobody chose it, and only the strategy of that name does it."""


class ServerContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the user lets the provider do with the context. Tokens; 0: not asked for.

    `compaction` is how a compaction of ours asks for the provider's. `compact_over`: the server compacts by itself in
    a normal request that is larger. `clear_over`: it hides old tool results in one that is larger, if at least
    `clear_at_least` are saved.
    """

    compaction: RemoteWay = ""
    compact_over: int = 0
    clear_over: int = 0
    clear_at_least: int = 0


WebSearchUse = Literal["", "off", "on"]
"""Whether a request has the provider's web search: not at all; not now, where it has it at other times; yes."""
WEB_SEARCH = "web_search"
"""The name of that tool, at every provider, and of what is dropped when a server refuses it."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `messages` is the view: the first is the system prompt, developer messages in their place.

    `max_output_tokens` is what this request may produce, `None` where the server's own limit holds. `cache_key` is
    stable for a session. `thinking=False` leaves every thinking block out (the one retry after a refused signature,
    and summaries). A client ignores what of `server` its provider does not have.
    """

    model: ModelFacts
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_output_tokens: int | None = None
    effort: str = ""
    cache_key: str = ""
    thinking: bool = True
    server: ServerContext = ServerContext()
    web_search: WebSearchUse = ""


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer's text."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    """More of the readable reasoning."""

    text: str


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A tool call begins (empty fragment) or grows; `index` is its place among the answer's calls."""

    index: int
    name: str = ""
    fragment: str = ""


class SearchDelta(msgspec.Struct, frozen=True):
    """The provider searches the web, or has done so; a later one with the same id stands for the earlier."""

    search: WebSearch


class ServerEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What the server left out of a request by itself: how many tool results, and their tokens."""

    cleared_results: int = 0
    cleared_tokens: int = 0


class CompactedItems(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's own compaction: `items` are sent first in later requests, in the place of what it covers.

    `text` is the summary as far as it can be read (empty: it cannot). `has_user_messages`: the user's own messages
    are among the items.
    """

    items: tuple[msgspec.Raw, ...]
    text: str = ""
    usage: Usage | None = None
    has_user_messages: bool = False


class Finished(msgspec.Struct, frozen=True):
    """The terminal event arrived: the whole answer, with usage, stop reason and prefix hash. Always the last part.

    `edit` is what the server left out of this request, `compacted` what it compacted in the middle of it; the items
    are not in the message. `ignored` names the field by which that was asked for, where the server does not know it;
    `dropped` the fields that are left out of every request because the server refused them.
    """

    message: AssistantMessage
    edit: ServerEdit | None = None
    compacted: CompactedItems | None = None
    ignored: str = ""
    dropped: tuple[str, ...] = ()


StreamPart = TextDelta | ThinkingDelta | ToolCallDelta | SearchDelta | Finished


class ModelError(Exception):
    """A model call that failed, classified once, where it happened.

    `observed` and `limit` are token numbers that the provider named; `retry_after` is seconds. `text` is the
    provider's own message, bounded; `str(error)` is one line for a user. `param` is the field of the request that
    the error object names, with dots (empty: none).
    """

    def __init__(
        self,
        kind: ErrorKind,
        text: str,
        *,
        status: int | None = None,
        observed: int | None = None,
        limit: int | None = None,
        retry_after: float | None = None,
        hint: str = "",
        param: str = "",
    ) -> None:
        super().__init__(f"{text} ({hint})" if hint else text)
        self.kind: ErrorKind = kind
        self.text = text
        self.status = status
        self.observed = observed
        self.limit = limit
        self.retry_after = retry_after
        self.hint = hint
        self.param = param


class ModelClient(Protocol):
    """One provider. A client keeps nothing between calls but its connection and encoding caches."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer; the last is `Finished`. Closing the iterator closes the connection.

        Raises `ModelError`; never retries by itself.
        """
        ...

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models; empty where it has no such list."""
        ...

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@runtime_checkable
class RemoteCompactor(Protocol):
    """A client whose provider compacts conversations itself; the others have no such method."""

    @property
    def ways(self) -> frozenset[str]:
        """The ways that the wire knows; whether the server does shows when it is asked."""
        ...

    async def compact(self, request: ModelRequest, *, instructions: str, focus: str) -> CompactedItems:
        """Return what stands for the whole conversation of `request`, asked for by `request.server.compaction`.

        `instructions` is how a summary is to be written, for a provider that can be told; `focus` what the user
        wants stressed. Raises `ModelError`, also when nothing usable comes back; never retries by itself.
        """
        ...


FIRST_DELAY = 0.5
FIRST_RATE_DELAY = 2.0
MAX_DELAY = 60.0
MAX_RETRY_AFTER = 300.0
"""Seconds. A provider that asks for more is not waited for: the error says how long it wants."""


def next_delay(error: ModelError, failures: int, attempts: int, jitter: float) -> float | None:
    """Return the seconds to wait before the next attempt, `None` when the error is final.

    `failures` counts from 1, `attempts` is how many repeats are allowed, `jitter` lies in 0 to 1. What the provider
    asks for (`Retry-After`) is waited for in full, never less (R-093).
    """
    if error.kind not in RETRYABLE or failures > attempts:
        return None
    if error.retry_after is not None:
        if error.retry_after > MAX_RETRY_AFTER:
            return None
        return error.retry_after + 0.25 * jitter
    first = FIRST_RATE_DELAY if error.kind in {"rate_limit", "overloaded"} else FIRST_DELAY
    return min(MAX_DELAY, first * 2 ** (failures - 1)) * (0.75 + 0.5 * jitter)


UNNAMED_OUTPUT = 32_000
"""Tokens of output that a request asks for, or is taken to have asked for, where nobody knows a number."""


def lowered_output(request: ModelRequest, error: ModelError) -> int:
    """Return the output limit that an error names, or half of the refused one (R-021)."""
    asked = request.max_output_tokens
    if error.limit is not None and 0 < error.limit < (asked or error.limit + 1):
        return error.limit
    return (asked or UNNAMED_OUTPUT) // 2
