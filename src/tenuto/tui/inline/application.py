"""prompt-toolkit's application with our way to paint. The only place that knows its insides.

Every redraw goes through `paint`, so that what is printed above and the rows below are one frame. After a change of
width it does not erase by its own idea of where the bottom begins, which is wrong once the terminal has wrapped rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from collections.abc import AsyncGenerator, Callable

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app, set_app
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyProcessor
from prompt_toolkit.styles import DummyStyle

from tenuto.tui.inline.bottom import Bottom
from tenuto.tui.inline.keys import Pasted, Press
from tenuto.tui.inline.output import (
    CLEARING_SECONDS,
    NOT_PAINTED_AGAIN,
    PAINTED_AGAIN,
    STABLE_SECONDS,
    InlineOutput,
    Painted,
    rows_above_cursor,
)
from tenuto.tui.terminal.emulator import Reflow
from tenuto.tui.terminal.terminal import answer_timeout, drain_input, give_back, stop_in_background, stop_job

Attributes = list[int | list[bytes]]
NO_PASTES = "\x1b[?2004l"
ESCAPE_SECONDS = 0.05
"""After which a lone Escape is a key."""


class InlineApplication(Application[None]):
    """`paint` gets what redraws the bottom and calls it. `press` and `paste` get the input.

    `habit` is what the terminal does with rows at another width; `modes` are the sequences that begin and end
    what the terminal is asked for. While the output is stalled, nothing is painted; who made it invalidates afterwards.
    `found` is what the terminal was like before, for whoever it is lent to.
    """

    def __init__(
        self,
        bottom: Bottom,
        input: Input,
        output: InlineOutput,
        *,
        paint: Callable[[Callable[[], None]], None],
        press: Callable[[Press], None],
        paste: Callable[[str], None],
        habit: Reflow,
        modes: tuple[str, str],
        found: Attributes | None = None,
    ) -> None:
        super().__init__(
            layout=bottom.layout,
            input=input,
            output=output,
            style=DummyStyle(),
            include_default_pygments_style=False,
            erase_when_done=True,
            terminal_size_polling_interval=None,
        )
        self.ttimeoutlen = ESCAPE_SECONDS
        self.key_processor = Keys(press, paste, self._paint_keys)
        self._bottom = bottom
        self._paint = paint
        self._habit: Reflow = habit
        self._modes = (modes[0], NOT_PAINTED_AGAIN + modes[1]) if habit == "clears" else modes
        self._found = found
        self._raw: Attributes = []
        self._stopping: asyncio.Task[None] | None = None
        self._painted = output.get_size()
        self._widths: list[int] = []
        self._resizing: asyncio.TimerHandle | None = None
        self._lent = False
        self._begun = False
        self._wanted = False

    @property
    def frame_output(self) -> InlineOutput:
        """The output, which makes frames."""
        assert isinstance(self.output, InlineOutput)
        return self.output

    @property
    def can_paint(self) -> bool:
        """Whether the terminal is ours, and its width one that lasts."""
        return self.is_running and not self._lent and self._resizing is None

    def write(self, sequence: str) -> None:
        """Write a control sequence, in order with what is painted."""
        if sequence:
            self.output.write_raw(sequence)
            self.output.flush()

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Give the terminal to somebody else: the bottom is gone, nothing is painted, keys are not read."""
        self._lent = True
        try:
            with set_app(self), self.input.detach():
                typed = self.end_reports()
                async with in_terminal():
                    self.frame_output.settle()
                    self._set_attributes(self._found)  # prompt-toolkit's own idea of it lacks Ctrl+S and Ctrl+Q
                    give_back(self.input.fileno(), typed)
                    yield
        finally:
            self.write(f"\r\x1b[K{self._modes[0]}")  # what was typed before the terminal is ours is echoed there
            self._lent = False
            self.invalidate()

    def end_reports(self) -> str:
        """End everything that makes the terminal speak; return what a user has typed since keys are not read."""
        ends = f"{NO_PASTES}{self._modes[1]}" if self._modes[1] else ""
        seconds = answer_timeout(os.environ) if ends else 0.0
        return drain_input(self.input.fileno(), lambda question: self.write(ends + question), seconds)

    def suspend(self) -> None:
        """Stop the job, and take the terminal again when it goes on."""
        if self._lent:  # an editor has it
            stop_job()
        elif self._stopping is None or self._stopping.done():
            self._stopping = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        async with self.lend():
            stop_job()
            stop_in_background(self.input.fileno())

    def go_on(self) -> None:
        """We go on after a stop that nobody announced: paint below what is there now, in a raw terminal again."""
        if self._lent or not self._begun:
            return
        stop_in_background(self.input.fileno())
        self._set_attributes(self._raw)
        self.renderer.reset(leave_alternate_screen=False)
        begin, end = self._modes
        self.write(f"\r{end}{begin}")  # the terminal keeps count of what was begun
        self.invalidate()

    def _attributes(self) -> Attributes:
        try:
            return termios.tcgetattr(self.input.fileno())
        except termios.error:
            return []

    def _set_attributes(self, attributes: Attributes | None) -> None:
        if attributes:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.input.fileno(), termios.TCSANOW, attributes)

    # --- painting ---

    def invalidate(self) -> None:
        """Paint in the next turn of the loop; prompt-toolkit would wait until that has nothing else to do."""
        if self.is_running and not self._wanted:
            self._wanted = True
            asyncio.get_running_loop().call_soon(self._paint_wanted)

    def _paint_keys(self) -> None:
        """Paint what keys have changed, which only they know, before anything else has its turn."""
        if self._begun:
            self._redraw()

    def _paint_wanted(self) -> None:
        if self._wanted:
            self._redraw()

    def _redraw(self, render_as_done: bool = False) -> None:
        self._wanted = False
        if render_as_done:
            super()._redraw(render_as_done)
            self.write(self._modes[1])
        elif self.can_paint and not self.frame_output.stalled():
            if self._begun and self._is_resized:
                self._on_resize()  # word of it is on its way; what is painted now would stand in the wrong place
                return
            self._begin()
            self._paint(self._repaint)
            self._painted = self.output.get_size()

    def _repaint(self) -> None:
        anew = self.renderer.last_rendered_screen is None
        super()._redraw()
        if anew and self._habit == "clears":
            row = self._painted_rows().cursor_row
            up = f"\x1b[{row}A" if row else ""
            self.output.write_raw(f"\x1b7{up}{PAINTED_AGAIN}\x1b8")

    @property
    def _is_resized(self) -> bool:
        """Whether the rows are not where they were painted; at another height they are, if nothing clears them."""
        size = self.output.get_size()
        return size.columns != self._painted.columns or (self._habit == "clears" and size.rows != self._painted.rows)

    def _begin(self) -> None:
        """Ask the terminal for what we want of it, now that it does not echo any more what comes back."""
        if not self._begun:
            self._begun = True
            self._raw = self._attributes()
            self.write(f"\r\x1b[K{self._modes[0]}")

    def _on_resize(self) -> None:
        size = self.output.get_size()
        if self._habit == "clears":
            self._resizing = self._resizing or asyncio.get_running_loop().call_later(CLEARING_SECONDS, self._end_resize)
            return
        if size.columns == self._painted.columns and self._resizing is None:
            self.invalidate()
            return
        if self._resizing is not None:
            self._resizing.cancel()
        self._widths.append(size.columns)
        self._resizing = asyncio.get_running_loop().call_later(STABLE_SECONDS, self._end_resize)

    def _end_resize(self) -> None:
        """The width stays: go up to where the bottom begins now, and paint it anew."""
        self._resizing = None
        widths, self._widths = [self._painted.columns, *self._widths, self.output.get_size().columns], []
        if not self.can_paint:
            self.invalidate()
            return
        up = rows_above_cursor(self._painted_rows(), widths, self._habit)
        with self.frame_output.frame():
            self.output.write_raw("\r")
            self.output.cursor_up(up)
            self.output.erase_down()
            self.renderer.reset(leave_alternate_screen=False)
            self._painted = self.output.get_size()
            self._redraw()

    def _painted_rows(self) -> Painted:
        """Return the rows as they were painted last, and where the cursor is in them."""
        screen = self.renderer.last_rendered_screen
        if screen is None:
            return Painted([], 0, 0)
        cursor = screen.get_cursor_position(self.layout.current_window)
        return Painted(self._bottom.painted_cells(), cursor.y, cursor.x)


class Keys(KeyProcessor):
    """Gives each key to `press` or `paste`: what it means is decided by `tui/keys/keyboard.py`. `done` follows them."""

    def __init__(self, press: Callable[[Press], None], paste: Callable[[str], None], done: Callable[[], None]) -> None:
        super().__init__(KeyBindings())
        self._press = press
        self._paste = paste
        self._done = done

    def process_keys(self) -> None:
        """Do the keys that are waiting; those behind one that ends the application are not done."""
        application = get_app()
        if not self.input_queue:
            return
        while self.input_queue and not application.is_done:
            key = self.input_queue.popleft()
            if isinstance(key, Press):
                self._press(key)
            elif isinstance(key, Pasted):
                self._paste(key.data)
        self._done()
