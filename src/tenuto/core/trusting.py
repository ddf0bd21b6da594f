"""Asking for trust: what a project brings is looked at behind the first frame, and told."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tenuto.config.project import TRUST_FILE
from tenuto.core.state.live import LiveSession
from tenuto.protocol.event import TrustWaitingEvent

LOOK_SECONDS = 10.0
"""What a run that is over waits for what it may have to say of its project."""


PLACES = (".git", ".tenuto", ".mcp.json", ".agents", ".claude", ".codex", ".pi")
"""Whatever a project brings stands in one of these: where there is none, nothing is imported to look."""


class Trusting:
    """Tells the user, once for each project, what of it waits for their trust. Nothing waits for that."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._looking: asyncio.Task[None] | None = None
        self._seen: set[Path] = set()

    def begin(self, live: LiveSession) -> None:
        """A session was opened: let git use what is trusted there, and look beside everything else what is not."""
        self.use(live)
        if _may_bring_something(live.session.cwd):
            self._looking = asyncio.create_task(self._look(live), name="trust")

    def use(self, live: LiveSession) -> None:
        """Let git use what the user trusts of the session's project by now."""
        if os.path.lexists(self._home / TRUST_FILE):
            from tenuto.core.state.trust import use_git_trust

            use_git_trust(live.session.cwd, self._home)

    async def wait(self) -> None:
        """Return when everything is told, or that takes too long."""
        if self._looking is not None:
            await asyncio.wait([self._looking], timeout=LOOK_SECONDS)

    async def stop(self) -> None:
        """Look no further."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self, live: LiveSession) -> None:
        from tenuto.core.state.trust import describe_left_out, look_at_project

        look = await asyncio.to_thread(look_at_project, live.session.cwd, self._home)
        if look.project.root in self._seen:
            return
        self._seen.add(look.project.root)
        count = len(look.open_items)
        if not live.interactive:
            for line in describe_left_out(look):
                live.notify(line, "warning")
        else:
            if look.problem:
                live.notify(look.problem, "warning")
            if count:
                live.bus.publish(TrustWaitingEvent(session_id=live.id, count=count))


def _may_bring_something(cwd: Path) -> bool:
    return any(os.path.lexists(folder / place) for folder in (cwd, *cwd.parents) for place in PLACES)
