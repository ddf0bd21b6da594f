"""Reading lines from a terminal that edits them itself: what is typed, what is pasted, what is cut off."""

from __future__ import annotations

import asyncio
import os
from codecs import getincrementaldecoder
from collections.abc import Callable
from types import TracebackType

READ_BYTES = 65_536
LONGEST = 4_096
"""Bytes of a line, with its end, that Linux' own line editing keeps; what is typed or pasted beyond them is gone."""
PASTE_GAP = 0.03
"""Seconds within which the next line of a paste comes."""
PASTE_CHARACTERS = 64
"""Lines that come at once and have more are a paste; fewer may be typed ahead, or a program's."""


class LineReader:
    """While it is open, `take` gets each line without its end, and `end` hears of Ctrl+D at the beginning of one.

    `paste` gets the lines that nobody can have typed one after the other, `cut` one of which the terminal has kept the
    beginning alone. `gone` hears that there is no terminal any more, from which nothing will ever come.
    """

    def __init__(
        self,
        take: Callable[[str], None],
        paste: Callable[[list[str]], None],
        cut: Callable[[str], None],
        end: Callable[[], None],
        gone: Callable[[], None],
        *,
        descriptor: int = 0,
    ) -> None:
        self._take = take
        self._paste = paste
        self._cut = cut
        self._end = end
        self._gone = gone
        self._descriptor = descriptor
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> LineReader:
        """Begin to read."""
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Read no more."""
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._give()
            if os.isatty(self._descriptor):
                self._end()
            else:
                asyncio.get_running_loop().remove_reader(self._descriptor)
                self._gone()
            return
        *lines, self._rest = (self._rest + self._decoder.decode(data)).replace("\r\n", "\n").split("\n")
        if len(data) == LONGEST and lines and not self._rest:
            self._give()
            self._cut(lines[0])
            return
        self._lines += lines
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(PASTE_GAP, self._give)

    def _give(self) -> None:
        lines, self._lines = self._lines, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if len(lines) > 1 and sum(map(len, lines)) > PASTE_CHARACTERS:
            self._paste(lines)
        else:
            for line in lines:
                self._take(line)
