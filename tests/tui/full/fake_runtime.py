"""A runtime that replays real protocol events: what the front-end sees of the core, without the core."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tenuto.command.outcome import Choice, CommandOutcome, Say
from tenuto.command.registry import Command
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    QueueChangedEvent,
    ReplayFinishedEvent,
    SessionOpenedEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import AnyOperation
from tenuto.protocol.part import ContentPart, TextPart, ToolCallPart, text_of

SESSION = "0123456789abcdef"


class FakeRuntime:
    """`emit` sends events; what the front-end asks for is recorded."""

    temporary = False

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or Path(tempfile.mkdtemp(prefix="tenuto-test-"))
        self.listeners: list[Callable[[AnyEvent], None]] = []
        self.operations: list[AnyOperation] = []
        self.prompts: list[str] = []
        self.sent: list[tuple[ContentPart, ...]] = []
        self.commands: list[str] = []
        self.outcomes: list[CommandOutcome] = [Say("done")]
        self.arguments: tuple[Choice, ...] = ()
        self.brought: tuple[Command, ...] = ()
        self.mentionable: tuple[Choice, ...] = ()
        self.acts = 0

    def subscribe(self, listener: Callable[[AnyEvent], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def note_user(self) -> None:
        self.acts += 1

    def emit(self, *events: AnyEvent) -> None:
        for event in events:
            for listener in list(self.listeners):
                listener(event)

    async def submit(self, operation: AnyOperation) -> str:
        self.operations.append(operation)
        return operation.submission_id

    async def submit_prompt(self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0) -> str:
        self.prompts.append(text_of(parts))
        self.sent.append(parts)
        return "submission"

    async def own_commands(self) -> tuple[Command, ...]:
        return self.brought

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        return self.arguments

    async def resources(self) -> tuple[Choice, ...]:
        return self.mentionable

    async def run_command(self, line: str) -> list[CommandOutcome]:
        self.commands.append(line)
        return self.outcomes


def opened(resumed: bool = False, cwd: str = "/tmp") -> SessionOpenedEvent:
    return SessionOpenedEvent(
        session_id=SESSION, cwd=cwd, model="offline/offline", mode="ask", resumed=resumed, directory="/tmp"
    )


def user(text: str, seq: int = 1) -> UserMessageEvent:
    return UserMessageEvent(session_id=SESSION, seq=seq, parts=(TextPart(text=text),))


def answer(text: str, seq: int = 2) -> AssistantMessageEvent:
    return AssistantMessageEvent(session_id=SESSION, message=AssistantMessage(seq=seq, parts=(TextPart(text=text),)))


def tool(call_id: str, command: str, output: str, seq: int) -> list[AnyEvent]:
    arguments = f'{{"command": "{command}"}}'
    call = ToolCallPart(id=call_id, name="bash", arguments=arguments)
    result = ToolResultMessage(seq=seq + 1, call_id=call_id, name="bash", parts=(TextPart(text=output),))
    return [
        AssistantMessageEvent(session_id=SESSION, message=AssistantMessage(seq=seq, parts=(call,))),
        ToolStartedEvent(session_id=SESSION, call_id=call_id, name="bash", arguments=arguments, summary=command),
        ToolResultEvent(session_id=SESSION, message=result),
    ]


def replay(count: int) -> list[AnyEvent]:
    """A resumed session of about `count` items."""
    events: list[AnyEvent] = [opened(resumed=True)]
    for number in range(0, count, 2):
        events.append(user(f"question {number}: why is **this** so?", seq=2 * number + 1))
        events.append(
            answer(f"answer {number}\n\n- one thing\n- another `thing`\n\n" + "Some prose. " * 20, seq=2 * number + 2)
        )
    events.append(ReplayFinishedEvent(session_id=SESSION))
    return events


def queue_of(*texts: str) -> QueueChangedEvent:
    from tenuto.protocol.event import QueueItem

    items = tuple(QueueItem(seq=90 + place, parts=(TextPart(text=text),)) for place, text in enumerate(texts))
    return QueueChangedEvent(session_id=SESSION, items=items)
