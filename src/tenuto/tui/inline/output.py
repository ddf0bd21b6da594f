"""The terminal that is painted on: everything of one frame in one write, shown at once where the terminal can."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Generator, Mapping
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.flush_stdout import flush_stdout
from prompt_toolkit.output.vt100 import Vt100_Output

from tenuto.tui.paint import Depth

SYNC_BEGIN, SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
TMUX_SYNC = (3, 7)
"""The first version of tmux that is trusted with synchronised output."""
ERASE_DOWN = "\x1b7\x1b[K\x1b[B\x1b[J\x1b8"
"""Erases from the cursor on, without the one way to do so that tmux takes for "clear": from the first cell of all. It
would put what was there into the scrollback.
"""
NOTHING = "\x1b[?25l\x1b[?7l\x1b[?7h\x1b[0m\x1b[?12l\x1b[?25h"
"""What prompt-toolkit writes for a frame that is like the one before: it leaves the terminal as that left it."""
DEFAULT_SIZE = Size(rows=24, columns=80)
COLOUR_DEPTHS = {"true": ColorDepth.DEPTH_24_BIT, "256": ColorDepth.DEPTH_8_BIT}


class InlineOutput(Vt100_Output):
    """Writes frames to `stdout`. `gone` is called once, when the terminal does not take them any more."""

    def __init__(
        self,
        stdout: TextIO,
        get_size: Callable[[], Size],
        depth: Depth,
        *,
        synchronised: bool,
        gone: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(stdout, get_size, default_color_depth=COLOUR_DEPTHS[depth], enable_cpr=False)
        self._marks = (SYNC_BEGIN, SYNC_END) if synchronised else ("", "")
        self._gone: Callable[[], None] | None = gone
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

    def erase_down(self) -> None:
        """Erase from the cursor to the end of the screen."""
        self.write_raw(ERASE_DOWN)

    def flush(self) -> None:
        """Write what has gathered, unless a frame is being made."""
        if self._holding or not self._buffer:
            return
        begin, end = self._marks
        drawn, self._buffer = "".join(self._buffer), []
        if drawn == NOTHING:
            return
        data = f"{begin}{drawn}{end}"
        if self._gone is None:
            return
        try:
            flush_stdout(self.stdout, data)
        except (OSError, ValueError):
            gone, self._gone = self._gone, None
            gone()


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
