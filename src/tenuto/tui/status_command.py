"""The user's own status command: it runs when something changed, one at a time, and never while nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from tenuto.tui.machine.state import UiState
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.line import Span
from tenuto.tui.user_command import UserCommand

SECONDS = 5.0
"""How long one run may take."""


class StatusCommand:
    """`show` gets what its first line says. When a run fails, what showed stays, and `complain` hears of it once.

    `interval` is the seconds between the beginnings of two runs; `spawn` runs work beside everything else.
    """

    def __init__(
        self,
        command: str,
        interval: float,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        show: Callable[[Sequence[Span]], None],
        complain: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._command = UserCommand("ui.status_command", command, seconds=SECONDS, complain=complain)
        self._interval = interval
        self._spawn = spawn
        self._show = show
        self._clock = clock
        self._wanted: Mapping[str, Any] = {}
        self._told: Mapping[str, Any] = {}
        self._began = float("-inf")
        self._running = False

    def follow(self, state: UiState) -> None:
        """Run soon, if what the command is told is not what it was told last. Before there is a session it does not."""
        if not self._command.given or not state.session_id:
            return
        self._wanted = session_facts(state)
        if self._wanted != self._told and not self._running:
            self._running = True
            self._spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._wanted != self._told:
                wait = self._began + self._interval - self._clock()
                if wait > 0:
                    await asyncio.sleep(wait)
                self._told, self._began = self._wanted, self._clock()
                output = await self._command.run(self._told, cwd=str(self._told["cwd"]))
                if output is not None:
                    self._show(first_line(output))
        finally:
            self._running = False


def first_line(output: bytes) -> list[Span]:
    """Return the first line of what a command printed: colours stay, nothing else that a terminal would act on."""
    text = output.decode("utf-8", "replace").lstrip("\r\n").split("\n", 1)[0].rstrip().replace("\t", " ")
    return ansi_lines(text, "status")[0]


def session_facts(state: UiState) -> dict[str, Any]:
    """Return what the command is told, as JSON. Tokens; `cost` is US dollars; `null` is what is not known."""
    status, total = state.status, state.status.total
    return {
        "session_id": state.session_id,
        "title": status.title,
        "model": status.model,
        "effort": status.effort,
        "mode": status.mode,
        "cwd": status.cwd,
        "branch": status.branch,
        "dirty": status.dirty,
        "running": state.running,
        "queued": len(state.queue),
        "jobs": status.jobs,
        "tokens": status.tokens,
        "window": status.window,
        "trigger": status.trigger,
        "usage": {
            "input": total.input,
            "output": total.output,
            "cache_read": total.cache_read,
            "cache_write": total.cache_write,
        },
        "cost": status.cost,
    }
