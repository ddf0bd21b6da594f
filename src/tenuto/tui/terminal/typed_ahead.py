"""Before the terminal is somebody else's: what it still has to say is dropped, what a user has typed is kept.

A terminal that was told to speak (of the focus, the mouse, its size, its colours, keys as sequences) goes on doing so
until it has read that it is not to; what comes then would be echoed, and typed into the shell. So whoever gives the
terminal away ends all of that, asks what every terminal answers (DA1), and reads until the answer is there.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tenuto.tui.first_paint.colours import answers_at_all
from tenuto.tui.terminal.input import PASTE_BEGIN, PASTE_END, size_of
from tenuto.tui.terminal.job_control import is_in_foreground

QUESTION = "\x1b[5n"
NEAR, FAR = 0.5, 1.5
"""Seconds to wait for an answer: from a terminal on this machine, and from one at the other end of a line."""
MAX_BYTES = 65_536
_ANSWER = re.compile(rb"\x1b\[[03]n")
_NOT_TYPED = re.compile(r"[^\t\r\n\x08\x7f -~\xa0-\U0010ffff]|\ufffd")


def patience(environ: Mapping[str, str]) -> float:
    """Return how many seconds to wait for this terminal's answer; 0 for one that has none."""
    if not answers_at_all(environ):
        return 0.0
    return FAR if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY") else NEAR


def hear_out(descriptor: int, end_modes: Callable[[str], object], seconds: float) -> str:
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
    """Whether the system lets a program type into its own terminal: Linux does from 6.2 on if it is told to."""
    try:
        return Path("/proc/sys/dev/tty/legacy_tiocsti").read_bytes()[:1] != b"0"
    except OSError:
        return True
