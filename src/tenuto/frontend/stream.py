"""`stream-json`: a headless session as lines of JSON in the shape that other agents' scripts know, both ways."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from tenuto.frontend.lines import (
    AssistantBody,
    AssistantLine,
    Block,
    CompactLine,
    CompactMetadata,
    Content,
    ControlResponseLine,
    ControlSuccess,
    ImageBlock,
    ImageSource,
    InitLine,
    NoticeLine,
    OutputLine,
    Page,
    RetryLine,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBody,
    UserLine,
    WebSearchBlock,
)
from tenuto.frontend.result import describe_usage
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    CompactionEndEvent,
    NoticeEvent,
    RetryEvent,
    SessionOpenedEvent,
    ToolResultEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.part import (
    AssistantPart,
    ContentPart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    WebSearch,
    WebSource,
)

MAX_LINE = 10_000_000
"""Bytes of one message on standard input."""


def describe_event(event: AnyEvent) -> OutputLine | None:
    """Return an event as a line, `None` for one that this shape has no word for."""
    session = event.session_id
    match event:
        case SessionOpenedEvent():
            return InitLine(
                cwd=event.cwd,
                model=event.model,
                permission_mode=event.mode,
                resumed=event.resumed,
                session_id=session,
            )
        case NoticeEvent():
            return NoticeLine(level=event.level, text=event.text, session_id=session)
        case RetryEvent():
            return RetryLine(attempt=event.attempt, wait=event.wait, text=event.reason, session_id=session)
        case CompactionEndEvent() if event.error is None and not event.aborted:
            data = CompactMetadata(trigger=event.reason, pre_tokens=event.tokens_before, post_tokens=event.tokens_after)
            return CompactLine(compact_metadata=data, session_id=session)
        case AssistantMessageEvent():
            return AssistantLine(message=_answer(event.message), session_id=session)
        case ToolResultEvent():
            return UserLine(message=UserBody(content=(_result(event.message),)), session_id=session)
        case UserMessageEvent():
            content = tuple(_content(part) for part in event.parts)
            return UserLine(message=UserBody(content=content), session_id=session)
        case _:
            return None


def _answer(message: AssistantMessage) -> AssistantBody:
    content = tuple(block for part in message.parts if (block := _block(part)) is not None)
    usage = None if message.usage is None else describe_usage(message.usage)
    return AssistantBody(model=message.model, content=content, stop_reason=message.stop_reason, usage=usage)


def _block(part: AssistantPart) -> Block | None:
    match part:
        case TextPart():
            cited = tuple(_page(source) for source in part.sources)
            return TextBlock(text=part.text, citations=cited or UNSET)
        case ThinkingPart():
            return ThinkingBlock(thinking=part.text)
        case ToolCallPart():
            return ToolUseBlock(id=part.id, name=part.name, input=msgspec.Raw(part.arguments.encode()))
        case OpaquePart(search=search) if search is not None and search.done:
            return _pages(search)
        case OpaquePart():
            return None


def _pages(search: WebSearch) -> WebSearchBlock:
    pages = tuple(_page(source) for source in search.sources)
    found = search.error or UNSET
    return WebSearchBlock(id=search.id, action=search.action, query=search.query, results=pages, error=found)


def _page(source: WebSource) -> Page:
    return Page(url=source.url, title=source.title)


def _result(message: ToolResultMessage) -> ToolResultBlock:
    content = tuple(_content(part) for part in message.parts)
    return ToolResultBlock(tool_use_id=message.call_id, content=content, is_error=message.is_error)


def _content(part: ContentPart) -> Content:
    if isinstance(part, ImagePart):
        return ImageBlock(source=ImageSource(media_type=part.media_type, data=part.sha256))
    return TextBlock(text=part.text)


class BadMessageError(Exception):
    """A line on standard input that is no message; the text says why."""


class Interrupt(msgspec.Struct, frozen=True):
    """The other side asks to stop what runs. `request_id` is for the answer."""

    request_id: str = ""

    def answer(self, session_id: str) -> ControlResponseLine:
        """Return what says that it was heard."""
        return ControlResponseLine(response=ControlSuccess(request_id=self.request_id), session_id=session_id)


def read_message(line: bytes) -> str | Interrupt:
    """Return what one line asks for: a prompt, or an interrupt. Raises `BadMessageError`."""
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessageError(f"it is not JSON ({error})") from None
    match message:
        case {"type": "user", "message": {"content": str(text)}} if text.strip():
            return text
        case {"type": "user", "message": {"content": [*blocks]}}:
            return _prompt_of(blocks)
        case {"type": "control_request", "request_id": str(request_id), "request": {"subtype": "interrupt"}}:
            return Interrupt(request_id)
        case {"type": "control_request", "request": {"subtype": "interrupt"}}:
            return Interrupt()
        case _:
            expected = '{"type": "user", "message": {"role": "user", "content": "…"}}'
            raise BadMessageError(f"it is none of what is understood here; a prompt is {expected}")


def _prompt_of(blocks: list[Any]) -> str:
    texts: list[str] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                raise BadMessageError("only blocks of text can be sent here; name other files in the text")
    if not "".join(texts).strip():
        raise BadMessageError("it has no text")
    return "\n".join(texts)


class Inbox:
    """Prompts that come while others are answered: each waits its turn, and an interrupt does not wait.

    `stop` carries out an interrupt, `leave_out` is told of a line that is no message. What they raise, `prompts`
    raises.
    """

    def __init__(self, stop: Callable[[Interrupt], Awaitable[None]], leave_out: Callable[[str], None]) -> None:
        self._stop = stop
        self._leave_out = leave_out
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self.waiting = 0
        """How many prompts nobody has taken yet."""

    def put(self, prompt: str) -> None:
        """Add a prompt."""
        self.waiting += 1
        self._prompts.put_nowait(prompt)

    async def prompts(self) -> AsyncGenerator[str]:
        """Yield the prompts in their order, until standard input ends."""
        reading = asyncio.create_task(self._read(), name="prompts of standard input")
        try:
            while (prompt := await self._prompts.get()) is not None:
                self.waiting -= 1
                yield prompt
            await reading
        finally:
            reading.cancel()

    async def _read(self) -> None:
        try:
            async for line in read_lines():
                try:
                    message = read_message(line)
                except BadMessageError as error:
                    self._leave_out(str(error))
                    continue
                if isinstance(message, Interrupt):
                    await self._stop(message)
                else:
                    self.put(message)
        finally:
            self._prompts.put_nowait(None)


async def read_lines() -> AsyncGenerator[bytes]:
    """Yield the lines of standard input as they come, without waiting for the rest. Empty lines are left out.

    A thread reads: a pipe, a file and a terminal are all the same to it. It is a daemon, because a read that has
    begun cannot be cancelled.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        try:
            for line in iter(lambda: sys.stdin.buffer.readline(MAX_LINE + 1), b""):
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")
        except (OSError, ValueError):
            loop.call_soon_threadsafe(lines.put_nowait, b"")
        except RuntimeError:  # the loop is closed: nobody reads any more
            return

    threading.Thread(target=read, name="reader of standard input", daemon=True).start()
    while line := await lines.get():
        if line.strip():
            yield line
