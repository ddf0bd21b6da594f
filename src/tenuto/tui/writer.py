"""Writes to the terminal from a thread of its own: one that takes nothing for a while stops nobody but that thread.

A screen asks `stalled` before it paints, leaves the frame out if so, and paints everything when `drained` is called.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from queue import SimpleQueue

STALLED_BYTES = 65_536
"""With more than that on its way, another frame would only come later than the next one."""
CHUNK_BYTES = 8_192


class TerminalWriter:
    """A text file, as far as the screens need one. `drained` and `gone` are called in the writing thread.

    `drained`: what was there when `stalled` was true is written. `gone`: the terminal takes nothing any more, ever.
    """

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self.drained: Callable[[], object] = _do_nothing
        self.gone: Callable[[], object] = _do_nothing
        self._descriptor = descriptor
        # Its `put` may be called in a signal handler.
        self._queue: SimpleQueue[bytes | threading.Event | None] = SimpleQueue()
        self._put = 0
        self._written = 0
        self._asked = False
        self._lost = False
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> None:
        """Hand a text over; it is written in order, as soon as the terminal takes it."""
        data = text.encode("utf-8", "replace")
        if data and not self._lost:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="terminal-output", daemon=True)
                self._thread.start()
            self._put += len(data)
            self._queue.put(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        """Return the terminal's descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return os.isatty(self._descriptor)

    @property
    def stalled(self) -> bool:
        """Say whether the terminal is far behind; then `drained` will be called when it has caught up."""
        self._asked = True  # before the look, or the thread might be done in between and not know that it is awaited
        if not self._lost and self._put - self._written > STALLED_BYTES:
            return True
        self._asked = False
        return False

    def drain(self, seconds: float) -> bool:
        """Wait until all is written, for so long at most; say whether it is."""
        if self._thread is None or self._lost:
            return not self._lost
        done = threading.Event()
        self._queue.put(done)
        return done.wait(seconds)

    def close(self, seconds: float) -> None:
        """Write what is left, for so long at most, and end."""
        thread = self._thread
        if thread is not None and self.drain(seconds):
            self._queue.put(None)
            thread.join(seconds)
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, bytes):
                self._try_to_write(item)
            else:
                item.set()
            if self._asked and self._queue.empty():
                self._asked = False
                self.drained()

    def _try_to_write(self, data: bytes) -> None:
        try:
            self._write(data)
        except OSError:
            if not self._lost:
                self._lost = True
                self.gone()

    def _write(self, data: bytes) -> None:
        while data and not self._lost:
            try:
                count = os.write(self._descriptor, data[:CHUNK_BYTES])
            except BlockingIOError:  # somebody who shares the terminal has made it so
                select.select([], [self._descriptor], [])
                continue
            self._written += count
            data = data[count:]


def _do_nothing() -> None:
    """Nobody is interested."""
