"""What is piped in: taken whole, or refused, and what is left out is said."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable

from msgspec import Struct

MAX_STDIN_BYTES = 10_000_000
"""Bytes of a prompt on standard input; more than that is refused, and never cut."""


class Patience(Struct, frozen=True):
    """Seconds for which a pipe beside a prompt may be silent: at its beginning, and behind what came of it (R-081)."""

    first: float = 1.0
    rest: float = 30.0


class InputRefusedError(Exception):
    """Standard input cannot be taken whole; the message says why and what to do."""


def read_input(
    prompt: str,
    say: Callable[[str], None],
    descriptor: int = 0,
    patience: Patience = Patience(),  # noqa: B008
) -> str:
    """Return what is piped in. A pipe beside a prompt that stays open and silent is not waited for (R-081).

    `say` is told what is not waited for. Raises `InputRefusedError` when what comes cannot be had whole.
    """
    if prompt in ("", "-"):
        return _read(descriptor, lambda size: True)
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return _read(descriptor, lambda size: True)
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return ""

    def is_more(size: int) -> bool:
        if _is_ready(descriptor, patience.first):
            return True
        if not size:
            say(f"nothing came on standard input within {patience.first:g} s; going on without it (tenuto -p - waits)")
            return False
        say(f"standard input is still open; waiting up to {patience.rest:g} s for more")
        if _is_ready(descriptor, patience.rest):
            return True
        say(f"standard input stayed silent; the {size:,} bytes that came are sent, what may come later is not")
        return False

    return _read(descriptor, is_more)


def _is_ready(descriptor: int, seconds: float) -> bool:
    """Wait until there is something to read, or the end."""
    return bool(select.select([descriptor], [], [], seconds)[0])


def _read(descriptor: int, is_more: Callable[[int], bool]) -> str:
    """Return what comes until its end, or until `is_more(bytes so far)` does not wait any longer."""
    data = bytearray()
    try:
        while is_more(len(data)) and (chunk := os.read(descriptor, 65_536)):
            data += chunk
            if len(data) > MAX_STDIN_BYTES:
                raise InputRefusedError(
                    f"standard input has more than {MAX_STDIN_BYTES:,} bytes, and nothing of it was sent; "
                    "put it into a file and name that in the prompt: the model reads what it needs of it"
                )
    except OSError as error:
        if error.errno != errno.EBADF:  # a standard input that was closed holds nothing
            reason = error.strerror or str(error)
            raise InputRefusedError(f"standard input cannot be read to its end ({reason}); nothing was sent") from error
    return data.decode("utf-8", errors="replace")
