"""Lines from the terminal, as its own line editing gives them."""

from __future__ import annotations

import asyncio
import os
from codecs import getincrementaldecoder
from collections.abc import Callable
from types import TracebackType

READ_BYTES = 65_536


class LineReader:
    """While it is open, `take` gets each line without its end, and `end` hears of Ctrl+D at the beginning of one.

    `gone` hears that there is no terminal any more, from which nothing will ever come.
    """

    def __init__(
        self, take: Callable[[str], None], end: Callable[[], None], gone: Callable[[], None], descriptor: int = 0
    ) -> None:
        self._take = take
        self._end = end
        self._gone = gone
        self._descriptor = descriptor
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""

    def __enter__(self) -> LineReader:
        """Begin to read."""
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except OSError:
            data = b""
        if not data:
            if os.isatty(self._descriptor):
                self._end()
            else:
                asyncio.get_running_loop().remove_reader(self._descriptor)
                self._gone()
            return
        *lines, self._rest = (self._rest + self._decoder.decode(data)).replace("\r\n", "\n").split("\n")
        for line in lines:
            self._take(line)
