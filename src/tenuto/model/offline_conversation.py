"""What the offline model finds in a conversation: request, mentioned files, todo list, the last failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from tenuto.model import offline_reports as reports
from tenuto.model.offline_wishes import Read
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    TodoView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import TextPart, ToolCallPart, text_of

_GO_ON = re.compile(
    r"(?:please\s+)?(?:continue|go on|carry on|proceed|resume|keep going|try again|again|retry)\W*", re.I
)


def request_place(messages: Sequence[Message]) -> int:
    """Return where the request stands that is being worked on; `go on` means the one before it."""
    places = [place for place, message in enumerate(messages) if _is_request(message)]
    while len(places) > 1 and _GO_ON.fullmatch(_said(messages[places[-1]]).strip()):
        places.pop()
    return places[-1] if places else -1


def _is_request(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.origin != "continuation" and bool(_said(message).strip())


def _said(message: Message) -> str:
    return text_of(message.parts) if isinstance(message, UserMessage) else ""


def given_file(wish: Read, messages: Sequence[Message]) -> ToolResultMessage | None:
    """Return what the harness gave of a file that the request mentions with `@`, as if it had been read."""
    lines = f' lines="{wish.first}-{wish.last or wish.first}"' if wish.first else ""
    begin, end = f'<mentioned path="{wish.path}"{lines}>\n', "\n</mentioned>"
    for message in messages[request_place(messages) :]:
        if isinstance(message, DeveloperMessage) and message.kind == "mention":
            text = message.text.partition(begin)[2].partition(end)[0]
            if text and not text.startswith(("(not read: ", "(as it was given before)")):
                return ToolResultMessage(call_id="mention", name="read", parts=(TextPart(text=text),))
    return None


def todo_items(messages: Sequence[Message]) -> tuple[TodoItem, ...]:
    """Return the list as the newest result with one has it."""
    for message in reversed(messages):
        for view in message.ui if isinstance(message, ToolResultMessage) else ():
            if isinstance(view, TodoView):
                return view.items
    return ()


def last_failure(messages: Sequence[Message]) -> ToolResultMessage | None:
    """Return the newest result of a call that failed."""
    return next((m for m in reversed(messages) if isinstance(m, ToolResultMessage) and reports.has_failed(m)), None)


def command_of(result: ToolResultMessage, messages: Sequence[Message]) -> str:
    """Return the command whose result this is; the name of the tool where it was no command."""
    for message in messages:
        for part in message.parts if isinstance(message, AssistantMessage) else ():
            if isinstance(part, ToolCallPart) and part.id == result.call_id:
                return str(msgspec.json.decode(part.arguments, type=dict[str, Any]).get("command") or result.name)
    return result.name
