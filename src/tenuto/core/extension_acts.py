"""What an extension may do in the open session: ask its model, add to its view, ask for a compaction, show a status."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from tenuto.core.state.extensions import Acts
from tenuto.core.state.live import READ_ONLY, LiveSession
from tenuto.protocol.entry import KEPT, ExtensionEntry, UsageEntry
from tenuto.protocol.event import ExtensionStatusEvent, NoticeEvent
from tenuto.protocol.message import Message, SystemMessage, UserMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest
from tenuto.protocol.part import TextPart, text_of
from tenuto.text.estimate import estimate_text
from tenuto.text.writable import clean_text

MOST_QUESTIONS = 20
"""That an extension may ask the model between two prompts of the user."""
MOST_ENTRIES = 50
"""That extensions may add between two prompts of the user."""
MOST_TOKENS = 8_192
"""Of one answer."""
PROMPT_SHARE = 2
"""Of the window, at most this part is a question."""
ENTRY_SHARE = 20
"""Of the window, at most this part is one entry of an extension."""


def acts_in(live: LiveSession) -> Acts:
    """Return what extensions may do in a session."""
    return Acts(
        notify=live.notify,
        report=live.warn,
        wish=live.compaction.wish,
        ask=partial(ask_model, live),
        add_entry=partial(add_entry, live),
        show_status=partial(show_status, live),
    )


async def ask_model(live: LiveSession, name: str, prompt: str, system: str, max_tokens: int) -> str:
    """Return the answer of the session's model to a question of an extension; what it costs is written down at once.

    An interrupt of the turn ends it. Raises `AskError`.
    """
    from tenuto.extension.registered import AskError

    if live.session.is_read_only:
        raise AskError(READ_ONLY)
    if live.task.questions >= MOST_QUESTIONS:
        raise AskError(f"{MOST_QUESTIONS} questions were asked since the user's last prompt")
    window = live.window_size()
    if estimate_text(prompt) + estimate_text(system) > window // PROMPT_SHARE:
        raise AskError(f"the question takes more than half of the window of {window:,} tokens")
    live.task.questions += 1
    asking = asyncio.ensure_future(_answer(live, name, _request(live, prompt, system, max_tokens)))
    live.task.asking.add(asking)
    asking.add_done_callback(live.task.asking.discard)
    try:
        return await asking
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if asking.cancelled() and own is not None and not own.cancelling():
            raise AskError("the user interrupted the turn") from None
        raise
    except ModelError as error:
        raise AskError(str(error)) from error


def _request(live: LiveSession, prompt: str, system: str, max_tokens: int) -> ModelRequest:
    messages: list[Message] = [SystemMessage(text=clean_text(system))] if system.strip() else []
    messages.append(UserMessage(parts=(TextPart(text=clean_text(prompt)),), origin="extension"))
    most = max(1, min(max_tokens, MOST_TOKENS, live.facts.max_output_tokens or MOST_TOKENS))
    return ModelRequest(model=live.facts, messages=tuple(messages), max_output_tokens=most, thinking=False)


async def _answer(live: LiveSession, name: str, request: ModelRequest) -> str:
    async for part in live.models.client(request.model.provider).stream(request):
        if isinstance(part, Finished):
            usage = part.message.usage
            if usage is not None:
                live.session.append(UsageEntry(usage=usage, purpose=f"extension {name}", model=request.model.id))
                live.publish_usage()
            return text_of(part.message.parts)
    raise ModelError("broken_stream", "the answer ended too early")


def add_entry(live: LiveSession, name: str, text: str, keep: bool) -> None:
    """Add a text to the view, at its end: at once where nothing runs, else at the next boundary of the task.

    Nothing that was sent changes, so the provider's cache holds.
    """
    if live.session.is_read_only:
        return
    if live.task.added >= MOST_ENTRIES:
        text = f"The extension {name} wanted to add more than {MOST_ENTRIES} texts since your last prompt"
        live.notify_once(f"entries of {name}", text, "warning")
        return
    room = live.window_size() // ENTRY_SHARE
    text = clean_text(text)
    if estimate_text(text) > room:
        live.notify_once(
            f"entry of {name}",
            f"The extension {name} wanted to add a text of {estimate_text(text):,} tokens; {room:,} are the most",
            "warning",
        )
        return
    entry = ExtensionEntry(
        extension=name, in_view=True, parts=(TextPart(text=text),), state=KEPT if keep else msgspec.Raw(b"null")
    )
    live.task.entries.append(entry)
    live.task.added += 1
    if live.task.settled and live.session.reading.system is not None:
        live.store_side_commands()
    from tenuto.session.describe import describe_added

    live.bus.publish(NoticeEvent(session_id=live.id, text=describe_added(entry)))


def show_status(live: LiveSession, name: str, text: str) -> None:
    """Show, or take away, what an extension has in the footer."""
    live.bus.publish(ExtensionStatusEvent(session_id=live.id, extension=name, text=text))
