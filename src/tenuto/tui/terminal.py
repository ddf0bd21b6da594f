"""The terminal around the app: what is borrowed from it is given back, however the program ends (R-080)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from types import FrameType
from typing import TextIO

from tenuto.guard.sanitize import sanitize_line

RESTORE = (
    "\x1b[?2026l\x1b[?2004l\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2048l"
    "\x1b[<u\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"
)
"""Ends every mode that the driver may have begun: synchronised output, paste, mouse, focus, size, keyboard, screen."""
OSC52_BYTES = 1_000_000
"""More base64 than this is not sent to the terminal: most drop it or stall."""
TITLE_CHARACTERS = 120
COPY_TOOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("pbcopy",)),
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("WSL_DISTRO_NAME", ("clip.exe",)),
)
"""(variable that must be set, command that takes the text on stdin)"""


class Terminal:
    """The terminal that the app draws on: a descriptor of its own, and the state it was found in.

    Textual draws on `sys.__stderr__`. While the app runs that is this descriptor, and descriptor 2 is `noise`, so that
    a library that writes there cannot tear the screen.
    """

    def __init__(self, output: TextIO, attributes: list[int | list[bytes]] | None, restore: str = RESTORE) -> None:
        self.output = output
        self._attributes = attributes
        self._restore = restore

    def write(self, text: str) -> None:
        """Write to the terminal; one that is gone is no error."""
        with contextlib.suppress(OSError, ValueError):
            self.output.write(text)
            self.output.flush()

    def restore(self) -> None:
        """Put the terminal back by force: for ends that do not go through the app's own."""
        self.write(self._restore)
        _set_attributes(self._attributes)


@contextlib.contextmanager
def borrow_terminal(
    noise: str = os.devnull, found: list[int | list[bytes]] | None = None, restore: str = RESTORE
) -> Generator[Terminal]:
    """Give the app the terminal; whatever happens inside, it is as before afterwards. `noise` is a file's path.

    `found` is what the terminal was like before, if somebody has changed it since. `restore` ends every mode that the
    app may have begun.
    """
    attributes = found or _attributes()
    own = os.dup(2)
    output = os.fdopen(own, "w", encoding="utf-8", errors="replace")
    noise_descriptor = os.open(noise, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    before = sys.__stderr__, sys.stderr
    os.dup2(noise_descriptor, 2)
    os.close(noise_descriptor)
    sys.__stderr__ = output  # pyright: ignore[reportConstantRedefinition]
    terminal = Terminal(output, attributes, restore)
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
        with contextlib.suppress(OSError, ValueError):
            output.close()


@contextlib.contextmanager
def leave_on_signals(
    loop: asyncio.AbstractEventLoop, leave: Callable[[], None], terminal: Terminal
) -> Generator[list[int]]:
    """Let SIGTERM and SIGHUP end the app in order; a second one puts the terminal back and ends the process.

    Yields the numbers of the signals that came.
    """
    received: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if received:
            terminal.restore()
            os._exit(128 + number)
        received.append(number)
        loop.call_soon_threadsafe(leave)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def title_sequence(text: str) -> str:
    """Return what sets the terminal's title; the text may be anything (R-088)."""
    return f"\x1b]0;{sanitize_line(text)[:TITLE_CHARACTERS]}\x07"


SAVE_TITLE = "\x1b[22;0t"
RESTORE_TITLE = "\x1b[23;0t"


def copy_sequence(text: str, environ: Mapping[str, str]) -> str:
    """Return what puts `text` on the clipboard by way of the terminal (OSC 52), empty where it would do harm.

    Inside tmux the sequence also goes wrapped, for a tmux that passes such ones through. GNU screen would print it.
    """
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    in_tmux = bool(environ.get("TMUX"))
    if len(encoded) > OSC52_BYTES or (environ.get("TERM", "").startswith("screen") and not in_tmux):
        return ""
    sequence = f"\x1b]52;c;{encoded}\x07"
    if not in_tmux:
        return sequence
    return sequence + "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def copy_command(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the system's own clipboard command, `None` when there is none (or the clipboard is on another machine)."""
    if environ.get("SSH_TTY"):
        return None
    for variable, command in COPY_TOOLS:
        if (not variable or environ.get(variable)) and shutil.which(command[0]):
            return command
    return None


async def copy_with_tool(text: str, environ: Mapping[str, str]) -> bool:
    """Hand `text` to the system's clipboard command; say whether that worked."""
    command = copy_command(environ)
    if command is None:
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        async with asyncio.timeout(3.0):
            await process.communicate(text.encode("utf-8", "replace"))
    except (OSError, TimeoutError):
        return False
    return process.returncode == 0


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
