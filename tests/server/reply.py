"""What a script answers with, independent of the protocol."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tests.server.request import Request

Stop = Literal["end_turn", "tool_use", "max_tokens", "refusal", "pause", "window_exceeded", "stop_sequence"]


@dataclass(slots=True)
class Call:
    """A tool call; `args` as a string is sent as it is, broken JSON included. `id` is made up when empty."""

    name: str
    args: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def arguments(self) -> str:
        """The arguments as they go over the wire."""
        return self.args if isinstance(self.args, str) else json.dumps(self.args, ensure_ascii=False)


@dataclass(slots=True)
class Search:
    """A web search of the server's own. `pages` are titles and addresses, `error` is why there are none.

    `part` (Anthropic): "begun" has no result yet, which comes with the next answer; "found" is that result, with the
    `id` of its search.
    """

    query: str
    pages: Sequence[tuple[str, str]] = ()
    error: str = ""
    part: Literal["whole", "begun", "found"] = "whole"
    id: str = ""


@dataclass(slots=True)
class Tokens:
    """A usage to report; `input` leaves out what the cache read or wrote."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(slots=True)
class Reply:
    """A complete answer: thinking, then searches, then text, which cites what they found, then calls.

    `usage` is estimated (with prefix-cache hits) when left out. `delay` is seconds before the first byte,
    `delay_per_event` seconds before each event after the first. `chunk_size` is characters a delta. `reason` is a stop
    reason in the wire's own words, sent as it is.
    """

    text: str = ""
    thinking: str = ""
    tool_calls: Sequence[Call] = ()
    searches: Sequence[Search] = ()
    usage: Tokens | None = None
    stop: Stop | None = None
    reason: str = ""
    delay: float = 0.0
    delay_per_event: float = 0.0
    chunk_size: int = 48
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def stop_reason(self) -> Stop:
        """The stop reason, from the calls where none is given."""
        return self.stop or ("tool_use" if self.tool_calls else "end_turn")


@dataclass(slots=True)
class HttpError:
    """An HTTP error instead of a stream. `body`: text (put into the provider's error object), a JSON object or bytes
    (sent as they are), or nothing at all."""

    status: int
    body: str | dict[str, Any] | bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass(slots=True)
class StreamError:
    """An error inside the stream after some events of `reply`.

    `error` is a code (`overloaded_error`, `context_length_exceeded`, ...) or the provider's error object. `shape` is
    for Responses: `failed` (a `response.failed` event), `error` (nested) or `flat`.
    """

    after_events: int = 3
    error: str | dict[str, Any] = "overloaded_error"
    reply: Reply = field(default_factory=lambda: Reply("A text that is never finished. " * 8))
    shape: Literal["failed", "error", "flat"] = "failed"


@dataclass(slots=True)
class Cut:
    """The stream stops after some events: `drop` breaks the connection, `clean` ends the body as if it were whole."""

    reply: Reply
    after_events: int = 3
    how: Literal["drop", "clean"] = "drop"


@dataclass(slots=True)
class Hang:
    """Nothing for so many seconds, or until the client leaves; then `reply`, or a dropped connection.

    `headers_first` sends the head of the response at once and hangs in the body.
    """

    seconds: float = 3600.0
    reply: Reply | None = None
    headers_first: bool = False


@dataclass(slots=True)
class RawStream:
    """Bytes of a stream as they are, a chunk an item: for what no well-behaved server sends."""

    chunks: Sequence[bytes]
    delay_per_event: float = 0.0
    content_type: str = "text/event-stream"


AnyReply = Reply | HttpError | StreamError | Cut | Hang | RawStream
Script = Sequence[AnyReply] | Callable[["Request"], AnyReply | Awaitable[AnyReply]]
