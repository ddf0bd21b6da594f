"""Plays one reply of a script over a connection."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tenuto.evaluation.scripted import CALL, Counter
from tests.server.clouds import error_object, frame
from tests.server.connection import Connection
from tests.server.openai_compaction import ENDPOINT, compacted
from tests.server.options import Options
from tests.server.reply import AnyReply, Cut, Hang, HttpError, RawStream, Reply, StreamError, Tokens
from tests.server.request import Request

STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


@dataclass(slots=True)
class Playback:
    """What a reply needs to go out: where to, in answer to what, in which protocol.

    `size` is the prompt in tokens, `shared` how many of them the prefix cache would have read.
    """

    connection: Connection
    request: Request
    wire: ModuleType
    options: Options
    size: int
    shared: int

    async def play(self, reply: AnyReply) -> None:
        """Send the reply as its kind demands."""
        match reply:
            case Reply():
                await self.answer(reply)
            case HttpError():
                await self.connection.pause(reply.delay)
                await respond(self.connection, self.request, reply.status, reply.headers, self.error_body(reply))
            case StreamError():
                last = self.wire.stream_error(reply, self.request.body, self.request.index)
                await self.stream([*first(self.events(reply.reply), reply.after_events), last], reply.reply)
            case Cut():
                events = first(self.events(reply.reply), reply.after_events)
                await self.stream(events, reply.reply, finish=reply.how == "clean")
            case Hang():
                await self.hang(reply)
            case RawStream():
                pace = Reply(delay_per_event=reply.delay_per_event, headers={"content-type": reply.content_type})
                await self.stream(reply.chunks, pace)

    async def answer(self, reply: Reply) -> None:
        """Send a whole answer, streamed if the client asked for it."""
        if self.request.path == ENDPOINT:
            await self.connection.pause(reply.delay)
            tokens = count_tokens(reply, self.size, self.shared, self.options.counter)
            body = compacted(reply, self.request.body, tokens, self.request.index, self.options)
            await respond(self.connection, self.request, 200, reply.headers, encode(body))
            return
        if self.request.body.get("stream"):
            await self.stream(self.events(reply), reply)
            return
        await self.connection.pause(reply.delay)
        tokens = count_tokens(reply, self.size, self.shared, self.options.counter)
        body = self.wire.whole(reply, self.request.body, tokens, self.request.index, self.options)
        await respond(self.connection, self.request, 200, reply.headers, encode(body))

    def error_body(self, reply: HttpError) -> bytes:
        """Return the body of an HTTP error."""
        match reply.body:
            case None:
                return b""
            case bytes():
                return reply.body
            case str():
                return encode(error_object(self.request.cloud, self.wire, reply.status, reply.body))
            case _:
                return encode(reply.body)

    async def hang(self, reply: Hang) -> None:
        """Send nothing for a while, then the answer, or break off."""
        if reply.headers_first:
            self.request.status = 200
            self.connection.head(200, {**STREAM_HEADERS, "transfer-encoding": "chunked"})
        await self.connection.pause(reply.seconds)
        if reply.reply is None:
            self.connection.drop()
        elif reply.headers_first:
            await self.write(self.events(reply.reply), reply.reply)
        else:
            await self.answer(reply.reply)

    def events(self, reply: Reply) -> Iterator[bytes]:
        """Return the events of an answer."""
        tokens = count_tokens(reply, self.size, self.shared, self.options.counter)
        return self.wire.events(reply, self.request.body, tokens, self.request.index, self.options)

    async def stream(self, events: Iterable[bytes], pace: Reply, *, finish: bool = True) -> None:
        """Send a head, then the events."""
        await self.connection.pause(pace.delay)
        self.request.status = 200
        kind = {"content-type": "application/vnd.amazon.eventstream"} if self.request.cloud == "bedrock" else {}
        self.connection.head(200, {**STREAM_HEADERS, **pace.headers, **kind, "transfer-encoding": "chunked"})
        await self.write(events, pace, finish=finish)

    async def write(self, events: Iterable[bytes], pace: Reply, *, finish: bool = True) -> None:
        """Send the events at their pace; without `finish` the connection breaks after them."""
        self.request.started = time.monotonic()
        for place, data in enumerate(events):
            if place:
                await self.connection.pause(pace.delay_per_event)
            is_framed = self.request.cloud == "bedrock" and data.startswith(b"event:")
            self.connection.chunk(frame(data) if is_framed else data)
            await self.connection.drain()
        if not finish:
            self.connection.drop()
            return
        self.connection.chunk(b"")
        await self.connection.drain()
        self.request.ended = time.monotonic()


async def respond(connection: Connection, request: Request, status: int, headers: dict[str, str], body: bytes) -> None:
    """Send a response that is not a stream."""
    request.status = status
    request.started = time.monotonic()
    await connection.respond(status, {"request-id": "req_test", **headers}, body)
    request.ended = time.monotonic()


def encode(value: Any) -> bytes:
    """Return the JSON bytes of a value."""
    return json.dumps(value, ensure_ascii=False).encode()


def count_tokens(reply: Reply, size: int, shared: int, counter: Counter) -> Tokens:
    """Return the usage to report: the script's, else what was counted, with what the prefix cache would have read."""
    if reply.usage is not None:
        return reply.usage
    reasoning = counter.text(reply.thinking)
    calls = sum(CALL + counter.text(call.arguments) for call in reply.tool_calls)
    output = counter.text(reply.text) + reasoning + calls
    return Tokens(input=max(1, size - shared), output=max(1, output), cache_read=shared, reasoning=reasoning)


def first(events: Iterator[bytes], count: int) -> list[bytes]:
    """Return the first events of a stream."""
    return [event for _, event in zip(range(count), events, strict=False)]
