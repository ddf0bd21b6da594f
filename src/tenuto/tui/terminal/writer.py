"""Writes to the terminal without ever waiting for it: what it does not take at once, a thread of its own writes.

A thread that is woken for each frame gets it when the loop next rests: that was up to a third of what a key took. So
the terminal is opened once more, in a way that never blocks and that nobody shares (to make the descriptor itself so
would change it for the shell and for every program that has it).

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
        self._quick: int | None = open_again(descriptor)
        self._at_once = threading.Lock()

    def write(self, text: str) -> None:
        """Hand a text over; it is written in order, as soon as the terminal takes it."""
        data = text.encode("utf-8", "replace")
        if not data or self._lost:
            return
        rest = self._write_at_once(data)
        if rest:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="terminal-output", daemon=True)
                self._thread.start()
            self._put += len(rest)
            self._queue.put(rest)

    def _write_at_once(self, data: bytes) -> bytes:
        """Write what the terminal takes now, unless something is on its way; return the rest."""
        # A signal handler may come here while we are here: what it has to say goes by the queue.
        if self._quick is None or self._put != self._written or not self._at_once.acquire(blocking=False):
            return data
        try:
            return data[os.write(self._quick, data) :]
        except OSError:  # it is full, or gone: the thread finds out
            return data
        finally:
            self._at_once.release()

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
        quick, self._quick = self._quick, None
        if quick is not None:
            os.close(quick)

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


def open_again(descriptor: int, way: int = os.O_WRONLY) -> int | None:
    """Return a descriptor of the same terminal that never blocks; `None` for what is none, or cannot be opened.

    `way` is to write (`O_WRONLY`) or to read (`O_RDONLY`).
    """
    quick = None
    try:
        quick = os.open(os.ttyname(descriptor), way | os.O_NOCTTY | os.O_NONBLOCK)
        if os.fstat(quick).st_rdev == os.fstat(descriptor).st_rdev:
            return quick
    except OSError:  # a container may know its terminal by no name
        pass
    if quick is not None:
        os.close(quick)
    return None


def _do_nothing() -> None:
    """Nobody is interested."""
