"""The terminal of the inline screen: it is read and painted in turns of the loop, lent to other programs, given back.

Every redraw goes through `paint`, so that what is printed above and the rows below are one frame. After a change of
width the rows are found again by what the terminal does with them (`rows_above_cursor`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import termios
from collections.abc import AsyncGenerator, Callable, Generator

from tenuto.tui.inline.bottom import Bottom, Painter, row_cells
from tenuto.tui.inline.keys import KeyReader, Pasted, Press
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
from tenuto.tui.terminal.terminal import answer_timeout, drain_input, give_back, read_now, stop_in_background, stop_job

Attributes = list[int | list[bytes]]
PASTES, NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"


class Keyboard:
    """The terminal that keys come from. `descriptor` has its settings, `source` its bytes, without ever waiting."""

    def __init__(self, descriptor: int, source: int | None = None) -> None:
        self.descriptor = descriptor
        self._source = descriptor if source is None else source

    @property
    def source(self) -> int:
        """The descriptor to wait for."""
        return self._source

    def read(self) -> bytes | None:
        """Return what is there: nothing when the terminal is gone, `None` when nobody has typed."""
        return read_now(self._source)

    def attributes(self) -> Attributes | None:
        """Return the terminal's settings, `None` where it has none."""
        try:
            return termios.tcgetattr(self.descriptor)
        except termios.error:
            return None

    def set_attributes(self, attributes: Attributes | None) -> None:
        """Change the terminal's settings."""
        if attributes:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.descriptor, termios.TCSANOW, attributes)

    @contextlib.contextmanager
    def raw(self) -> Generator[None]:
        """Have keys as they are typed, not echoed, and none taken for a signal."""
        found = self.attributes()
        if found:
            raw = list(found)
            raw[0] = _without(raw[0], termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
            raw[3] = _without(raw[3], termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
            characters = list(raw[6]) if isinstance(raw[6], list) else []
            characters[termios.VMIN] = b"\x01"
            raw[6] = characters
            self.set_attributes(raw)
        try:
            yield
        finally:
            self.set_attributes(found)


def _without(flags: int | list[bytes], taken: int) -> int:
    assert isinstance(flags, int)
    return flags & ~taken


class InlineApplication:
    """`paint` gets what redraws the bottom and calls it. `press` and `paste` get the input, `look` the focus.

    `background` hears whether that is light. `habit` is what the terminal does with rows at another width; `modes` are
    the sequences that begin and end what the terminal is asked for. While the output is stalled, nothing is painted;
    who made it invalidates afterwards. `found` is what the terminal was like before, for whoever it is lent to.
    """

    def __init__(
        self,
        bottom: Bottom,
        keyboard: Keyboard,
        output: InlineOutput,
        *,
        paint: Callable[[Callable[[], None]], None],
        press: Callable[[Press], None],
        paste: Callable[[str], None],
        look: Callable[[bool], None],
        background: Callable[[bool], None],
        habit: Reflow,
        modes: tuple[str, str],
        found: Attributes | None = None,
    ) -> None:
        self._bottom = bottom
        self._keyboard = keyboard
        self._output = output
        self._paint = paint
        self._press = press
        self._paste = paste
        self._reader = KeyReader(look, background)
        self._habit: Reflow = habit
        self._modes = (modes[0], NOT_PAINTED_AGAIN + modes[1]) if habit == "clears" else modes
        self._found = found
        self._raw: Attributes | None = None
        self._painter = Painter(output.write)
        self._ended: asyncio.Future[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._painted = output.get_size()
        self._widths: list[int] = []
        self._resizing: asyncio.TimerHandle | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._lent = False
        self._begun = False
        self._wanted = False

    # --- life ---

    @property
    def is_running(self) -> bool:
        """Whether the terminal is ours: begun, and not ended."""
        return self._ended is not None and not self._ended.done()

    async def run(self, begin: Callable[[], None]) -> None:
        """Call `begin`, paint, and read keys until `exit`. Raises `EOFError` when the terminal is gone."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        loop.add_signal_handler(signal.SIGWINCH, self._on_resize)
        try:
            begin()
            if self.is_running:
                self._redraw()
                self._start_reading()
            await self._ended
        finally:
            self._stop_reading()
            loop.remove_signal_handler(signal.SIGWINCH)
            for timer in (self._resizing, self._waiting):
                if timer is not None:
                    timer.cancel()
            if not self._ended.done():
                self._ended.cancel()
            self._painter.erase()
            self._painter.show_cursor()
            self.write(NO_PASTES + self._modes[1])

    def exit(self) -> None:
        """End `run`."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    @property
    def can_paint(self) -> bool:
        """Whether the terminal is ours, and its width one that lasts."""
        return self.is_running and not self._lent and self._resizing is None

    def write(self, sequence: str) -> None:
        """Write a control sequence, in order with what is painted."""
        if sequence:
            self._output.write(sequence)
            self._output.flush()

    # --- reading ---

    def _start_reading(self) -> None:
        asyncio.get_running_loop().add_reader(self._keyboard.source, self._read)

    def _stop_reading(self) -> None:
        asyncio.get_running_loop().remove_reader(self._keyboard.source)

    def _read(self) -> None:
        data = self._keyboard.read()
        if data is None:
            return
        if data:
            self.feed(data)
            return
        self._stop_reading()
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(EOFError("the terminal is gone"))

    def read_now(self) -> None:
        """Do what has been typed already."""
        if data := self._keyboard.read():
            self.feed(data)

    def feed(self, data: bytes) -> None:
        """Do the keys that are complete with `data`."""
        self._do(self._reader.feed(data))

    def _give_up(self) -> None:
        """Nothing more came: what waited for more is a key; unless it came while this program had no turn."""
        if data := self._keyboard.read():
            self.feed(data)
        else:
            self._do(self._reader.give_up())

    def _do(self, keys: list[Press | Pasted]) -> None:
        """Do keys; those behind one that ends the screen are not done. Paint before anything else has its turn."""
        if self._waiting is not None:
            self._waiting.cancel()
        timeout = self._reader.timeout
        self._waiting = None if timeout is None else asyncio.get_running_loop().call_later(timeout, self._give_up)
        for key in keys:
            if not self.is_running:
                return
            if isinstance(key, Press):
                self._press(key)
            else:
                self._paste(key.text)
        if keys and self._begun:
            self._redraw()

    # --- other programs, and the shell ---

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Give the terminal to somebody else: the bottom is gone, nothing is painted, keys are not read."""
        self._lent = True
        self._stop_reading()
        try:
            typed = self.end_reports()
            self._painter.erase()
            self._painter.show_cursor()
            self._output.settle()
            self._keyboard.set_attributes(self._found)
            give_back(self._keyboard.descriptor, typed)
            yield
        finally:
            self._keyboard.set_attributes(self._raw)
            if self.is_running:
                self._start_reading()
            self._painter.forget()
            # What was typed before the terminal is ours is echoed there.
            self.write(f"\r\x1b[K{PASTES}{self._modes[0]}")
            self._lent = False
            self.invalidate()

    def end_reports(self) -> str:
        """End everything that makes the terminal speak; return what a user has typed since keys are not read."""
        ends = f"{NO_PASTES}{self._modes[1]}" if self._modes[1] else ""
        seconds = answer_timeout(os.environ) if ends else 0.0
        return drain_input(self._keyboard.descriptor, lambda question: self.write(ends + question), seconds)

    def suspend(self) -> None:
        """Stop the job, and take the terminal again when it goes on."""
        if self._lent:  # an editor has it
            stop_job()
        elif self._stopping is None or self._stopping.done():
            self._stopping = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        async with self.lend():
            stop_job()
            stop_in_background(self._keyboard.descriptor)

    def go_on(self) -> None:
        """We go on after a stop that nobody announced: paint below what is there now, in a raw terminal again."""
        if self._lent or not self._begun:
            return
        stop_in_background(self._keyboard.descriptor)
        self._keyboard.set_attributes(self._raw)
        self._painter.forget()
        begin, end = self._modes
        self.write(f"\r{end}{PASTES}{begin}")  # the terminal keeps count of what was begun
        self.invalidate()

    # --- painting ---

    def invalidate(self) -> None:
        """Paint in the next turn of the loop."""
        if self.is_running and not self._wanted:
            self._wanted = True
            asyncio.get_running_loop().call_soon(self._paint_wanted)

    def erase(self) -> None:
        """Take the bottom away, for what is printed in its place; it is painted again below that."""
        self._painter.erase()

    def _paint_wanted(self) -> None:
        if self._wanted:
            self._redraw()

    def _redraw(self) -> None:
        self._wanted = False
        if not self.can_paint or self._output.stalled():
            return
        if self._begun and self._is_resized:
            self._on_resize()  # word of it is on its way; what is painted now would stand in the wrong place
            return
        with self._output.frame():
            self._begin()
            self._paint(self._repaint)
        self._painted = self._output.get_size()

    def _repaint(self) -> None:
        anew = self._painter.rows is None
        size = self._output.get_size()
        rows, cursor = self._bottom.cells(size)
        self._painter.paint(rows, cursor, caret=self._bottom.rows.caret, columns=size.columns)
        if anew and self._habit == "clears":
            up = f"\x1b[{cursor.row}A" if cursor.row else ""
            self._output.write(f"\x1b7{up}{PAINTED_AGAIN}\x1b8")

    @property
    def _is_resized(self) -> bool:
        """Whether the rows are not where they were painted; at another height they are, if nothing clears them."""
        size = self._output.get_size()
        return size.columns != self._painted.columns or (self._habit == "clears" and size.rows != self._painted.rows)

    def _begin(self) -> None:
        """Ask the terminal for what we want of it, now that it does not echo any more what comes back."""
        if not self._begun:
            self._begun = True
            self._raw = self._keyboard.attributes()
            self.write(f"\r\x1b[K{PASTES}{self._modes[0]}")

    def _on_resize(self) -> None:
        size = self._output.get_size()
        if self._habit == "clears":
            self._resizing = self._resizing or asyncio.get_running_loop().call_later(CLEARING_SECONDS, self._end_resize)
            return
        if size.columns == self._painted.columns and self._resizing is None:
            self._painter.doubt()
            self.invalidate()
            return
        if self._resizing is not None:
            self._resizing.cancel()
        self._widths.append(size.columns)
        self._resizing = asyncio.get_running_loop().call_later(STABLE_SECONDS, self._end_resize)

    def _end_resize(self) -> None:
        """The width stays: go up to where the bottom begins now, and paint it again."""
        self._resizing = None
        widths, self._widths = [self._painted.columns, *self._widths, self._output.get_size().columns], []
        if not self.can_paint:
            self.invalidate()
            return
        up = rows_above_cursor(self._painted_rows(), widths, self._habit)
        with self._output.frame():
            self._painter.erase_from(up)
            self._painted = self._output.get_size()
            self._redraw()

    def _painted_rows(self) -> Painted:
        """Return the rows as they were painted last, and where the cursor is in them."""
        cursor = self._painter.cursor
        return Painted([row_cells(row) for row in self._painter.rows or ()], cursor.row, cursor.column)
