"""An app on the fake runtime, as Pilot runs it, and what its screen shows as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from textual import events
from textual.pilot import Pilot

from tenuto.config.settings import UiSettings
from tenuto.protocol.event import AnyEvent
from tenuto.tui.full.app import TenutoApp
from tenuto.tui.runner import LateRuntime
from tenuto.tui.themes import ThemeChooser
from tests.tui.full.fake_runtime import FakeRuntime, opened


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Screen:
    app: TenutoApp
    runtime: FakeRuntime
    pilot: Pilot[Any]
    clock: Clock

    def rows(self) -> list[str]:
        """The screen as text, row by row."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    def text(self) -> str:
        return "\n".join(self.rows())

    async def settle(self) -> None:
        await self.pilot.pause()
        while self.app.common.is_behind:
            await asyncio.sleep(0.005)
        await self.pilot.pause()  # what came to be shown meanwhile is painted

    async def burst(self, keys: Iterable[str]) -> None:
        """Send keys as one burst, faster than they can be handled: single characters, or names of keys."""
        for key in keys:
            character = key if len(key) == 1 else None
            self.app.post_message(events.Key(key if character is None else _name(key), character))
        await self.settle()

    async def emit(self, *sent: AnyEvent) -> None:
        self.runtime.emit(*sent)
        await self.settle()


def _name(character: str) -> str:
    from textual.keys import _character_to_key

    return _character_to_key(character)


@asynccontextmanager
async def running_app(
    *sent: AnyEvent,
    size: tuple[int, int] = (80, 24),
    ui: UiSettings | None = None,
    tick: bool = False,
    environ: dict[str, str] | None = None,
    theme: str = "dark",
) -> AsyncIterator[Screen]:
    """Run the app on a session that is open, with these events already there. Time stands still unless `tick`."""
    runtime, clock = FakeRuntime(), Clock()
    late = LateRuntime(runtime.home)

    async def opening() -> None:
        late.attach(runtime)
        runtime.emit(*(sent or (opened(),)))
        late.ready()

    app = TenutoApp(
        late,
        opening,
        themes=ThemeChooser(theme, environ or {}, runtime.home),
        ui=ui or UiSettings(reduce_motion=True),
        home=runtime.home,
        clock=clock,
    )
    if not tick:
        app._watch_time = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        screen = Screen(app, runtime, pilot, clock)
        await screen.settle()
        yield screen
    await app.finish()
