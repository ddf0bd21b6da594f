"""From bytes to server-sent events to the parts of one answer: what all wires have in common."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from tenuto.protocol.message import AssistantMessage, StopReason
from tenuto.protocol.model import (
    CompactedItems,
    Finished,
    ModelError,
    ModelFacts,
    ServerEdit,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from tenuto.protocol.part import AssistantPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.text.bounding import shorten
from tenuto.text.json_access import MAX_QUOTED, clean_text
from tenuto.text.late import late

MAX_EVENT_BYTES = 16_000_000
"""The largest that was ever seen is the last event of a Responses stream, with the whole answer in it."""
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry")
_OTHER_FIELD = late(rb"[A-Za-z][\w-]{0,31}:?\Z|[A-Za-z][\w-]{0,31}:")
_LINE = late(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")


class ServerEvent(NamedTuple):
    """One event: its name (empty when it has none) and its data, still bytes of UTF-8."""

    name: str
    data: bytes


class EventReader:
    """Cuts a byte stream into events.

    Works on bytes and splits only on CR, LF and CR LF, so a chunk may end anywhere, also inside a character, and
    U+2028 is no line end. An event that no blank line closes is not an event (the stream was cut).
    """

    def __init__(self) -> None:
        self._rest = b""
        self._taken = self._pending = 0
        """Bytes of the event that is not complete yet: in whole lines, and behind them."""
        self._pieces: list[bytes] = []
        self._name = ""
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that are complete after `chunk`. Raises `ModelError` for one that is too large."""
        if not self._begun:
            chunk = self._skip_mark(chunk)
        if self._after_cr and chunk:
            # The CR before this chunk ended a line already: its LF is not a second end.
            self._after_cr = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if not chunk:
            return []
        if b"\n" not in chunk and b"\r" not in chunk:
            # A line of megabytes is put together once, at its end.
            self._pieces.append(chunk)
            self._pending += len(chunk)
            self._check_size()
            return []
        data = b"".join((self._rest, *self._pieces, chunk))
        self._pieces.clear()
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._rest = lines.pop()
        events: list[ServerEvent] = []
        for line in lines:
            if line:
                self._take(line)
                continue
            if self._data:
                events.append(ServerEvent(self._name, b"\n".join(self._data)))
            self._name, self._data, self._taken = "", [], 0
        self._pending = len(self._rest)
        self._check_size()
        return events

    def _check_size(self) -> None:
        if self._taken + self._pending > MAX_EVENT_BYTES:
            limit = MAX_EVENT_BYTES // 1_000_000
            raise ModelError("invalid", f"the server sent an event of more than {limit} MB, which is no answer")

    def _skip_mark(self, chunk: bytes) -> bytes:
        """Leave out a byte order mark, which may come in pieces; empty while that is not decided."""
        self._rest += chunk
        if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
            return b""
        self._begun = True
        start, self._rest = self._rest.removeprefix(_BOM), b""
        return start

    def _take(self, line: bytes) -> None:
        self._taken += len(line)
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data":
            self._data.append(b"")


def ends_in_field_name(opening: bytes) -> bool:
    """Say whether a body was cut off within the name of one of the four fields."""
    last = re.split(rb"[\r\n]", opening)[-1]
    return bool(last) and any(field.startswith(last) for field in _FIELDS)


def is_event_stream(opening: bytes) -> bool | None:
    """Say whether a body that begins so is a stream of events; `None` while that is not decided.

    The first line with one of the four fields makes it one. Empty lines, comments and fields with other names, which
    the standard passes over, decide nothing; any other text, a page or JSON above all, is no stream.
    """
    if _BOM.startswith(opening[: len(_BOM)]):
        opening = opening[len(_BOM) :]
    for found in _LINE.finditer(opening):
        line, is_whole = found[1], bool(found[2])
        for field in _FIELDS:
            if line.startswith(field + b":") or (line == field and is_whole):
                return True
        if line.startswith(b":") or not line.strip() or _OTHER_FIELD.match(line):
            continue
        return False
    return None


DRAIN_SECONDS = 0.02
"""How long to wait for the end of a body whose terminal event is there, so that the connection can be used again."""
LINGER_SECONDS = 5.0
"""How long to wait for the rest (usage, end mark) of an answer that is already complete."""
MAX_KEPT = 65_536
"""Bytes to keep of a body that is no stream, to say what it is."""
MAX_ANSWER_BYTES = 256_000_000
"""Of one answer, unpacked: ten times what the longest one of today's models has."""


class Answer(Struct, frozen=True):
    """What a decoder has made of a complete stream."""

    parts: tuple[AssistantPart, ...]
    stop_reason: StopReason
    usage: Usage | None
    response_id: str
    edit: ServerEdit | None = None
    compacted: CompactedItems | None = None


def tokens_at_cut(stop_reason: StopReason, usage: Usage | None) -> int | None:
    """Return after how many tokens the output limit or the window ended an answer (0: not counted), else `None`."""
    if stop_reason not in {"max_tokens", "window_exceeded"}:
        return None
    return usage.output if usage is not None else 0


class StreamDecoder(Protocol):
    """Reads the events of one wire."""

    @property
    def ended(self) -> bool:
        """Whether the terminal event arrived: nothing after it matters."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the answer is whole even if nothing more comes."""
        ...

    def feed(self, event: ServerEvent) -> list[StreamPart]:
        """Take one event and return what it adds. Raises `ModelError` for an error event."""
        ...

    def finish(self) -> Answer:
        """Return the whole answer. Raises `ModelError` when the stream says that it failed."""
        ...


class UnreadableEventError(ModelError):
    """An event whose data is no JSON object. In the middle of an answer it may be an accident."""

    def __init__(self, provider: str, event: ServerEvent) -> None:
        text = shorten(clean_text(event.data.decode("utf-8", "replace")), MAX_QUOTED)
        super().__init__("broken_stream", f"{provider} sent an event that is not JSON: “{text}”")


class _Inlet:
    """What has come of one body: how it begins, its size, its events."""

    def __init__(self, decoder: StreamDecoder, address: str) -> None:
        self.opening = b""
        self.is_stream: bool | None = None
        self._decoder = decoder
        self._address = address
        self._reader = EventReader()
        self._size = 0
        self._begun = False

    def take(self, chunk: bytes) -> list[StreamPart]:
        """Return what the next bytes add; nothing when the body turns out to be no stream. Raises `ModelError`."""
        self._size += len(chunk)
        if self._size > MAX_ANSWER_BYTES:
            raise ModelError("invalid", f"the answer has more than {MAX_ANSWER_BYTES // 1_000_000} MB and no end")
        if self.is_stream is None and len(self.opening) < MAX_KEPT:
            self.opening += chunk[:MAX_KEPT]
            self.is_stream = is_event_stream(self.opening)
        parts: list[StreamPart] = []
        for event in self._reader.feed(chunk) if self.is_stream is not False else ():
            parts += self._decode(event)
            if self._decoder.ended:
                break
        return merge_deltas(parts)

    def _decode(self, event: ServerEvent) -> list[StreamPart]:
        try:
            parts = self._decoder.feed(event)
        except UnreadableEventError as error:
            if self._begun:
                raise
            from tenuto.model.wire.misfits import judge_first_event

            raise judge_first_event(event.data, error.text, self._address) from error
        self._begun = True
        return parts


async def read_answer(chunks: AsyncIterator[bytes], decoder: StreamDecoder, address: str) -> AsyncGenerator[StreamPart]:
    """Yield the deltas of a stream until its answer is complete. `address` is where it comes from, for messages.

    Raises `ModelError`: `broken_stream` when the stream ends too early (R-092), what an error event says otherwise.
    What is no stream from its beginning is `invalid`: asking again would change nothing.
    """
    inlet = _Inlet(decoder, address)
    while not decoder.ended:
        try:
            chunk = await _next_chunk(chunks, LINGER_SECONDS if decoder.complete else None)
        except ModelError as error:
            if decoder.complete and error.kind == "broken_stream":
                return
            raise
        if chunk is None:
            break
        for part in inlet.take(chunk):
            yield part
        if inlet.is_stream is False:
            raise _judge_body(await _read_rest(chunks, inlet.opening), address)
    if decoder.ended:
        with suppress(ModelError):
            await _next_chunk(chunks, DRAIN_SECONDS)
    elif not decoder.complete:
        if inlet.is_stream is None and inlet.opening.strip() and not ends_in_field_name(inlet.opening):
            raise _judge_body(inlet.opening, address)
        raise ModelError("broken_stream", "the stream ended before the answer was complete")


async def _next_chunk(chunks: AsyncIterator[bytes], seconds: float | None) -> bytes | None:
    """Return the next bytes, `None` at the end of the body or when it takes longer than `seconds`."""
    if seconds is None:
        return await anext(chunks, None)
    try:
        async with asyncio.timeout(seconds):
            return await anext(chunks, None)
    except TimeoutError:
        return None


async def _read_rest(chunks: AsyncIterator[bytes], body: bytes) -> bytes:
    """Return a body as far as it comes soon and somebody will read it."""
    with suppress(ModelError):
        while len(body) < MAX_KEPT and (chunk := await _next_chunk(chunks, LINGER_SECONDS)):
            body += chunk[:MAX_KEPT]
    return body


def _judge_body(body: bytes, address: str) -> ModelError:
    from tenuto.model.wire.misfits import judge_body

    return judge_body(body, address)


def merge_deltas(parts: list[StreamPart]) -> list[StreamPart]:
    """Return the parts with neighbouring deltas of one kind joined: one network chunk costs one update."""
    if len(parts) < 2:
        return parts
    merged: list[StreamPart] = []
    run: list[str] = []
    kind: type[TextDelta | ThinkingDelta] = TextDelta
    for part in parts:
        if isinstance(part, (TextDelta, ThinkingDelta)):
            if run and type(part) is not kind:
                merged.append(kind("".join(run)))
                run = []
            kind = type(part)
            run.append(part.text)
            continue
        if run:
            merged.append(kind("".join(run)))
            run = []
        merged.append(part)
    if run:
        merged.append(kind("".join(run)))
    return merged


def finished(
    answer: Answer, facts: ModelFacts, prefix: str, ignored: str = "", *, search_price: float | None = None
) -> Finished:
    """Return the end of a stream: the answer as a message with its cost, and what the server did to the context.

    Raises `ModelError` of kind overflow for an answer that is none: cut off at its first token because the input
    fills the window (R-022).
    """
    usage = answer.usage
    window = facts.context_window
    if (
        usage is not None
        and window is not None
        and answer.stop_reason in {"max_tokens", "window_exceeded"}
        and usage.output == 0
        and usage.sent >= 0.99 * window
    ):
        text = f"the input of {usage.sent} tokens fills the window of {window}; there was no room for an answer"
        raise ModelError("overflow", text, observed=usage.sent)
    parts = answer.parts
    if answer.stop_reason == "refusal":  # a filter may have ended the answer anywhere: nothing of it is to be done
        parts = tuple(part for part in parts if not isinstance(part, ToolCallPart))
    message = AssistantMessage(
        parts=parts,
        model=facts.id,
        stop_reason=answer.stop_reason,
        usage=None if usage is None else priced(usage, facts, search_price),
        prefix=prefix,
        response_id=answer.response_id,
    )
    return Finished(message, answer.edit, answer.compacted, ignored)


def priced(usage: Usage, facts: ModelFacts, search_price: float | None = None) -> Usage:
    """Return the usage with its cost in US dollars where prices are known.

    A cache price that nobody names counts as the price of plain input. `search_price` is that of one web search.
    """
    if facts.input_price is None or facts.output_price is None:
        return usage
    read = facts.input_price if facts.cache_read_price is None else facts.cache_read_price
    write = facts.input_price if facts.cache_write_price is None else facts.cache_write_price
    cost = (
        usage.input * facts.input_price
        + usage.cache_read * read
        + usage.cache_write * write
        + usage.output * facts.output_price
    ) / 1_000_000
    searched = usage.searches * (search_price or 0.0)
    return msgspec.structs.replace(usage, cost=cost + searched, search_cost=searched)
