"""The terminal that is painted on: everything of one frame in one write, shown at once where the terminal can."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TextIO, cast

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from tenuto.guard.sanitize import BLANK
from tenuto.tui.emoji_width import is_unsure_alone, pin_alone
from tenuto.tui.first_paint.inline_paint import ERASE_DOWN
from tenuto.tui.paint import Depth
from tenuto.tui.writer import TerminalWriter

SYNC_BEGIN, SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
TMUX_SYNC = (3, 7)
"""The first version of tmux that is trusted with synchronised output."""
NOTHING = "\x1b[?25l\x1b[?7l\x1b[?7h\x1b[0m\x1b[?25h"
"""What prompt-toolkit writes for a frame that is like the one before: it leaves the terminal as that left it."""
REST = "\u2060\u2060"
"""What stands for the rest of a row: it is erased, and the cursor is one cell on, as prompt-toolkit believes."""
ERASE_REST = "\x1b[K "
SETTLE_SECONDS = 2.0
FRAME_CHARACTERS = 8_192
"""Terminals show what they have of a frame that takes them too long."""
DEFAULT_SIZE = Size(rows=24, columns=80)
COLOUR_DEPTHS = {"true": ColorDepth.DEPTH_24_BIT, "256": ColorDepth.DEPTH_8_BIT}


class InlineOutput(Vt100_Output):
    """Writes frames to `stdout`."""

    def __init__(
        self,
        stdout: TextIO | TerminalWriter,
        get_size: Callable[[], Size],
        depth: Depth,
        *,
        synchronised: bool,
    ) -> None:
        super().__init__(cast("TextIO", stdout), get_size, default_color_depth=COLOUR_DEPTHS[depth], enable_cpr=False)
        self._marks = (SYNC_BEGIN, SYNC_END) if synchronised else ("", "")
        self._holding = False

    @contextlib.contextmanager
    def frame(self) -> Generator[None]:
        """Write what is written inside at once, at the end."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
            self.flush()

    def settle(self) -> None:
        """Wait until everything is written, where that happens elsewhere: somebody else will write next."""
        self.flush()
        if isinstance(self.stdout, TerminalWriter):
            self.stdout.drain(SETTLE_SECONDS)

    def stalled(self) -> bool:
        """Say whether the terminal is far behind."""
        return isinstance(self.stdout, TerminalWriter) and self.stdout.stalled

    def write(self, data: str) -> None:
        """Paint a text, without the blanks, which some terminals do not know to take no room."""
        if data == REST:
            self.write_raw(ERASE_REST)
        elif is_unsure_alone(data):
            self.write_raw(pin_alone(data))
        else:
            super().write(data.replace(BLANK, "") if BLANK in data else data)

    def show_cursor(self) -> None:
        """Show the cursor as the user has it: prompt-toolkit would stop its blinking permanently."""
        if not self._cursor_visible:
            self._cursor_visible = True
            self.write_raw("\x1b[?25h")

    def erase_down(self) -> None:
        """Erase from the cursor to the end of the screen."""
        self.write_raw(ERASE_DOWN)

    def flush(self) -> None:
        """Write what has gathered, unless a frame is being made."""
        if self._holding or not self._buffer:
            return
        begin, end = self._marks
        data, self._buffer = "".join(self._buffer), []
        if data == NOTHING:
            return
        for piece in split_frame(data):
            self.stdout.write(f"{begin}{piece}{end}")
        self.stdout.flush()


def split_frame(data: str) -> Iterator[str]:
    """Return what is to be written in pieces of about `FRAME_CHARACTERS`, each of whole rows: none is ever torn."""
    start = 0
    while len(data) - start > FRAME_CHARACTERS:
        end = data.rfind("\r\n", start, start + FRAME_CHARACTERS)
        if end < 0:
            end = data.find("\r\n", start + FRAME_CHARACTERS)
        if end < 0:
            break
        yield data[start : end + 2]
        start = end + 2
    yield data[start:]


def terminal_size(descriptor: int) -> Callable[[], Size]:
    """Return what asks the terminal for its size; one that does not know is 80 by 24."""

    def ask() -> Size:
        try:
            columns, rows = os.get_terminal_size(descriptor)
        except OSError:
            return DEFAULT_SIZE
        return Size(rows=rows or DEFAULT_SIZE.rows, columns=columns or DEFAULT_SIZE.columns)

    return ask


def synchronises(environ: Mapping[str, str]) -> bool:
    """Say whether frames may be marked as such (DEC 2026): others than old versions of tmux take it or leave it."""
    if not environ.get("TMUX") and environ.get("TERM_PROGRAM") != "tmux":
        return environ.get("TERM") != "linux"
    version = re.match(r"(\d+)\.(\d+)", environ.get("TERM_PROGRAM_VERSION", ""))
    return version is not None and (int(version[1]), int(version[2])) >= TMUX_SYNC
