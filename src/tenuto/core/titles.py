"""A title from the small model, asked for once behind the first exchange, beside the work and never in its way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from tenuto.core.compacting.environment import find_usable
from tenuto.core.errors import UsageError
from tenuto.core.state.live import LiveSession
from tenuto.protocol.entry import TitleEntry, UsageEntry
from tenuto.protocol.event import AnyEvent, SessionOpenedEvent, TaskSettledEvent, TitleChangedEvent
from tenuto.protocol.message import AssistantMessage, Message, SystemMessage, UserMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest, TextDelta
from tenuto.protocol.part import TextPart, text_of
from tenuto.text.bounding import shorten
from tenuto.text.titles import title_of

PURPOSE = "title"
SHOWN = 2_000
"""Characters that the model is shown of each of the two."""
ANSWER_TOKENS = 500
"""Tokens of the answer at most: some models think before they write five words."""
LONGEST_ANSWER = 8_000
"""Characters after which nobody reads on, where a server does not hold the model to its tokens."""
TIMEOUT = 30.0
"""Seconds after which the title by rule stays."""
ASK = (
    "Name a conversation. You are shown its first message and the answer. Reply with a title of three to seven words "
    "in the language of the message: what is to be done, with the exact names that matter. No quotes, no full stop, "
    "nothing else."
)


class Titles:
    """Watches one runtime's events; makes one request in a session's life, where nobody has named it."""

    def __init__(self, live: Callable[[], LiveSession]) -> None:
        self._live = live
        self._work: asyncio.Task[None] | None = None

    def note(self, event: AnyEvent) -> None:
        """Ask when the first turn has ended; a session that was left is named by rule."""
        if isinstance(event, SessionOpenedEvent):
            self.stop()
        elif isinstance(event, TaskSettledEvent) and self._is_due():
            self._work = asyncio.create_task(_name(self._live()), name="title")

    def stop(self) -> None:
        """Wait for no answer any more."""
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _is_due(self) -> bool:
        live = self._live()
        if self._work is not None or not live.interactive or live.session.state.title:
            return False
        said = [entry for entry in live.session.path() if isinstance(entry, UserMessage)]
        return len(said) == 1 and not live.session.is_read_only


async def _name(live: LiveSession) -> None:
    """Ask for a title and store it, if the user has not named the session meanwhile. What fails is no news."""
    settings = live.settings
    try:
        async with asyncio.timeout(TIMEOUT):
            answer = await _ask(live, settings.session.title_model or settings.compaction.model)
    except (UsageError, ModelError, TimeoutError):
        return
    title = title_of(text_of(answer.parts).strip().strip("\"'“”„«»*`# "))
    if title and not live.session.state.title:
        live.session.append(TitleEntry(title=title))
        live.session.save_meta()
        live.bus.publish(TitleChangedEvent(session_id=live.id, title=title))


async def _ask(live: LiveSession, model: str) -> AssistantMessage:
    """Return the model's answer; its cost is counted. Raises `UsageError` and `ModelError`."""
    facts = await find_usable(live, model)
    request = ModelRequest(
        model=facts, messages=_messages(live), max_output_tokens=ANSWER_TOKENS, cache_key=f"{live.id}-{PURPOSE}"
    )
    stream = cast("AsyncGenerator[object, None]", live.models.client(facts.provider).stream(request))
    characters = 0
    async with aclosing(stream):
        async for part in stream:
            if isinstance(part, TextDelta):
                characters += len(part.text)
                if characters > LONGEST_ANSWER:
                    raise ModelError("invalid", "the answer is no title: it goes on and on")
            if isinstance(part, Finished):
                if part.message.usage is not None:
                    live.session.append(UsageEntry(usage=part.message.usage, purpose=PURPOSE, model=facts.id))
                    live.publish_usage()
                return part.message
    raise ModelError("broken_stream", "the stream ended before the title")


def _messages(live: LiveSession) -> tuple[Message, ...]:
    path = live.session.path()
    prompt = next((text_of(entry.parts) for entry in path if isinstance(entry, UserMessage)), "")
    answers = (text_of(entry.parts) for entry in reversed(path) if isinstance(entry, AssistantMessage))
    answer = next((text for text in answers if text.strip()), "")
    shown = (
        f"<message>\n{shorten(prompt, SHOWN)}\n</message>\n<answer>\n{shorten(answer, SHOWN)}\n</answer>\n"
        "The title of this conversation:"
    )
    return SystemMessage(text=ASK), UserMessage(parts=(TextPart(text=shown),))
