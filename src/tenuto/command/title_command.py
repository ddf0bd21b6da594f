"""/title: name the session."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import SetTitleOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Set the title; without one, show the present."""
    if not argument:
        return [Say(runtime.live.session.state.title or "No title yet. /title TEXT sets one.")]
    await runtime.submit(SetTitleOperation(session_id=runtime.session_id, title=argument))
    return [Say(f"Renamed to “{argument}”.")]
