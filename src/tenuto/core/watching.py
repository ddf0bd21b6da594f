"""Watching a sub-agent: its transcript, and what of its events a screen is told while somebody reads along."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tenuto.core.errors import UsageError
from tenuto.core.state.live import LiveSession
from tenuto.core.transcript import child_transcript
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    ChildProgressEvent,
    ChildTranscriptEvent,
    CompactionEndEvent,
    NoticeEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UndoneEvent,
    UserMessageEvent,
    WebSearchEvent,
)
from tenuto.protocol.operation import WatchChildOperation
from tenuto.session.session import Session
from tenuto.session.store import find_agent

WATCHED = (
    UserMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    AssistantMessageEvent,
    ToolCallDeltaEvent,
    WebSearchEvent,
    ToolStartedEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ChildProgressEvent,
    NoticeEvent,
    CompactionEndEvent,
    UndoneEvent,
)
"""What a transcript is made of. The ends of a sub-agent's tasks would be taken for the parent's."""


async def watch_child(live: LiveSession, operation: WatchChildOperation) -> None:
    """Begin or end to pass a sub-agent's events on. Raises `UsageError` for one that there is not."""
    child = live.children.find(operation.child)

    def pass_on(event: AnyEvent) -> None:
        if isinstance(event, WATCHED):
            live.bus.publish(event)

    if child is not None:
        child.watch(pass_on if operation.watching else None)
    if not operation.watching:
        return
    if child is not None:
        live.bus.publish(child_transcript(live.id, child.session, working=True))
        return
    folder = find_agent(live.session.directory, operation.child)
    if folder is None:
        raise UsageError(f"there is no sub-agent “{operation.child}”")
    live.bus.publish(await asyncio.to_thread(_read, live.id, folder))


def _read(parent: str, folder: Path) -> ChildTranscriptEvent:
    session = Session.open(folder, read_only=True)
    try:
        return child_transcript(parent, session, working=False)
    finally:
        session.close()
