"""The terminal around the app: what is borrowed from it is given back, however the program ends (R-080).

Before it is somebody else's, what it still has to say is dropped, and what a user has typed is kept. A terminal that
was told to speak (of the focus, the mouse, its size, its colours, keys as sequences) goes on doing so until it has read
that it is not to; what comes then would be echoed, and typed into the shell. So whoever gives the terminal away ends
all of that, asks what every terminal answers (DA1), and reads until the answer is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TextIO

from tenuto.ending import ended_by_signals
from tenuto.last_acts import add_last_act
from tenuto.tui.terminal.colours import answers_at_all
from tenuto.tui.terminal.input import PASTE_BEGIN, PASTE_END, size_of
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

READ_BYTES = 65_536
WRITE_SECONDS = 1.0
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
        self.writer.drain(WRITE_SECONDS)
        with contextlib.suppress(OSError, ValueError):
            if select.select([], [self.output], [], WRITE_SECONDS)[1]:
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
    attributes = repair(found or _attributes())
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


def repair(attributes: list[int | list[bytes]] | None) -> list[int | list[bytes]] | None:
    """Return what the terminal is to be like afterwards: as found, unless a killed program has left it raw (T-34)."""
    import termios

    if not attributes:
        return None
    repaired = list(attributes)
    for place, raw, flags in (
        (3, termios.ICANON | termios.ECHO, termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN),
        (0, termios.ICRNL, termios.ICRNL | termios.IXON),
        (1, termios.OPOST, termios.OPOST | termios.ONLCR),
    ):
        found, local = attributes[place], attributes[3]
        assert isinstance(found, int) and isinstance(local, int)
        if not local & (termios.ICANON | termios.ECHO) and not found & raw:
            repaired[place] = found | flags
    return repaired


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


# --- stopping with Ctrl+Z, and going on ---


NO_SHELL = "There is no shell to go back to"


def is_in_foreground(descriptor: int = 0) -> bool:
    """Say whether the terminal is ours; writing to it, or changing it, would disturb another job otherwise."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True


def has_shell() -> bool:
    """Say whether somebody could continue us: who leads the session has no shell above."""
    return os.getsid(0) != os.getpid()


def stop_job(number: int = getattr(signal, "SIGTSTP", 0)) -> None:
    """Stop the whole job until it is continued. Where nobody could continue it, the kernel does not stop it.

    Only our own process would not do: under a wrapper (a script, `uv run`) the shell would wait for that one.
    Whoever stops in this way knows when it goes on: SIGCONT is for stops that nobody announced.
    """
    continues = getattr(signal, "SIGCONT", 0)
    before = [(one, signal.signal(one, signal.SIG_DFL)) for one in (number, continues)]
    try:
        os.kill(0, number)
    finally:
        for one, handler in before:
            signal.signal(one, handler)


def stop_in_background(descriptor: int = 0) -> None:
    """Stop again while the job is in the background (after `bg`): the terminal is not ours."""
    while not is_in_foreground(descriptor):
        with contextlib.suppress(OSError):
            # Not SIGTSTP: this is what touching the terminal would have led to.
            stop_job(signal.SIGTTOU)
        if not has_shell():
            return


# --- giving it away ---


QUESTION = "\x1b[5n"
NEAR, FAR = 0.5, 1.5
"""Seconds to wait for an answer: from a terminal on this machine, and from one at the other end of a line."""
MAX_BYTES = 65_536
_ANSWER = re.compile(rb"\x1b\[[03]n")
_NOT_TYPED = re.compile(r"[^\t\r\n\x08\x7f -~\xa0-\U0010ffff]|\ufffd")


def answer_timeout(environ: Mapping[str, str]) -> float:
    """Return how many seconds to wait for this terminal's answer; 0 for one that has none."""
    if not answers_at_all(environ):
        return 0.0
    return FAR if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY") else NEAR


def drain_input(descriptor: int, end_modes: Callable[[str], object], seconds: float) -> str:
    """Let the terminal say what it has to say, and return what a user has typed meanwhile, for `give_back`.

    `end_modes` gets the question, to be written behind what ends the modes. Nobody else reads meanwhile. Nothing is
    asked where the answer would be seen: of a terminal that echoes, or that is another job's.
    """
    if not (seconds and _is_silent(descriptor) and is_in_foreground(descriptor)):
        end_modes("")
        return ""
    end_modes(QUESTION)
    data, deadline = b"", time.monotonic() + seconds
    # Byte by byte: what is behind the answer stays where it is.
    while not _ANSWER.search(data) and len(data) < MAX_BYTES:
        one = _read(descriptor, max(0.0, deadline - time.monotonic()), 1)
        if not one:
            break
        data += one
    typed = typed_text(data)
    if typed and _may_give_back():
        # Whatever is there by now comes behind it.
        typed += typed_text(_read(descriptor, 0.0, MAX_BYTES))
    return typed


def give_back(descriptor: int, typed: str) -> None:
    """Put what was typed back into the terminal's input, for whoever reads it next, where the system allows that."""
    import fcntl
    import termios

    for byte in typed.encode():
        try:
            fcntl.ioctl(descriptor, termios.TIOCSTI, bytes([byte]))
        except OSError:
            return


def typed_text(data: bytes) -> str:
    """Return what of the terminal's input a user has typed, as text: no reports, no pastes, no other keys."""
    text, place = data.decode("utf-8", "replace"), 0
    typed: list[str] = []
    while place < len(text) and (size := size_of(text, place)):
        part = text[place : place + size]
        if part == PASTE_BEGIN:
            size += len(text[place + size :].partition(PASTE_END)[0])
        elif size <= 2:
            typed.append(part)  # with an ESC before it, which may have been a key
        place += size
    return _NOT_TYPED.sub("", "".join(typed))


def read_now(descriptor: int) -> bytes | None:
    """Return what a terminal has for us: nothing when it is gone, `None` when there is nothing to read.

    Somebody else may have read it since we were told of it: stopped before that, and continued after the shell has had
    the terminal, a read of a blocking descriptor would wait for the next key.
    """
    try:
        return os.read(descriptor, READ_BYTES) if select.select([descriptor], [], [], 0)[0] else None
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _read(descriptor: int, seconds: float, size: int) -> bytes:
    try:
        return os.read(descriptor, size) if select.select([descriptor], [], [], seconds)[0] else b""
    except OSError:  # the terminal is gone, or somebody else was quicker
        return b""


def _is_silent(descriptor: int) -> bool:
    import termios

    try:
        return not termios.tcgetattr(descriptor)[3] & termios.ECHO
    except termios.error:
        return False


def _may_give_back() -> bool:
    """Whether the system lets a program type into its own terminal: Linux from 6.2 on does if it is set to."""
    try:
        return Path("/proc/sys/dev/tty/legacy_tiocsti").read_bytes()[:1] != b"0"
    except OSError:
        return True
