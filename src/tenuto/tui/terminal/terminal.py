"""The terminal around the app: what is borrowed from it is given back, however the program ends (R-080)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import Callable, Generator
from typing import TextIO

from tenuto.ending import ended_by_signals
from tenuto.last_acts import add_last_act
from tenuto.tui.terminal.modified_keys import CLEAN_KEYBOARD, NO_MORE_FLAGS
from tenuto.tui.terminal.writer import TerminalWriter

NO_MOUSE_NO_SIZES = "\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2048l"
"""Ends reports of the mouse and of the size, also those that a program that was killed has left switched on."""
RESTORE = (
    f"\x1b[?2026l\x1b[?2004l{NO_MOUSE_NO_SIZES}\x1b[?1004l\x1b[?2031l"
    f"\x1b[>4;0m{NO_MORE_FLAGS}{CLEAN_KEYBOARD}\x1b[?7h\x1b[?1049l{CLEAN_KEYBOARD}\x1b[?25h\x1b[0m"
)
"""Ends every mode that the driver may have begun: synchronised output, paste, mouse, focus, size, background,
keyboard (each screen has its own), screen.
"""

PATIENCE = 1.0
"""Seconds that the terminal has to take what is left."""


class Terminal:
    """The terminal that the app draws on: a descriptor of its own, and the state it was found in.

    Textual draws on `sys.__stderr__`. While the app runs that is this descriptor, and descriptor 2 is `noise`, so that
    a library that writes there cannot tear the screen. `writer` writes to it without ever keeping the loop waiting;
    `owed` is what else has to be written at an end that is not in order, `found` what the terminal was like before.
    """

    def __init__(self, output: TextIO, attributes: list[int | list[bytes]] | None, restore: str = RESTORE) -> None:
        self.output = output
        self.writer = TerminalWriter(output.fileno())
        self.owed: Callable[[], str] = str
        self.found = attributes
        self._restore = restore

    def write(self, text: str) -> None:
        """Write to the terminal; one that is gone is no error, and one that takes nothing is left to itself."""
        self.writer.drain(PATIENCE)
        with contextlib.suppress(OSError, ValueError):
            if select.select([], [self.output], [], PATIENCE)[1]:
                self.output.write(text)
                self.output.flush()

    def restore(self) -> None:
        """Put the terminal back by force: for ends that do not go through the app's own."""
        _set_attributes(self.found)  # first: what is written may have to wait
        self.write(self.owed() + self._restore)


@contextlib.contextmanager
def borrow_terminal(
    noise: str = os.devnull, found: list[int | list[bytes]] | None = None, restore: str = RESTORE
) -> Generator[Terminal]:
    """Give the app the terminal; whatever happens inside, it is as before afterwards. `noise` is a file's path.

    `found` is what the terminal was like before, if somebody has changed it since. `restore` ends every mode that the
    app may have begun.
    """
    attributes = mend(found or _attributes())
    if not found:
        _set_attributes(attributes)  # whoever reads lines needs a terminal that makes lines
    own = os.dup(2)
    output = os.fdopen(own, "w", encoding="utf-8", errors="replace")
    noise_descriptor = os.open(noise, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    before = sys.__stderr__, sys.stderr
    os.dup2(noise_descriptor, 2)
    os.close(noise_descriptor)
    sys.__stderr__ = output  # pyright: ignore[reportConstantRedefinition]
    terminal = Terminal(output, attributes, restore)
    forget = add_last_act(terminal.restore)
    orderly = False
    try:
        yield terminal
        orderly = True
    finally:
        if not orderly:
            terminal.restore()
        _set_attributes(attributes)
        os.dup2(own, 2)
        sys.__stderr__, sys.stderr = before
        forget()
        with contextlib.suppress(OSError, ValueError):
            output.close()


@contextlib.contextmanager
def leave_on_signals(loop: asyncio.AbstractEventLoop, leave: Callable[[], None]) -> Generator[list[int]]:
    """Let the signals that end a program end the app in order (`ending.py`).

    Yields the numbers of the signals that came.
    """

    def on_signal(_number: int) -> None:
        loop.call_soon_threadsafe(leave)

    with ended_by_signals(on_signal) as received:
        yield received


def mend(attributes: list[int | list[bytes]] | None) -> list[int | list[bytes]] | None:
    """Return what the terminal is to be like afterwards: as found, unless a killed program has left it raw (T-34)."""
    import termios

    if not attributes:
        return None
    mended = list(attributes)
    for place, raw, flags in (
        (3, termios.ICANON | termios.ECHO, termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN),
        (0, termios.ICRNL, termios.ICRNL | termios.IXON),
        (1, termios.OPOST, termios.OPOST | termios.ONLCR),
    ):
        found, local = attributes[place], attributes[3]
        assert isinstance(found, int) and isinstance(local, int)
        if not local & (termios.ICANON | termios.ECHO) and not found & raw:
            mended[place] = found | flags
    return mended


def _attributes() -> list[int | list[bytes]] | None:
    import termios

    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _set_attributes(attributes: list[int | list[bytes]] | None) -> None:
    import termios

    if attributes is None:
        return
    with contextlib.suppress(termios.error):
        termios.tcsetattr(0, termios.TCSANOW, attributes)  # pyright: ignore[reportArgumentType]
