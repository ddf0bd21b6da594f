"""Asking the hooks at an event, and what of their answers is the same everywhere: context, messages, compactions.

Where a session has no hook files nothing of `tenuto.extension.hooks` is imported, and the answer is `None` at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.protocol.entry import Mode
from tenuto.protocol.message import DeveloperMessage
from tenuto.session.log.log import LOG_NAME
from tenuto.text.bounding import shorten

if TYPE_CHECKING:
    from tenuto.extension.hooks.answers import Heard
    from tenuto.extension.hooks.files import EventName, HookCommand

HOOK_KIND = "hook"
"""The kind of notes and notices that say what hooks did."""
PERMISSION_MODES: Mapping[Mode, str] = {
    "ask": "default",
    "edits": "acceptEdits",
    "auto": "bypassPermissions",
    "plan": "plan",
}
"""What modes are called elsewhere."""
SHOWN = 200
"""Characters of a reason or of context in a notice."""


async def ask(
    services: SessionServices,
    event: EventName,
    details: Mapping[str, Any],
    *,
    names: tuple[str, ...] = (),
    longest: float | None = None,
    among: Sequence[HookCommand] | None = None,
) -> Heard | None:
    """Return what the hooks that match one of these names, of `among` these, say; `None` where nobody is asked."""
    hooks = services.hooks
    if hooks is None or not hooks.listens(event):
        return None
    told = {
        "session_id": services.id,
        "transcript_path": str(services.session.directory / LOG_NAME) if services.session.keeps_log else None,
        "cwd": str(services.session.cwd),
        "hook_event_name": event,
        "permission_mode": PERMISSION_MODES[services.mode],
        "model": services.session.state.model,
        **details,
    }
    return await hooks.ask(event, told, names=names, longest=longest, among=among)


async def ask_at_childs_end(
    parent: SessionServices, child: str, agent: str, directory: Path, details: Mapping[str, object]
) -> Heard | None:
    """Return what the hooks of a session say at the end of a sub-agent of it; `child` is the id of its session."""
    told = {"agent_id": child, "agent_type": agent, "agent_transcript_path": str(directory / LOG_NAME), **details}
    return await ask(parent, "SubagentStop", told, names=(agent,))


def carry_out(live: LiveSession, heard: Heard) -> None:
    """Do what hooks may want at any event: tell the model or the user something, ask for a compaction."""
    for command, answer in heard.answers:
        if answer.context:
            live.session.append(DeveloperMessage(text=f"From the {command.name}:\n{answer.context}", kind=HOOK_KIND))
            if not answer.is_quiet:
                tell(live, f"The {command.name} added: {shorten(answer.context, SHOWN)}")
        if answer.message:
            tell(live, f"The {command.name}: {answer.message}", warns=True)
        if answer.focus is not None:
            live.compaction.wish(f"the {command.name}", answer.focus)


def tell(services: SessionServices, text: str, *, warns: bool = False) -> None:
    """Show the user what a hook did; a resumed transcript shows it too."""
    services.notify(text, "warning" if warns else "info", kind=HOOK_KIND, keep=True)


async def settle(live: LiveSession) -> None:
    """Wait for what was asked beside the work, and tell the model what came of it, before its next request."""
    told, live.task.told_later = live.task.told_later, []
    for one in told:
        one()
    hooks = live.hooks
    while hooks is not None and hooks.is_owing:
        for heard in await hooks.take_owed():
            carry_out(live, heard)
