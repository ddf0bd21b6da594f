"""Stands for the runtime until it is there: the screen is up and takes keys while the core is still being imported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tenuto.command.outcome import Choice, CommandOutcome
from tenuto.protocol.event import AnyEvent
from tenuto.protocol.operation import AnyOperation
from tenuto.protocol.part import ContentPart
from tenuto.tui.runner import RuntimePort

Listener = Callable[[AnyEvent], None]


class LateRuntime:
    """What is asked for waits until `attach`; listeners hear the runtime's first event."""

    def __init__(self, home: Path, *, temporary: bool = False) -> None:
        self.home = home
        self.temporary = temporary
        self._runtime: RuntimePort | None = None
        self._opened = asyncio.Event()
        self._turn = asyncio.Lock()
        self._listeners: list[Listener] = []
        self._unsubscribers: dict[Listener, Callable[[], None]] = {}

    def attach(self, runtime: RuntimePort) -> None:
        """The runtime is built; it may open its session now. `ready` must follow."""
        self._runtime = runtime
        for listener in self._listeners:
            self._unsubscribers[listener] = runtime.subscribe(listener)

    def ready(self) -> None:
        """Its session is open: let through what waited."""
        self._opened.set()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event; returns what ends that."""
        self._listeners.append(listener)
        if self._runtime is not None:
            self._unsubscribers[listener] = self._runtime.subscribe(listener)
        return lambda: self._unsubscribe(listener)

    async def submit(self, operation: AnyOperation) -> str:
        """Hand over an operation."""
        return await (await self._wait()).submit(operation)

    async def submit_prompt(self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0) -> str:
        """Hand over a prompt."""
        return await (await self._wait()).submit_prompt(parts, steer=steer, before=before)

    async def run_command(self, line: str) -> list[CommandOutcome]:
        """Run a slash command."""
        return await (await self._wait()).run_command(line)

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        """Return what may stand behind a command."""
        return await (await self._wait()).complete_argument(name, typed)

    async def _wait(self) -> RuntimePort:
        # One after the other: who comes while the first ones are being let through must not overtake them.
        async with self._turn:
            await self._opened.wait()
        assert self._runtime is not None, "ready comes after attach"
        return self._runtime

    def _unsubscribe(self, listener: Listener) -> None:
        self._listeners.remove(listener)
        unsubscribe = self._unsubscribers.pop(listener, None)
        if unsubscribe is not None:
            unsubscribe()
