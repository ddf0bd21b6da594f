"""Hooks of a turn: of the prompt that begins it, and of the end that they may put off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenuto.core.errors import TaskFailedError
from tenuto.core.hooks.asking import HOOK_KIND, SHOWN, ask, ask_at_childs_end, carry_out, settle, tell
from tenuto.core.state.live import LiveSession
from tenuto.protocol.entry import USER_ORIGINS, DequeuedEntry, QueuedEntry
from tenuto.protocol.event import PromptReturnedEvent
from tenuto.protocol.message import AssistantMessage, DeveloperMessage
from tenuto.protocol.part import text_of
from tenuto.text.bounding import shorten

if TYPE_CHECKING:
    from tenuto.extension.hooks.answers import Heard

MAX_HELD = 5
"""So often hooks may put off the end of one turn."""


class TurnHooks:
    """The hooks of one agent task. A sub-agent's prompt is not the user's; its end has an event of its own."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._held = 0
        self._heard: Heard | None = None

    async def settle(self) -> None:
        """Wait for what hooks have to say before the next request."""
        if self._live.hooks is not None:
            await settle(self._live)

    async def may_send(self, entry: QueuedEntry) -> bool:
        """Say whether a prompt may be sent; one that may not goes back into the editor.

        Raises `TaskFailedError` where there is none: a run without a user has nothing to do then.
        """
        live = self._live
        if live.hooks is None or live.kind is not None or entry.origin not in USER_ORIGINS:
            return True
        await settle(live)
        heard = await ask(live, "UserPromptSubmit", {"prompt": text_of(entry.parts)})
        reason = (heard.denial or heard.ending) if heard is not None else ""
        if not reason:
            self._heard = heard
            return True
        if any(queued.seq == entry.seq for queued in live.session.state.queue):
            live.session.append(DequeuedEntry(target=entry.seq, reason="edited"))
            live.publish_queue()
            said = f"A hook blocked the prompt: {reason}"
            if not live.interactive:
                raise TaskFailedError(said)
            tell(live, shorten(said, SHOWN), warns=True)
            live.bus.publish(PromptReturnedEvent(session_id=live.id, parts=entry.parts, reason="a hook blocked it"))
        return False

    def sent(self) -> None:
        """The prompt is in the history: tell the model what the hooks add to it."""
        heard, self._heard = self._heard, None
        if heard is not None:
            carry_out(self._live, heard)

    def begin_turn(self) -> None:
        """A prompt of the user's begins a turn."""
        self._held = 0

    async def _ask_at_end(self, details: Mapping[str, object]) -> Heard | None:
        """Ask whether the agent may end: of a sub-agent in the name of the session that it works for."""
        live = self._live
        if live.kind is None or live.parent is None:
            return await ask(live, "Stop", details)
        return await ask_at_childs_end(live.parent, live.id, live.kind.name, live.session.directory, details)

    async def holds(self, message: AssistantMessage) -> bool:
        """Say whether hooks have the agent go on, although its answer asks for nothing."""
        live = self._live
        heard = await self._ask_at_end(
            {"stop_hook_active": self._held > 0, "last_assistant_message": text_of(message.parts)}
        )
        if heard is None:
            return False
        carry_out(live, heard)
        if not heard.denial or heard.ending:
            return False
        if self._held >= MAX_HELD:
            tell(live, f"Hooks have put off the end of this turn {MAX_HELD} times; it ends now.", warns=True)
            return False
        self._held += 1
        who = "agent" if live.kind is None else "sub-agent"
        for command, answer in heard.of("deny"):
            tell(live, f"The {command.name} has the {who} go on: {shorten(answer.reason, SHOWN)}")
        text = f"Your answer does not end the turn: a hook of the user's has you go on.\n{heard.denial}"
        live.session.append(DeveloperMessage(text=text, kind=HOOK_KIND))
        return True
