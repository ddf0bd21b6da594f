"""The inline app on the fake runtime: a pipe as the keyboard, pyte as the terminal."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyte

from tenuto.config.settings import UiSettings
from tenuto.protocol.event import AnyEvent
from tenuto.tui.first_paint.reader import Handover
from tenuto.tui.inline.app import InlineApp
from tenuto.tui.inline.application import Keyboard
from tenuto.tui.inline.output import InlineOutput, Size
from tenuto.tui.paint import Paint
from tenuto.tui.runner import LateRuntime
from tenuto.tui.themes import ThemeChooser
from tests.tui.full.fake_runtime import FakeRuntime, opened
from tests.tui.full.support import Clock

PATIENCE = 120.0
UNKNOWN_TO_PYTE = re.compile(r"\x1b\[[<>=?][0-9;$]*[a-z]")
FORBIDDEN = re.compile(r"\x1b\[\??(?:1049|1047|47)h|\x1b\[[0-9;]*r|\x1b\[[23]J|\x1bc")
"""Other screens, scroll regions, and what clears more than what is below the cursor."""


class Terminal:
    """A screen with its scrollback, and every byte that came."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)
        self.frames: list[str] = []

    def write(self, data: str) -> int:
        self.frames.append(data)
        self.stream.feed(UNKNOWN_TO_PYTE.sub("", data))
        return len(data)

    def flush(self) -> None:
        pass

    def size(self) -> Size:
        return Size(rows=self.screen.lines, columns=self.screen.columns)

    def scrollback(self) -> list[str]:
        return ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in self.screen.history.top]

    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.screen.display]

    def everything(self) -> str:
        return "\n".join([*self.scrollback(), *self.rows()])

    @property
    def raw(self) -> str:
        return "".join(self.frames)


@dataclass
class Session:
    app: InlineApp
    runtime: FakeRuntime
    pipe: int
    terminal: Terminal
    clock: Clock
    running: asyncio.Task[None]
    failures: list[Any] = field(default_factory=list)

    def type(self, text: str) -> None:
        """Send bytes as the terminal would."""
        os.write(self.pipe, text.encode())

    def text(self) -> str:
        return self.terminal.everything()

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n{self.text()}"
            await asyncio.sleep(0.005)

    async def shows(self, *texts: str) -> str:
        await self.until(lambda: all(text in self.text() for text in texts), f"{texts}")
        return self.text()

    async def gone(self, text: str) -> None:
        await self.until(lambda: text not in self.text(), f"no {text}")

    async def emit(self, *sent: AnyEvent) -> None:
        self.runtime.emit(*sent)
        await self.settle()

    async def settle(self) -> None:
        """Let what is on its way arrive and be painted."""
        await asyncio.sleep(0.1)

    async def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.app._tick()
        await self.settle()


@contextmanager
def pipe_keyboard() -> Iterator[tuple[Keyboard, int]]:
    """A keyboard, and the descriptor that types on it."""
    source, pipe = os.pipe()
    os.set_blocking(source, False)
    try:
        yield Keyboard(source), pipe
    finally:
        os.close(source)
        os.close(pipe)


@asynccontextmanager
async def running_app(
    *sent: AnyEvent,
    size: tuple[int, int] = (80, 24),
    ui: UiSettings | None = None,
    theme: str = "dark",
    typed: tuple[Handover, bytes] | None = None,
    **environ: str,
) -> AsyncIterator[Session]:
    """Run the app on a session that is open, with these events already there. Time stands still.

    `typed` is what the early phase leaves, and what the terminal has for us behind it.
    """
    runtime, clock = FakeRuntime(), Clock()
    late = LateRuntime(runtime.home)

    async def opening() -> None:
        late.attach(runtime)
        runtime.emit(*(sent or (opened(),)))
        late.ready()

    terminal = Terminal(*size)
    with pipe_keyboard() as (keyboard, pipe):
        output = InlineOutput(terminal, terminal.size, synchronised=True)
        themes = ThemeChooser(theme, environ, runtime.home)
        app = InlineApp(
            late, opening, keyboard, output, paint=Paint(themes.theme, "true"), themes=themes,
            ui=ui or UiSettings(reduce_motion=True), environ={"TERM": "xterm-256color", **environ}, clock=clock,
        )  # fmt: skip
        if typed:
            os.write(pipe, typed[1])
            app.take_over(lambda: typed[0])
        running = asyncio.create_task(app.run())
        session = Session(app, runtime, pipe, terminal, clock, running)
        await session.shows("❯")
        await session.until(lambda: app.runner.state.session_id)
        await session.settle()
        try:
            yield session
        finally:
            app.leave()
            await asyncio.wait_for(running, PATIENCE)
    assert not FORBIDDEN.search(terminal.raw), FORBIDDEN.findall(terminal.raw)
